"""Choose hyper-parameters on warm-up data: ask for a batch of settings, evaluate it at once, tell what came out.

The search is optuna's, with a journal in a file, so that an interrupted search goes on: it is begun again, the settings
that are in the journal are not tried again, and so it finds what it would have found without the interruption. A batch
of settings is one call of the objective: write it with `jax.vmap`, and a batch costs little more than one setting.
"""

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from filtax import _validation as checks

__all__ = ["Log", "Tuned", "Uniform", "Whole", "tune"]

BATCH = 8
PATIENCE = 10  # seconds after which the lock of a process that was killed while it wrote counts no more


@dataclass(frozen=True)
class Uniform:
    """A number between two bounds.

    >>> Uniform(0.0, 1.0)
    Uniform(low=0.0, high=1.0)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            kind = type(self).__name__
            raise ValueError(f"{kind}(low={self.low!r}, high={self.high!r}) is empty; give finite bounds, low < high.")

    def suggest(self, trial: Any, name: str) -> float:
        """A value for one trial."""
        return trial.suggest_float(name, self.low, self.high)


@dataclass(frozen=True)
class Log(Uniform):
    """A positive number of unknown magnitude: its logarithm is uniform.

    >>> Log(0.0, 1.0)
    Traceback (most recent call last):
    ValueError: Log(low=0.0, high=1.0) must be above 0; a logarithm has no zero.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low <= 0:
            raise ValueError(f"Log(low={self.low!r}, high={self.high!r}) must be above 0; a logarithm has no zero.")

    def suggest(self, trial: Any, name: str) -> float:
        """A value for one trial."""
        return trial.suggest_float(name, self.low, self.high, log=True)


@dataclass(frozen=True)
class Whole(Uniform):
    """A whole number between two bounds, both included.

    >>> Whole(1, 10).high
    10
    """

    low: int
    high: int

    def suggest(self, trial: Any, name: str) -> int:
        """A value for one trial."""
        return trial.suggest_int(name, self.low, self.high)


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes:
        best: The best setting, by name.
        loss: Its loss.
        settings: Every setting that was tried, by name, each (N,).
        losses: Their losses, (N,); inf where the objective gave no number.
        seed: Of the search.
        budget: Settings that were asked for.

    >>> Tuned({"q": 0.1}, 1.0, {"q": np.array([0.1])}, np.array([1.0]), seed=0, budget=1).best["q"]
    0.1
    """

    best: Mapping[str, float]
    loss: float
    settings: Mapping[str, np.ndarray]
    losses: np.ndarray
    seed: int
    budget: int


def tune(
    objective: Callable[[dict[str, np.ndarray]], Any],
    space: Mapping[str, Uniform],
    *,
    budget: int = 64,
    batch: int = BATCH,
    seed: int = 0,
    journal: Path | str | None = None,
    told: Callable[[int, float], None] | None = None,
    progress: bool = False,
) -> Tuned:
    """Search a space for the setting with the least loss.

    Args:
        objective: From settings, a dictionary of (B,) arrays, to B losses; NaN and inf count as the worst.
        space: By name, `Uniform`, `Log` or `Whole`.
        budget: Settings to try in all, those in the journal included. The journal records it; with another than it
            was begun with the search goes on to it, or, if that many were tried, ends at once. Both are warned of.
        batch: Settings in a call of the objective. The last call may have fewer.
        seed: Of the search; one that goes on has that of its journal.
        journal: File that keeps the search; if it is there already, the search goes on from it, and finds what one that
            was never interrupted finds, as long as the objective gives the same losses. A last line that was cut off,
            since the process was killed while it wrote, is dropped with a warning. Its lock, a file beside it, is
            waited for ten seconds.
        told: Called after each batch with the number of settings tried and the least loss.
        progress: Say on standard error how many were tried and the least loss: in a terminal by a bar with the time
            left, if `rich` is installed, else by a line for each batch.

    Returns:
        The best setting and all that were tried.

    >>> found = tune(lambda at: np.log10(at["q"] / 1e-3) ** 2, {"q": Log(1e-6, 1.0)}, budget=48)
    >>> 1e-4 < found.best["q"] < 1e-2
    True
    """
    if not space:
        raise ValueError("tune(space={}): there is nothing to choose; name at least one parameter.")
    checks.whole("tune(budget=...)", budget, least=1)
    checks.whole("tune(batch=...)", batch, least=1)
    kept, study = _studies(seed, journal, space)
    _record_budget(kept, budget, journal)
    known = _Known(kept, space)
    shown = _progress(budget, known.count) if progress else nullcontext()
    with shown as show:
        while (done := len(_finished(study))) < budget:
            tried = _try_batch(study, kept, known, objective, space, min(batch, budget - done))
            for tell in (told, show) if tried else ():
                if tell is not None:
                    tell(len(_finished(study)), study.best_value)
    known.hand_on(study)
    finished = _finished(study)
    losses = np.array([trial.value for trial in finished])
    if not np.isfinite(losses).any():
        raise ValueError(f"tune: none of the {losses.size} settings gave a finite loss; look at the objective.")
    settings = {name: np.array([trial.params[name] for trial in finished]) for name in space}
    return Tuned(dict(study.best_params), float(losses.min()), settings, losses, seed, budget)


class _Known:
    """Losses that a journal has for settings; each is used once."""

    def __init__(self, kept: Any, space: Mapping[str, Uniform]):
        self.names, self.trials = list(space), {}
        for trial in _finished(kept):
            self.trials.setdefault(self._key(trial.params), []).append(trial)

    @property
    def count(self) -> int:
        return sum(map(len, self.trials.values()))

    def take(self, point: Mapping[str, Any]) -> float | None:
        found = self.trials.get(self._key(point))
        return found.pop(0).value if found else None

    def hand_on(self, study: Any) -> None:
        """Let a search know those that it has not come upon: it had a larger budget, or drew otherwise before."""
        for trial in sorted((each for found in self.trials.values() for each in found), key=lambda each: each.number):
            study.add_trial(trial)
        self.trials = {}

    def _key(self, point: Mapping[str, Any]) -> tuple:
        return tuple(point[name] for name in self.names)


def _try_batch(
    study: Any, kept: Any, known: _Known, objective: Callable, space: Mapping[str, Uniform], count: int
) -> bool:
    """Ask for settings and tell their losses; whether any of them had to be tried, and was."""
    from optuna.trial import TrialState, create_trial

    trials = [study.ask() for _ in range(count)]
    points = [{name: part.suggest(trial, name) for name, part in space.items()} for trial in trials]
    losses = [known.take(point) for point in points]
    new = [at for at, loss in enumerate(losses) if loss is None]
    if new and known.count:  # the journal is of a search that drew otherwise: go on from what it knows
        for trial, loss in zip(trials, losses, strict=True):
            study.tell(trial, loss, None if loss is not None else TrialState.FAIL)
        known.hand_on(study)
        return False
    if new:
        found = np.asarray(objective({name: np.array([points[at][name] for at in new]) for name in space}), float)
        if found.shape != (len(new),):
            raise ValueError(f"tune: the objective gave losses of shape {found.shape} for {len(new)} settings.")
        for at, loss in zip(new, found, strict=True):
            losses[at] = float(loss) if np.isfinite(loss) else np.inf
    for at, (trial, loss) in enumerate(zip(trials, losses, strict=True)):
        study.tell(trial, loss)
        if at in new:
            kept.add_trial(create_trial(params=trial.params, distributions=trial.distributions, value=loss))
    return bool(new)


def _studies(seed: int, journal: Path | str | None, space: Mapping[str, Uniform]) -> tuple[Any, Any]:
    """What is kept, and the search itself, which knows nothing yet."""
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("tune needs optuna; install filtax[tune].") from error
    storage = None
    if journal is not None:
        path = str(Path(journal).absolute())  # the lock is a link to it, from another folder if it were relative
        lock = JournalFileSymlinkLock(path, PATIENCE)
        _mend(journal, lock)
        storage = JournalStorage(JournalFileBackend(path, lock))
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(storage=storage, study_name="filtax", load_if_exists=True)
    sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True, n_startup_trials=2 * BATCH)
    search = optuna.create_study(sampler=sampler)
    optuna.logging.set_verbosity(before)
    known = study.user_attrs.get("space")
    wanted = {name: repr(part) for name, part in space.items()}
    if known is not None and known != wanted:
        raise ValueError(f"tune(journal={str(journal)!r}) holds another search, over {known}; choose another file.")
    begun = study.user_attrs.get("seed", seed)
    if begun != seed:
        raise ValueError(
            f"tune(journal={str(journal)!r}) was begun with seed={begun}, not {seed}; give that or another file."
        )
    study.set_user_attr("space", wanted)
    study.set_user_attr("seed", seed)
    return study, search


def _record_budget(study: Any, budget: int, journal: Path | str | None) -> None:
    """Keep every budget that was asked for, and say what another than the last one does."""
    budgets, tried = study.user_attrs.get("budgets", []), len(_finished(study))
    if budgets and budgets[-1] != budget:
        does = f"goes on to {budget}" if tried < budget else f"tries no more, and the best of all {tried} is given"
        words = f"had a budget of {budgets[-1]} and has tried {tried} settings; with {budget} it {does}."
        warnings.warn(f"tune(journal={str(journal)!r}): the search {words}", stacklevel=3)
    if budgets[-1:] != [budget]:
        study.set_user_attr("budgets", [*budgets, budget])
    study.set_user_attr("budget", budget)


def _finished(study: Any) -> list[Any]:
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]


@contextmanager
def _progress(budget: int, done: int) -> Iterator[Callable[[int, float], None]]:
    """Say on standard error how far a search is, each time that `told(tried, least)` is called."""
    try:
        from rich import console, progress
    except ModuleNotFoundError:
        console = progress = None
    to = console and console.Console(stderr=True)

    def words(tried: int, least: float) -> str:
        loss = f"least loss {least:.6g}" if np.isfinite(least) else "no finite loss yet"
        return f"tune: {tried} of {budget} settings, {loss}"

    if to is None or progress is None or not to.is_terminal:
        yield lambda tried, least: print(words(tried, least), file=sys.stderr, flush=True)
        return
    columns = progress.TextColumn("{task.description}"), progress.BarColumn(), progress.TimeRemainingColumn()
    with progress.Progress(*columns, console=to) as bar:
        task = bar.add_task(f"tune: {budget} settings", total=budget, completed=done)
        yield lambda tried, least: bar.update(task, completed=tried, description=words(tried, least))


def _mend(journal: Path | str, lock: Any) -> None:
    """Drop the last line of a journal if it was cut off, with a warning; refuse one that is damaged otherwise.

    A process that is killed while it writes leaves half a line, or its line without the end: that step is done again.
    The lock is held while the file is changed, so that no half line of another process that is writing is dropped.
    """
    path = Path(journal)
    if not path.exists():
        return
    if not path.is_file():
        raise ValueError(f"tune(journal={str(journal)!r}) is no file; name one that the search can be kept in.")
    if not _whole(path.read_bytes()):
        lock.acquire()
        try:
            _drop(path)
        finally:
            lock.release()
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not _is_step(line):
            raise ValueError(
                f"tune(journal={str(journal)!r}) is damaged: line {number} is no step of a search; remove the line, or "
                "choose another file."
            )


def _whole(content: bytes) -> bool:
    return not content or content.endswith(b"\n")


def _drop(path: Path) -> None:
    """Cut the file after its last whole line; in place, for another process may hold it open."""
    content = path.read_bytes()
    if _whole(content):
        return
    end = content.rfind(b"\n") + 1
    with path.open("r+b") as file:
        file.truncate(end)
    number = content.count(b"\n") + 1
    words = f"line {number}, the last, was cut off and is dropped; the search goes on from the one before."
    warnings.warn(f"tune(journal={str(path)!r}): {words}", stacklevel=5)


def _is_step(line: bytes) -> bool:
    try:
        step = json.loads(line)
    except ValueError:  # no JSON, or no text
        return False
    return isinstance(step, dict) and isinstance(step.get("op_code"), int) and isinstance(step.get("worker_id"), str)
