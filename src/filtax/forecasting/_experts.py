r"""(M.2, M.3, A.1) The experts of the bank: filters by name on their features, and the baselines.

An expert is a value with three methods. `init` gives its state, `forecast` says what it expects at the H targets, and
`learn` takes in a row and returns its errors. Forecasts of a `targeted` expert follow from the target alone, whatever
the origin; what its latest errors say is then added by residual heads (`Heads`).

Filters condition by the library's own beliefs; an innovation counts at most `CLIP` times its usual size.
"""

from functools import cache, partial
from inspect import get_annotations
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from filtax._step import cast_and_bind, filter_step, look_ahead
from filtax.beliefs import Covariance
from filtax.bone import Bone
from filtax.forecasting._features import View, effects
from filtax.forecasting._layout import Layout, Row
from filtax.methods._parse import method as named
from filtax.models import linear
from filtax.protocols import pytree, static
from filtax.state import State

CLIP = 3.0  # an innovation counts at most so many times its usual size
USUAL = 0.02  # rate at which the usual size of an innovation is learned
WARMUP = 14  # visits of a slot before its effects are scaled


class Expert(eqx.Module):
    """One member of the bank; subclass it to add your own.

    `names` says which forecasts it gives: one row of `forecast` each. An expert that only looks at the view needs
    nothing but these two. A subclass sets the fields of this class as class attributes, or takes them as arguments.

    >>> class Trend(Expert):
    ...     names = ("trend",)
    ...     def forecast(self, state, view):
    ...         return view.last + view.steps * (view.last - view.history.recent[24]) / 24.0
    >>> Trend().names
    ('trend',)
    """

    names: tuple[str, ...] = static(default=())
    targeted: bool = static(default=False)  # forecasts depend on the target, not on the origin
    seasonal: bool | None = static(default=None)  # True: only where there is a season; False: only where there is none
    wakes: str = static(default="first")  # "first": from the first value; "warm"; "known"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        fields = get_annotations(Expert)
        for name in fields.keys() & vars(cls).keys() - get_annotations(cls).keys():
            cls.__annotations__ = {**get_annotations(cls), name: fields[name]}
            setattr(cls, name, static(default=vars(cls)[name]))

    def init(self, layout: Layout) -> PyTree:
        """State before any row."""
        return ()

    def forecast(self, state: PyTree, view: View) -> Float[Array, "*N H"]:
        """What is expected at the targets; NaN where nothing is known yet."""
        raise TypeError(f"{type(self).__name__} has no forecast(state, view); an expert must have one.")

    def learn(
        self, state: PyTree, layout: Layout, row: Row, z: Float[Array, ""], designs: dict
    ) -> tuple[PyTree, Float[Array, " N"]]:
        """Take in a row; z is NaN where the target is missing. Returns the state and the errors of `names`."""
        return state, jnp.zeros(len(self.names))

    def fits(self, layout: Layout) -> bool:
        """Whether there is a place for it in pipelines of this shape."""
        season = layout.season > 1
        return self.seasonal in (None, season) and (layout.profiles or not (self.targeted and season))


class Baseline(Expert):
    """A forecast that is computed from `View` alone, without state.

    Attributes:
        rule: "last", "mean", "median", "season", "week" or "shifted season" (the season plus the latest deviation).
    """

    rule: str = static(default="last")

    def forecast(self, state: PyTree, view: View) -> Float[Array, " H"]:
        """The rule, at each target."""
        match self.rule:
            case "last":
                return view.everywhere(view.last)
            case "mean":
                return view.everywhere(view.history.running[2])
            case "median":
                return view.everywhere(_median(view.history.recent))
            case "season":
                return view.lag
            case "week":
                return view.week_lag
            case _:
                return view.lag + view.history.deviation

    def fits(self, layout: Layout) -> bool:
        """Without a second season there is no value of the week."""
        return super().fits(layout) and (self.rule != "week" or layout.week > 0)


def baseline(rule: str) -> Baseline:
    """One of the baselines, by its rule.

    >>> baseline("season").names
    ('season',)
    """
    return Baseline(names=(rule,), rule=rule, seasonal=True if "season" in rule or rule == "week" else None)


@pytree
class ProfileState:
    """Beliefs for each group of targets and slot, and how large errors usually are.

    Attributes:
        slow: Belief about the weights of the regressors, leaves (G, S, ...).
        fast: Belief about the size of their effects, likewise; None without.
        visits: (S,) values seen in each slot.
        usual: Usual size of the errors of the slow and the fast filter.
    """

    slow: PyTree
    fast: PyTree
    visits: Float[Array, " S"]
    usual: Float[Array, " N"]


class Profile(Expert):
    r"""A Kalman filter for each slot of the season, on regressors that are known for the target.

    It learns once a row and serves every horizon. With `fast`, a second filter follows the sizes $a$ of the effects
    $E_j = \sum_{i \in j} w_i x_i$ of the first, $y = a_0 + a^\top E$, where j is a group of regressors: the constant,
    the lag, the week, the year, a known column.

    Attributes:
        design: Regressors: "constant", "clock", or with known columns "linear" or "bends" (piecewise linear).
        slow: Variance that a visit of the slot adds to each weight; unit noise, prior N(0, 1).
        fast: The same for the effects, prior N(1, 0.1); None without the second filter.
    """

    design: str = static(default="clock")
    slow: float = static(default=1e-4)
    fast: float | None = static(default=None)

    def init(self, layout: Layout) -> ProfileState:
        """Prior beliefs everywhere."""
        D, lead = effects(layout, self.design).size, (self._copies(layout), layout.bins)
        slow = Covariance.start(jnp.zeros(D), jnp.ones(D))
        fast = None
        if self.fast is not None:
            d = int(effects(layout, self.design).max()) + 2
            fast = Covariance.start(jnp.ones(d).at[0].set(0.0), jnp.full(d, 0.1))
        spread = partial(_copied, lead)
        return ProfileState(
            jax.tree.map(spread, slow), jax.tree.map(spread, fast), jnp.zeros(layout.bins), jnp.zeros(len(self.names))
        )

    def forecast(self, state: ProfileState, view: View) -> Float[Array, "N H"]:
        """At each target, by the filter of its slot and group."""
        x = view.designs[self.design]
        group = np.minimum(view.layout.group, self._copies(view.layout) - 1)
        products = state.slow.mean[group, view.bins] * x
        plain = jnp.sum(products, axis=1)
        if self.fast is None:
            return plain[None]
        E = self._effects(view.layout, products)
        return jnp.stack([plain, jnp.sum(state.fast.mean[group, view.bins] * E, axis=1)])

    def learn(
        self, state: ProfileState, layout: Layout, row: Row, z: Float[Array, ""], designs: dict
    ) -> tuple[ProfileState, Float[Array, " N"]]:
        """Condition the filters of this slot."""
        here, missing = row.slot * layout.bins // layout.season, jnp.isnan(z)
        X = designs[self.design][: self._copies(layout)]
        visits = state.visits[here] + jnp.where(missing, 0.0, 1.0)
        slow = jax.tree.map(lambda leaf: leaf[:, here], state.slow)
        products = slow.mean * X
        error = z - jnp.sum(products, axis=1)
        clipped, usual = clip(error, jnp.broadcast_to(state.usual[0], error.shape))
        sizes, errors = [usual[0]], [error[0]]
        moved = _visit(slow, X, clipped, self.slow * layout.share, missing)
        fast = state.fast
        if self.fast is not None:
            old = jax.tree.map(lambda leaf: leaf[:, here], fast)
            E = self._effects(layout, products)
            error = z - jnp.sum(old.mean * E, axis=1)
            clipped, usual = clip(error, jnp.broadcast_to(state.usual[1], error.shape))
            idle = missing | (visits <= WARMUP / layout.share)
            new = _visit(old, E, clipped, self.fast * layout.share, idle)
            fast = jax.tree.map(lambda table, leaf: table.at[:, here].set(leaf), fast, new)
            sizes, errors = [*sizes, usual[0]], [*errors, error[0]]
        table = jax.tree.map(lambda table, leaf: table.at[:, here].set(leaf), state.slow, moved)
        usual = jnp.where(missing, state.usual, jnp.stack(sizes))
        return ProfileState(table, fast, state.visits.at[here].set(visits), usual), jnp.stack(errors)

    def fits(self, layout: Layout) -> bool:
        """Without known columns their filters would be those of the clock, and without a season the mean."""
        known = self.design in ("linear", "bends")
        return super().fits(layout) and (layout.known > 0 if known else layout.season > 1)

    def _copies(self, layout: Layout) -> int:
        return 1 if self.design == "constant" else layout.groups

    def _effects(self, layout: Layout, products: Float[Array, "N D"]) -> Float[Array, "N d"]:
        """A constant, and the sum of the products of each group of regressors."""
        groups = effects(layout, self.design)
        member = jnp.asarray(groups[:, None] == np.arange(groups.max() + 1), products.dtype)
        sums = jnp.sum(products[:, :, None] * member[None], axis=1)
        return jnp.concatenate([jnp.ones((len(products), 1)), sums], axis=1)


def _median(values: Float[Array, " N"]) -> Float[Array, ""]:
    """The middle of an odd number of values: the one that has as many before it as behind it."""
    place = np.arange(values.size)
    before = (values[None, :] < values[:, None]) | (
        (values[None, :] == values[:, None]) & (place[None] < place[:, None])
    )
    return jnp.sum(jnp.where(jnp.sum(before, axis=1) == values.size // 2, values, 0.0))


def _copied(lead: tuple[int, ...], leaf: Array) -> Array:
    return jnp.broadcast_to(leaf, (*lead, *leaf.shape))


def profile(
    name: str, design: str = "clock", slow: float = 1e-4, fast: float | None = None, seasonal: bool | None = True
) -> Profile:
    """A filter for each slot of the season; with `fast` it gives two forecasts.

    >>> profile("effects", fast=0.01).names
    ('effects slow', 'effects fast')
    """
    names = (name,) if fast is None else (f"{name} slow", f"{name} fast")
    wakes = "known" if design in ("linear", "bends") else "warm"
    return Profile(names=names, design=design, slow=slow, fast=fast, targeted=True, seasonal=seasonal, wakes=wakes)


class Method(Expert):
    """A filter of the library by its name, on the clock and the known columns, one for all slots.

    Attributes:
        method: Name of the filter, as for `filtax.method`.
    """

    method: str = static(default="LG+C-Static")

    def init(self, layout: Layout) -> State:
        """The prior: N(0, 1) for each weight."""
        with jax.ensure_compile_time_eval():
            return _bone(self.method).init(mean=np.zeros(effects(layout, "linear").size), cov=1.0)

    def forecast(self, state: State, view: View) -> Float[Array, "1 H"]:
        """The mean of the filter's forecast at each target."""
        bone = cast_and_bind(_bone(self.method), state)
        return jax.vmap(lambda x: look_ahead(bone, state.hypotheses, state.initial, x, None).mean)(
            view.designs["linear"]
        ).reshape(1, -1)

    def learn(
        self, state: State, layout: Layout, row: Row, z: Float[Array, ""], designs: dict
    ) -> tuple[State, Float[Array, " 1"]]:
        """One step of the filter."""
        bone = cast_and_bind(_bone(self.method), state)
        state, info, _ = filter_step(bone, state, designs["linear"][0], z[None])
        return state, (z - jnp.asarray(info.mean)).reshape(1)


def filtered(method: str) -> Method:
    """An expert that is a filter of the library.

    >>> filtered("NIG+C-Static").names
    ('NIG+C-Static',)
    """
    bone = _bone(method)
    if bone.posterior.draws or bone.posterior.needs_key:
        raise ValueError(f"{method} draws at random; a forecast takes methods that do not.")
    if bone.auxiliary.grows:
        name = bone.auxiliary.name
        raise ValueError(f"{method} keeps ever more hypotheses; write {name}[K] with a number K.")
    return Method(names=(method,), method=method, targeted=True)


@cache
def _bone(method: str) -> Bone:
    return named(method, model=linear(noise=1.0))


def clip(error: Float[Array, "*S"], usual: Float[Array, "*S"]) -> tuple[Float[Array, "*S"], Float[Array, "*S"]]:
    """Errors bounded by `CLIP` times their usual sizes, and these sizes afterwards (0: none seen yet)."""
    size, bound = jnp.abs(error), CLIP * usual
    bounded = jnp.where((usual > 0.0) & (size > bound), jnp.sign(error) * bound, error)
    return bounded, jnp.where(usual == 0.0, size, usual + USUAL * (jnp.minimum(size, 2.0 * bound) - usual))


def _visit(belief: Covariance, X: Array, error: Array, drift: float, idle: Array) -> Covariance:
    """Condition the beliefs of all groups on their error, then let a visit pass; nothing happens where `idle`."""
    one, D = jnp.ones((1, 1)), X.shape[1]
    new = jax.vmap(lambda b, x, e: b.condition(x[None], one, e[None]).belief.add(jnp.full(D, drift)))(belief, X, error)
    return jax.tree.map(lambda after, before: jnp.where(idle, before, after), new, belief)
