"""Published filters, and banks of them: one system, several that compete, several that take turns."""

from typing import Any

from filtax import auxiliary, priors
from filtax.bone import Bone
from filtax.grammar import method
from filtax.methods.row import row
from filtax.weighting import fixed_share, gated, responsibilities

__all__ = [
    "abeles_2024",
    "chaer_1997",
    "chang_athans_1978",
    "ghahramani_hinton_2000",
    "kalman_1960",
    "liu_2023",
    "magill_1965",
]


@row("filtering", "gradual", "C", "LSSM", "LG", "DA[1]")
def kalman_1960(model: Any, dynamics: Any) -> Bone:
    """Kalman (1960): a linear state-space model, given as `filtax.priors.linear_dynamics`.

    >>> import filtax as fx
    >>> kalman_1960(fx.models.linear(noise=1.0), fx.priors.linear_dynamics(F=0.9, Q=0.1)).name
    'LG+C-LSSM'
    """
    return method("LG+C-LSSM", model=model, prior=dynamics)


@row("filtering", "gradual", "ME", "LSSM", "LG", "DA[K]")
def magill_1965(model: Any, dynamics: list) -> Bone:
    """Magill (1965): a bank of Kalman filters, of which one is right for the whole stream.

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> magill_1965(fx.models.linear(noise=1.0), pair).name
    'LG+ME[2]-LSSM'
    """
    return _bank(model, dynamics)


@row("filtering", "both", "ME", "LSSM", "LG", "CA")
def chang_athans_1978(model: Any, dynamics: list, transition: Any) -> Bone:
    """Chang and Athans (1978): switching Kalman filters, merged into one belief at each tick (GPB).

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> chang_athans_1978(fx.models.linear(noise=1.0), pair, [[0.9, 0.1], [0.1, 0.9]]).auxiliary.merge
    'gpb'
    """
    return _bank(model, dynamics, transition=transition, merge="gpb")


@row("filtering", "both", "ME", "LSSM", "LG", "DA[K]")
def chaer_1997(model: Any, dynamics: list, rate: Any = 0.5) -> Bone:
    """Chaer, Bishop and Ghosh (1997): Kalman experts whose weights come from a gate that is learned online.

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> chaer_1997(fx.models.linear(noise=1.0), pair).weighting.rate
    0.5
    """
    return _bank(model, dynamics, weighting=gated(rate))


@row("switching state-space models", "both", "ME", "Static", "VB", "CA")
def ghahramani_hinton_2000(
    model: Any, transition: Any, dynamics: list | None = None, rounds: int = 5, posterior: str = "VB"
) -> Bone:
    """Ghahramani and Hinton (2000): experts with beliefs of their own, each learning from its share of a datum.

    Equal experts could not part; without `dynamics` the earlier ones are more probable at the start.

    >>> import filtax as fx
    >>> ghahramani_hinton_2000(fx.models.linear(noise=1.0), [[0.9, 0.1], [0.1, 0.9]]).name
    'RVGA+ME[2]-Static'
    """
    E = len(transition)
    start = None if dynamics else [2.0 * (E - k) / (E * (E + 1)) for k in range(E)]
    dynamics = dynamics or [priors.static()] * E
    settings = dict(prior=start, transition=transition, merge="none", weighting=responsibilities(rounds))
    return _bank(model, dynamics, posterior=posterior, **settings)


@row("prequential", "both", "ME", "LSSM", "any", "DA[K]")
def liu_2023(model: Any, dynamics: list, forget: Any = 0.01) -> Bone:
    """Liu et al. (2023): experts with dynamics of their own; weights are forgotten slowly, so that none is lost.

    >>> import filtax as fx
    >>> pair = [fx.priors.additive_inflation(0.0), fx.priors.additive_inflation(0.1)]
    >>> liu_2023(fx.models.linear(noise=1.0), pair).name
    'LG+ME[2]-ACI'
    """
    return _bank(model, dynamics, weighting=fixed_share(forget))


@row("prequential", "both", "ME", "LSSM", "LG", "DA[K]")
def abeles_2024(model: Any, dynamics: list, share: Any = 0.01) -> Bone:
    """Abeles et al. (2024): Kalman experts aggregated online; at each tick a share of the weight is spread over all.

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> abeles_2024(fx.models.linear(noise=1.0), pair).weighting.share
    0.01
    """
    return _bank(model, dynamics, weighting=fixed_share(share))


def _bank(model: Any, dynamics: list, weighting: Any = None, posterior: str = "LG", **experts: Any) -> Bone:
    """A filter for each drift."""
    each = auxiliary.experts(len(dynamics), **experts)
    name = f"{posterior}+ME[{len(dynamics)}]-Static"
    return method(name, model=model, auxiliary=each, prior=priors.by_expert(dynamics), weighting=weighting)
