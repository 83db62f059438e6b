"""How the continual-learning experiment learns: six methods on one network, settings and streams side by side."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from filtax.streams import TaskStream

__all__ = ["GRIDS", "METHODS", "Learned", "Learner"]

METHODS = {  # what each is in the grammar; K is the number of hypotheses kept
    "Static": "C-Static",
    "ACI": "C-ACI(q={number})",
    "OU": "C-OU(rate={number})",
    "CPP-OU": "CPP-OU(rate={number}, steps=1)",
    "OUPR": "RL[1]-OUPR(hazard={number})",
    "RL-PR": "RL[{keep}]-PR(hazard={number})",
}
GRIDS = {
    "Static": (0.0,),
    "ACI": (1e-4, 1e-3, 1e-2),
    "OU": (0.999, 0.99, 0.95),
    "CPP-OU": (1e-3, 1e-2, 1e-1),
    "OUPR": (1e-4, 1e-2, 1e-1),
    "RL-PR": (1e-4, 1e-2, 1e-1),
}
TOGETHER = 6  # streams and settings in one call: one shape for choosing and for the report, so one compilation


class Learned(NamedTuple):
    """What B runs over N tasks of T images left.

    >>> Learned._fields
    ('right', 'before', 'matrix')
    """

    right: np.ndarray  # (B, N, T): whether the label was the most probable one before it was seen
    before: np.ndarray  # (B, N): accuracy on the tests of each task before anything was learned
    matrix: np.ndarray  # (B, N, N): after each task, on the tests of each task


class Learner:
    """One method on one network; it compiles once.

    Args:
        name: Of `METHODS`.
        sizes: Widths of the network; two of them make a linear model, which starts at zero.
        posterior: The first word of a method's name, such as "LG(form=diagonal)".
        keep: Hypotheses that RL-PR keeps.
        seed: Of the first weights.

    >>> Learner("OUPR", (4, 2), "LG(form=diagonal)", 2, 0).build({"variance": 0.1, "number": 0.01})[0].name
    'LG(form=diagonal)+RL[1]-OUPR(hazard=0.01)'
    """

    def __init__(self, name: str, sizes: tuple[int, ...], posterior: str, keep: int, seed: int) -> None:
        import jax

        from filtax import models

        net = models.mlp(sizes)
        self.model = models.nonlinear(net.apply, likelihood=models.categorical())
        drawn = net.init(jax.random.key(seed), "float32")
        self.first = drawn if len(sizes) > 2 else jax.tree.map(lambda leaf: 0.0 * leaf, drawn)
        self.name, self.text = name, f"{posterior}+{METHODS[name]}".replace("{keep}", str(keep))
        self.compiled = jax.jit(jax.vmap(_one))

    def build(self, at: Mapping[str, float]) -> tuple[Any, Any]:
        """The method of a setting, and its first state."""
        from filtax.grammar import method

        filter_ = method(self.text.replace("{number}", repr(at["number"])), model=self.model)
        return filter_, filter_.init(params=self.first, cov=at["variance"])

    def learn(self, at: Sequence[Mapping[str, float]], tasks: Sequence[TaskStream], told: Sequence[bool]) -> Learned:
        """Learn B streams of tasks, each with a setting of its own, told or not told where a task begins."""
        import jax
        import jax.numpy as jnp

        runs, spare = list(range(len(at))), -len(at) % TOGETHER
        pieces = []
        for start in range(0, len(at), TOGETHER):
            some = (runs + spare * runs[-1:])[start : start + TOGETHER]
            stack = lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves])  # noqa: E731
            method, state = jax.tree.map(stack, *[self.build(at[i]) for i in some])
            rows = [
                np.stack([getattr(tasks[i], part) for i in some]).astype(np.float32)
                for part in ("X", "y", "X_test", "y_test")
            ]
            begins = np.zeros(rows[1].shape, bool)
            begins[:, 1:, 0] = np.array([told[i] for i in some])[:, None]
            pieces.append([np.asarray(part) for part in self.compiled(method, state, *rows, begins)])
        return Learned(*(np.concatenate(parts)[: len(at)] for parts in zip(*pieces, strict=True)))

    def chosen(self, tasks: Sequence[TaskStream], variances: Sequence[float]) -> dict[str, float]:
        """The setting with which most labels of these streams were foreseen, nothing told; the first of equals."""
        grid = [{"variance": v, "number": number} for number in GRIDS[self.name] for v in variances]
        at = [setting for setting in grid for _ in tasks]
        found = self.learn(at, [*tasks] * len(grid), [False] * len(at)).right
        return grid[int(np.argmax(found.reshape(len(grid), -1).mean(axis=1)))]


def _one(method: Any, state: Any, X: Any, y: Any, X_test: Any, y_test: Any, begins: Any) -> tuple[Any, Any, Any]:
    """One stream: labels foreseen, and the tests of all tasks before the first task and after each."""
    import jax
    import jax.numpy as jnp

    def tested(state: Any) -> Any:
        said = jax.vmap(jax.vmap(lambda x: jnp.argmax(method.predict(state, x, plugin=True).mean)))(X_test)
        return jnp.mean(said.astype(y_test.dtype) == y_test, axis=1, dtype=y_test.dtype)

    def learned(state: Any, rows: tuple) -> tuple[Any, tuple]:
        X, y, begins = rows
        state, infos = method.scan(state, X, y, keep=("mean",), changed=begins, complete=True)
        return state, (jnp.argmax(infos.mean, axis=-1).astype(y.dtype) == y, tested(state))

    before = tested(state)
    _, (right, matrix) = jax.lax.scan(learned, state, (X, y, begins))
    return right, before, matrix
