"""A row of the conformance table, and the ways to build its method from one setting."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import filtax as fx


class Row(NamedTuple):
    """A method as a function of one float setting, its initial belief, and T rows of data."""

    build: Any  # setting -> method
    setting: float
    init: dict
    X: np.ndarray | None
    Y: np.ndarray
    seed: int | None = None  # of methods that draw

    @property
    def key(self):
        return {} if self.seed is None else {"key": jax.random.key(self.seed)}

    def start(self, dtype="float64"):
        method = self.build(self.setting)
        return method, method.init(**jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), self.init), **self.key)

    def evidence(self, setting, X, Y):
        """The total log evidence of a stream."""
        method = self.build(setting)
        state = method.init(**self.init, **self.key)
        return method.scan(state, X, Y, keep=("log_evidence",))[1].log_evidence.sum()


def named(name, model):
    return lambda setting: fx.method(name, model=model(setting))


def drifting(name, model, prior, auxiliary=None):
    return lambda setting: fx.method(name, model=model, prior=prior(setting), auxiliary=auxiliary)


def watching(name, model, auxiliary):
    return lambda setting: fx.method(name, model=model, auxiliary=auxiliary(setting))


def wolf(name, model, trust):
    """A robust method, as a function of its threshold."""
    return lambda setting: fx.method(name, model=fx.models.robust(model, trust=trust(setting)))
