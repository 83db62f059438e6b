"""Where a relative source lies: in the folder where the run began, wherever it is resumed from."""

import os
from dataclasses import replace
from pathlib import Path

from filtax.io import InputError, Missing
from filtax.io._source import expand
from filtax.runs.config import Config

__all__ = ["begun_here", "home_of"]


def begun_here(config: Config, root: Path) -> Config:
    """The configuration of a run that begins now, with where its source lies, as seen from the folder of the run.

    >>> begun_here(Config("load.csv", "load"), Path("out/load")).home
    '../..'
    """
    if config.source == "-" or Path(config.source).is_absolute():
        return config
    return replace(config, home=os.path.relpath(Path.cwd(), root.resolve()))


def home_of(config: Config, root: Path) -> Path | None:
    """The folder that the source of a run is relative to; None if that is the working one.

    It is the one where the run began, or else the working one: whoever moved a run may go to its source.

    >>> home_of(Config("/data/load.csv", "load"), Path("out/load")) is None
    True
    """
    if config.home is None:
        return None
    places = _begun(config.home, root)
    for begun in places:
        if begun.resolve() == Path.cwd().resolve():
            return None
        if _has(begun, config.source):
            return begun
    if not _has(Path(), config.source):
        raise Missing(
            f"{root}: its source, {config.source}, is neither in {places[0]}, where the run began, nor here; bring it "
            "back, or resume from the folder that it is in."
        )
    return None


def _begun(home: str, root: Path) -> list[Path]:
    """Where a run may have begun: seen from its folder itself, and from its name, as runs of before were."""
    named, itself = (Path(os.path.normpath(folder / home)) for folder in (root, root.resolve()))
    return [named] if named.resolve() == itself.resolve() else [itself, named]


def _has(folder: Path, source: str) -> bool:
    try:
        return bool(expand(source, str(folder)))
    except InputError:
        return False
