"""Tell when a stream of readings changed."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from filtax import checks
from filtax.estimators import arrays
from filtax.estimators.params import Estimator
from filtax.segmentation import Settings
from filtax.segmentation.plan import build
from filtax.segmentation.watch import _watch
from filtax.state import State

__all__ = ["Segmenter"]

READINGS = "reading"


@lru_cache(maxsize=64)
def _kernel(settings: Settings, outputs: int) -> Any:
    """One reading, compiled once for a setting; a segment born now expects mean and variance of what came before."""
    method, _ = build(settings, outputs, cyclic=False)

    @jax.jit
    def read(state: State, centre: Any, variance: Any, y: Any, odds: Any, since: Any, least: Any) -> tuple:
        initial = state.initial
        mean = jnp.zeros_like(initial.mean).at[:outputs].set(centre)
        rate = jnp.asarray(settings.shape * settings.noise * variance, mean.dtype)
        first = eqx.tree_at(lambda belief: (belief.unit.mean, belief.rate), initial, (mean, rate))
        slots = state.bank.log_weight.size
        anew = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (slots, *leaf.shape)), first)
        belief = jax.tree.map(lambda new, old: jnp.where(state.t == 0, new, old), anew, state.bank.belief)
        state = eqx.tree_at(lambda s: (s.initial, s.bank.belief), state, (first, belief))
        born = jax.tree.map(lambda leaf: leaf[None], first)
        since, least = (jnp.asarray(value, jnp.int32) for value in (since, least))
        carry, seen = _watch(method, state, (None, y, born, jnp.zeros(1, bool)), odds, since, least, posterior=False)
        return state.after(*carry), (seen.alarm, seen.start, seen.log_odds)

    return read


class Segmenter(Estimator):
    """Changes of one or several readings that change together, told of while they come.

    The alarms of `filtax.segmentation.detect` without a cycle, one reading at a time and in bounded memory: in each
    segment a line and a noise of its own, and the posterior of where the present segment began.

    Args:
        threshold: Probability of a new regime at which to give an alarm; `filtax.segmentation.calibrate` finds one for
            a chosen rate of false alarms.
        hazard: Probability of a change at a reading.
        least: Readings that a new regime must hold before it is told of.
        warmup: Readings that give the unit of the stream; no alarm is given before they are there.
        keep: Hypotheses kept about the start of the present segment.

    >>> model = Segmenter()
    >>> for t in range(120):
    ...     model.learn_one({"volts": math.sin(37.0 * t) + (9.0 if t >= 80 else 0.0)})
    >>> model.changes_
    [80]
    """

    def __init__(
        self,
        threshold: Any = 0.99,
        hazard: Any = 0.01,
        least: Any = 5,
        warmup: Any = 30,
        keep: Any = 100,
    ):
        self.threshold = threshold
        self.hazard = hazard
        self.least = least
        self.warmup = warmup
        self.keep = keep

    def learn_one(self, x: Any, y: Any = None) -> None:
        """Take one reading.

        Args:
            x: A number, or several by name; None or NaN where missing. The names of the first reading stay.
            y: Not used; readings have no target.
        """
        x = x if isinstance(x, Mapping) else {READINGS: x}
        if "_names" not in vars(self):
            self._begin(sorted(x, key=repr))
        row = [math.nan if x.get(name) is None else float(x[name]) for name in self._names]
        self._read(np.array([row]))

    def learn_many(self, X: Any, y: Any = None) -> None:
        """Take many readings, as `learn_one` does with each: a data frame, or a sequence of dicts or numbers."""
        rows = X.to_dict("records") if hasattr(X, "columns") else X
        for x in rows:
            self.learn_one(x)

    def predict_one(self, x: Any = None) -> int:
        """The segment that the next reading is in, counted from 0, as far as is known."""
        return len(vars(self).get("changes_", ()))

    def fit(self, X: Any, y: Any = None) -> "Segmenter":
        """Forget everything, then take the rows of an array (T, O) as readings."""
        for name in ("_names", "_early", "_state", "_sums", "_unit", "_last", "changes_", "n_features_in_", "t_"):
            vars(self).pop(name, None)
        vars(self).pop("feature_names_in_", None)
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> "Segmenter":
        """Go on with the rows of an array (T, O) as readings."""
        owner = type(self).__name__
        names, table = arrays.names_of(X), arrays.matrix(owner, X)
        if "n_features_in_" not in vars(self):
            self.n_features_in_ = table.shape[1]
            if names is not None:
                self.feature_names_in_ = names
        known = getattr(self, "feature_names_in_", None)
        arrays.same_features(owner, known, self.n_features_in_, names, table.shape[1])
        if "_names" not in vars(self):
            self._begin(list(range(table.shape[1])) if known is None else list(known))
        for row in table:
            self._read(row[None])
        return self

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """The segment of each row, counted from 0, as known at the end."""
        self.fit(X)
        return np.searchsorted(self.changes_, np.arange(self.t_), side="right")

    def _begin(self, names: list) -> None:
        checks.share("threshold", self.threshold, hint="It is the probability of a new regime that gives an alarm.")
        checks.whole("warmup", self.warmup, least=2, hint="It is a number of readings.")
        checks.whole("least", self.least, least=1, hint="It is a number of readings.")
        self._settings()
        self._names, self._early = names, []
        self.changes_: list[int] = []
        self.t_ = 0
        self._last = {"alarm": None, "odds": -math.inf, "start": 0}

    def _settings(self) -> Settings:
        return Settings(hazard=self.hazard, noise=0.5, keep=self.keep)

    def _read(self, row: np.ndarray) -> None:
        """One reading: kept until there are enough to know their unit, then watched."""
        row = np.where(np.isfinite(row), row, np.nan)
        self.t_ += 1
        self._last = {**self._last, "alarm": None}
        if "_state" not in vars(self):
            self._early.append(row)
            if len(self._early) == self.warmup:
                rows, self._early = np.concatenate(self._early), []
                self._set_out(rows)
        else:
            self._watch((row - self._unit[0]) / self._unit[1])
        if np.isnan(row).all() and self._last["alarm"] is None:
            self._last["alarm"] = "missing"

    def _set_out(self, rows: np.ndarray) -> None:
        """The first readings give the unit, and what a segment born among them expects."""
        came = np.isfinite(rows)
        number = np.maximum(came.sum(axis=0), 1)
        filled = np.where(came, rows, 0.0)
        middle = filled.sum(axis=0) / number
        spread = np.sqrt(np.where(came, (filled - middle) ** 2, 0.0).sum(axis=0) / number)
        self._unit = (middle, np.where(spread > 0.0, spread, 1.0))
        z = (rows - middle) / self._unit[1]
        self._sums = [np.zeros(len(middle)) for _ in range(3)]
        self._count(z)
        self._state = self._start(len(middle))
        for one in z:
            self._watch(one[None], count=False)

    def _start(self, outputs: int) -> State:
        with jax.enable_x64(True):
            return build(self._settings(), outputs, cyclic=False)[1]

    def _count(self, z: np.ndarray) -> None:
        came = np.isfinite(z)
        filled = np.where(came, z, 0.0)
        for total, more in zip(self._sums, (came, filled, filled**2), strict=True):
            total += more.sum(axis=0)

    def _watch(self, z: np.ndarray, count: bool = True) -> None:
        number = np.maximum(self._sums[0], 1.0)
        centre = self._sums[1] / number
        variance = max(float((self._sums[2] / number - centre**2).mean()), 1e-6)
        since = self.changes_[-1] if self.changes_ else 0
        odds = math.log(self.threshold) - math.log1p(-self.threshold) if 0.0 < self.threshold < 1.0 else math.inf
        y = z if len(centre) > 1 else z[:, 0]
        with jax.enable_x64(True):
            kernel = _kernel(self._settings(), len(centre))
            self._state, told = kernel(self._state, centre, variance, y, odds, since, self.least)
        alarm, start, log_odds = (part[0] for part in map(np.asarray, told))
        if count:
            self._count(z)
        self._last = {**self._last, "odds": float(log_odds), "start": int(start)}
        if alarm:
            self.changes_.append(int(start))
            self._last["alarm"] = "change"

    def __sklearn_is_fitted__(self) -> bool:
        """Whether anything was read."""
        return "_names" in vars(self)

    def _told(self, name: str) -> Any:
        if "_last" not in vars(self):
            raise AttributeError(f"nothing was read yet: Segmenter has no {name} before the first reading.")
        return self._last[name]

    @property
    def alarm_(self) -> str | None:
        """What the last reading brought: None, "change", or "missing"."""
        return self._told("alarm")

    @property
    def change_probability_(self) -> float:
        """Probability that a regime began after the last change that was told of."""
        return 1.0 / (1.0 + math.exp(-max(self._told("odds"), -700.0)))

    @property
    def runlength_(self) -> int:
        """Most probable number of readings since the present segment began."""
        return self.t_ - 1 - self._told("start") if "_state" in vars(self) else self.t_ - 1

    @property
    def trust_(self) -> float:
        """1.0 for a reading that was there, 0.0 for a missing one."""
        return 0.0 if self._told("alarm") == "missing" else 1.0
