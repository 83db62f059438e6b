"""Whether filtax works here: versions, device, cache, and a run on a small series whose answer is known."""

import os
import platform
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

import numpy as np

from filtax._xla import is_private, usual_cache
from filtax.pipeline._config import Config
from filtax.pipeline._run import open_run
from filtax.pipeline._runner import run_pipeline
from filtax.pipeline._scores import own_name, scores

PACKAGES = ("filtax", "jax", "jaxlib", "numpy", "equinox", "pyarrow", "safetensors", "matplotlib")


def checked() -> Iterator[tuple[str, str, bool]]:
    """What was looked at, what was found, and whether it is well.

    >>> name, found, well = next(checked())
    >>> name, well
    ('python', True)
    """
    yield "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}", True
    for name in PACKAGES:
        try:
            yield name, version(name), True
        except PackageNotFoundError:
            yield name, "is not installed", False
    import jax

    device = jax.devices()[0]
    yield "device", f"{device.platform}: {device.device_kind}, {os.cpu_count()} processors", True
    yield _cache(jax.config.values["jax_compilation_cache_dir"])
    yield "kernels", _kernels(), True
    yield _self_test()


def _cache(folder: str | None) -> tuple[str, str, bool]:
    """Where compiled programs are kept; a folder that others may write to is not well, as its programs are run."""
    with suppress(RuntimeError):  # nobody's home
        place = Path(folder or usual_cache() / "jax").resolve()
        if place.is_dir() and not is_private(place):
            told = (
                "programs of others would be run from it"
                if folder
                else "it is not used, programs are compiled each time"
            )
            return "cache", f"{place} is not yours alone: {told}; remove it, or make it yours with mode 700", False
    if not folder:
        return "cache", "none: programs are compiled each time", True
    entries = list(Path(folder).glob("*-cache"))
    damaged = sum(map(_is_damaged, entries))
    found = f"{folder}, {len(entries) - damaged} compiled programs"
    again = f"; {damaged} more are damaged and will be compiled again; to clear them: rm -r {shlex.quote(folder)}"
    return "cache", found + again if damaged else found, True


def _is_damaged(entry: Path) -> bool:
    """Whether an entry of the cache of compiled programs cannot be unpacked."""
    from jax._src import compilation_cache

    try:
        compilation_cache.decompress_executable(entry.read_bytes())
    except Exception:  # of whichever library JAX packs them with
        return True
    return False


def _kernels() -> str:
    """Which kernels serve LoFi filters of many parameters."""
    from filtax import _kernels

    return _kernels.status()


def _self_test() -> tuple[str, str, bool]:
    """A line with a cycle, learned from a file, with a checkpoint, to the end."""
    began = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "series.csv"
        t = np.arange(600)
        y = np.sin(2 * np.pi * t / 24) + 0.1 * np.random.default_rng(0).normal(size=600)
        hours = np.datetime64("2024-01-01T00:00") + 60 * t
        path.write_text("when,y\n" + "".join(f"{hour},{value}\n" for hour, value in zip(hours, y, strict=True)))
        run_pipeline(Config(str(path), "y", time="when"), Path(folder) / "run")
        run = open_run(Path(folder) / "run")
        table = scores(run).table
    own = table.pop(own_name(run))["mae"]
    least = min(line["mae"] for line in table.values())
    words = f"600 rows in {perf_counter() - began:.1f} s, error {own:.3f}, of the best baseline {least:.3f}"
    return "self-test", words, 0.05 < own < least
