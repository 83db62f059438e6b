"""Choose hyper-parameters on warm-up data: ask for a batch of settings, evaluate it at once, tell what came out.

The search is optuna's. A journal, a line of JSON for each setting that was tried, lets an interrupted search go on: it
is begun again, the settings that are in the journal are not tried again, and so it finds what it would have found
without the interruption. A batch of settings is one call of the objective: write it with `jax.vmap`, and a batch costs
little more than one setting.
"""

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from filtax import _validation as checks

__all__ = ["Log", "Tuned", "Uniform", "Whole", "tune"]

BATCH = 8


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


@dataclass(frozen=True)
class Whole(Uniform):
    """A whole number between two bounds, both included.

    >>> Whole(1, 10).high
    10
    """

    low: int
    high: int


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
            since the process was killed while it wrote, is dropped with a warning.
        told: Called after each batch with the number of settings tried and the least loss; `print` shows progress.

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
    study, drawn = _search(seed, space)
    kept = _Journal(journal, space, seed, budget)
    while (done := len(_finished(study))) < budget:
        tried = _try_batch(study, drawn, kept, objective, min(batch, budget - done))
        if tried and told is not None:
            told(len(_finished(study)), study.best_value)
    kept.hand_on(study, drawn)
    finished = _finished(study)
    losses = np.array([trial.value for trial in finished])
    if not np.isfinite(losses).any():
        raise ValueError(f"tune: none of the {losses.size} settings gave a finite loss; look at the objective.")
    settings = {name: np.array([trial.params[name] for trial in finished]) for name in space}
    return Tuned(dict(study.best_params), float(losses.min()), settings, losses, seed, budget)


def _search(seed: int, space: Mapping[str, Uniform]) -> tuple[Any, dict[str, Any]]:
    """A search that knows nothing yet, and the distributions that it draws from."""
    try:
        import optuna
        from optuna.distributions import FloatDistribution, IntDistribution
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("tune needs optuna; install filtax[tune].") from error
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True, n_startup_trials=2 * BATCH)
    study = optuna.create_study(sampler=sampler)
    optuna.logging.set_verbosity(before)
    return study, {
        name: IntDistribution(part.low, part.high)
        if isinstance(part, Whole)
        else FloatDistribution(part.low, part.high, log=isinstance(part, Log))
        for name, part in space.items()
    }


def _finished(study: Any) -> list[Any]:
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]


def _try_batch(study: Any, drawn: dict[str, Any], kept: "_Journal", objective: Callable, count: int) -> bool:
    """Ask for settings and tell their losses; whether any of them had to be tried, and was."""
    from optuna.trial import TrialState

    trials = [study.ask(drawn) for _ in range(count)]
    losses = [kept.take(trial.params) for trial in trials]
    new = [at for at, loss in enumerate(losses) if loss is None]
    again = bool(new and kept.losses)  # the journal is of a search that drew otherwise: go on from what it knows
    if new and not again:
        found = np.asarray(
            objective({name: np.array([trials[at].params[name] for at in new]) for name in drawn}), float
        )
        if found.shape != (len(new),):
            raise ValueError(f"tune: the objective gave losses of shape {found.shape} for {len(new)} settings.")
        for at, loss in zip(new, found, strict=True):
            losses[at] = float(loss) if np.isfinite(loss) else np.inf
            kept.write({"setting": trials[at].params, "loss": losses[at]})
    for trial, loss in zip(trials, losses, strict=True):
        study.tell(trial, loss, TrialState.FAIL if loss is None else None)
    if again:
        kept.hand_on(study, drawn)
    return bool(new) and not again


class _Journal:
    """What a file has of a search: how it was begun, and the losses of settings; each of these is used once."""

    def __init__(self, path: Path | str | None, space: Mapping[str, Uniform], seed: int, budget: int):
        self._path = None if path is None else Path(path)
        lines = self._lines()
        self.losses = [(line["setting"], line["loss"]) for line in lines if "setting" in line]
        begun, wanted = [line for line in lines if "space" in line], {name: repr(part) for name, part in space.items()}
        if begun:
            self._check(begun[-1], wanted, seed, budget)
        if not begun or begun[-1]["budget"] != budget:
            self.write({"space": wanted, "seed": seed, "budget": budget})

    def take(self, setting: Mapping[str, Any]) -> float | None:
        """The loss of a setting that was tried before."""
        at = next((at for at, (known, _) in enumerate(self.losses) if known == setting), None)
        return None if at is None else self.losses.pop(at)[1]

    def hand_on(self, study: Any, drawn: dict[str, Any]) -> None:
        """Let a search know those that it has not come upon: it had a larger budget, or drew otherwise before."""
        from optuna.trial import create_trial

        for setting, loss in self.losses:
            study.add_trial(create_trial(params=setting, distributions=drawn, value=loss))
        self.losses = []

    def write(self, line: dict[str, Any]) -> None:
        """Add a line, and have it on the disk."""
        if self._path is not None:
            with self._path.open("a") as file:
                print(json.dumps(line), file=file, flush=True)
                os.fsync(file.fileno())

    def _check(self, begun: Mapping[str, Any], wanted: Mapping[str, str], seed: int, budget: int) -> None:
        """Refuse another search, and say what another budget does."""
        call = f"tune(journal={str(self._path)!r})"
        if begun["space"] != wanted:
            raise ValueError(f"{call} holds another search, over {begun['space']}; choose another file.")
        if begun["seed"] != seed:
            raise ValueError(f"{call} was begun with seed={begun['seed']}, not {seed}; give that or another file.")
        if begun["budget"] != budget:
            tried = len(self.losses)
            does = f"goes on to {budget}" if tried < budget else f"tries no more, and the best of all {tried} is given"
            had = f"had a budget of {begun['budget']} and has tried {tried} settings; with {budget} it {does}."
            warnings.warn(f"{call}: the search {had}", stacklevel=4)

    def _lines(self) -> list[dict[str, Any]]:
        """The lines of the file, without a last one that was cut off."""
        if self._path is None or not self._path.exists():
            return []
        call = f"tune(journal={str(self._path)!r})"
        if not self._path.is_file():
            raise ValueError(f"{call} is no file; name one that the search can be kept in.")
        *lines, rest = self._path.read_bytes().split(b"\n")
        if rest:
            with self._path.open("r+b") as file:
                file.truncate(sum(len(line) + 1 for line in lines))
            dropped = f"line {len(lines) + 1}, the last, was cut off and is dropped"
            warnings.warn(f"{call}: {dropped}; the search goes on from the one before.", stacklevel=4)
        read = [_read_line(line) for line in lines]
        if None in read:
            raise ValueError(
                f"{call} is damaged: line {read.index(None) + 1} is no step of a search; remove the line, or choose "
                "another file."
            )
        return read


def _read_line(line: bytes) -> Any:
    """A line of a journal, None where it is not one."""
    try:
        read = json.loads(line)
    except ValueError:  # no JSON, or no text
        return None
    wanted = ({"setting", "loss"}, {"space", "seed", "budget"})
    return read if isinstance(read, dict) and set(read) in wanted else None
