"""Run experiments, keep what they found, and write it down: one folder each, one report for all.

A folder holds `result.json` (numbers, setting, what is fixed, seed, versions, seconds, verdicts), `arrays.npz`, and
each figure as PNG and SVG. A result is used again as long as its digest is the same, and so are the parts that were
done of an experiment that was interrupted. Of what is used again the claims are decided again, and lost figures drawn.
"""

import json
import os
import platform
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from multiprocessing import active_children, get_context
from pathlib import Path
from threading import Thread
from typing import Any

import jax
import numpy as np

from thesis.experiment import Experiment, Result, Table, find
from thesis.figures import look
from thesis.findings import ENDINGS, Finding, decide, digest_of, folder_of, keeping, lost_figures, stored

PARTS = "parts"
Told = Callable[[str, float], None]


def reproduce(
    names: Iterable[str],
    size: str = "quick",
    seed: int = 0,
    out: Path = Path("out/reproduce"),
    told: Told | None = None,
    jobs: int = 1,
) -> list[Finding]:
    """Run experiments by name, or take what an earlier run found.

    Args:
        names: As in `thesis.names()`.
        size: "quick" or "full".
        seed: Of all that is drawn.
        out: Folder of the folders: `quick/NAME`, `full/NAME`, and with another seed than 0 `full-seed-3/NAME`.
        told: Called with a name and the share done, from 0 to 1; with several jobs from a thread of its own.
        jobs: Processes that share the work.

    Returns:
        A finding for each, in order; of a name given twice one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     finding, = reproduce(["ridge"], out=Path(folder))
    ...     finding["claims"][0]["verdict"], (finding.folder / "recursive-ridge-params-and-rmse.png").exists()
    ('holds', True)
    """
    told = told or _silent
    names = list(
        dict.fromkeys(find(name).name for name in names)
    )  # a name that is not there is refused before any work
    if jobs == 1:
        return [_one(name, size, seed, Path(out), told) for name in names]
    wide = jax.numpy.zeros(()).dtype.itemsize == 8
    others, spawned = set(active_children()), get_context("spawn")
    shares = spawned.SimpleQueue()
    listener = Thread(target=_listen, args=(shares, told), daemon=True)
    listener.start()
    with ProcessPoolExecutor(jobs, spawned, _start_worker, (wide, shares)) as pool:
        waiting = [pool.submit(_one, name, size, seed, Path(out), _send) for name in names]
        try:
            found = [future.result() for future in waiting]
            shares.put(None)
            listener.join()
            return found
        except BaseException:  # interrupted, or one has failed: what is not begun is left, what runs is ended
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


def _listen(shares: Any, told: Told) -> None:
    """Tell what the workers send, until nothing more is to come."""
    while (one := shares.get()) is not None:
        told(*one)


def _send(name: str, share: float) -> None:
    """Called in a worker, which has been given the queue when it was started."""
    _sent.put((name, share))


_sent: Any = None


def _start_worker(wide: bool, shares: Any) -> None:
    global _sent  # a process has one, and a queue cannot be handed over with a task
    _sent = shares
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked for the work ends it
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()  # also if it was killed
    jax.config.update("jax_enable_x64", wide)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)  # parts that are done are kept, and a half one is not


def _silent(name: str, share: float) -> None:
    pass


def _one(name: str, size: str, seed: int, out: Path, told: Told) -> Finding:
    experiment = find(name)
    folder = folder_of(out, experiment.name, size, seed)
    kept = stored(folder, experiment, size, seed)
    if kept is not None:
        with suppress(LookupError, TypeError, ValueError):  # numbers of which a figure cannot be drawn any more
            finding = _refreshed(experiment, *kept)
            told(experiment.name, 1.0)
            return finding
    digest = digest_of(experiment, size, seed)
    told(experiment.name, 0.0)
    began = time.perf_counter()
    with keeping(folder / PARTS, digest) as shelf:
        result = experiment.run(experiment.sizes[size], seed, lambda share: told(experiment.name, share))
    seconds = time.perf_counter() - began + shelf.saved
    content = {
        "name": experiment.name,
        "title": experiment.title,
        "size": size,
        "seed": seed,
        "setting": experiment.setting(size),
        "fixed": experiment.shared(),
        "digest": digest,
        "seconds": round(seconds, 3),
        "versions": {name: version(name) for name in ("filtax", "jax", "numpy")}
        | {"python": platform.python_version()},
        "claims": decide(experiment, result),
        "tables": [asdict(table) for table in result.tables],
        "notes": list(result.notes),
        "figures": {label: label.removeprefix("fig:") for label in experiment.figures},
        "numbers": dict(result.numbers),
    }
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "arrays.npz", allow_pickle=False, **result.arrays)
    _draw(experiment, result, folder, experiment.figures)
    _write(folder / "result.json", content)  # last: it says that all is there
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    told(experiment.name, 1.0)
    return Finding(json.loads((folder / "result.json").read_text()), folder)


def _refreshed(experiment: Experiment, finding: Finding, result: Result) -> Finding:
    """An earlier finding with the figures that were lost, and the verdicts of the rules as they are now."""
    _draw(experiment, result, finding.folder, lost_figures(finding.folder, experiment))
    if json.loads((finding.folder / "result.json").read_text())["claims"] != finding["claims"]:
        _write(finding.folder / "result.json", finding.content)
    return finding


def _draw(experiment: Experiment, result: Result, folder: Path, labels: Iterable[str]) -> None:
    for label in labels:
        with look():
            figure = experiment.figures[label](result)
            for ending in ENDINGS:
                figure.savefig(folder / f"{label.removeprefix('fig:')}.{ending}", dpi=130)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1, default=_plain))
    os.replace(part, path)


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of Python."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Table):
        return asdict(value)
    raise TypeError(f"a result holds {type(value).__name__}, which JSON does not; make it a number or a list.")
