"""Published methods that watch for changes: run lengths, their count, change times."""

from typing import Any

from filtax import auxiliary, priors
from filtax.bone import Bone
from filtax.grammar import method
from filtax.methods.row import row

__all__ = [
    "adams_mackay_2007",
    "duran_martin_2025",
    "fearnhead_liu_2007",
    "fearnhead_liu_2011",
    "knoblauch_damoulas_2018",
    "mellor_shapiro_2013",
    "wilson_2010",
]


@row("segmentation", "abrupt", "RL", "PR", "Cj", "DA[inf]")
def adams_mackay_2007(model: Any, hazard: Any = 0.01, posterior: str = "LG") -> Bone:
    """Adams and MacKay (2007), BOCD: exact run lengths; a newborn absorbs the datum it is born with (errata E12).

    >>> import filtax as fx
    >>> adams_mackay_2007(fx.models.bernoulli(), posterior="Cj").name
    'Cj+RL[inf]-PR(hazard=0.01)'
    """
    return method(f"{posterior}+RL[inf]-PR(hazard=0.5)", model=model, auxiliary=auxiliary.run_length(hazard))


@row("segmentation, prequential", "abrupt", "CPT/ME", "PR", "any", "DA[K]")
def fearnhead_liu_2007(
    model: Any, lengths: Any = 0.01, dynamics: list | None = None, keep: int = 50, posterior: str = "LG"
) -> Bone:
    """Fearnhead and Liu (2007): paths of change times; in each regime one of several drifts, if they are given.

    >>> import filtax as fx
    >>> fearnhead_liu_2007(fx.models.linear(noise=1.0), keep=8).name
    'LG+CPT[8]-PR(hazard=0.01)'
    """
    return _paths(f"{posterior}+CPT[1]-PR(hazard=0.5)", model, lengths, dynamics, keep)


@row("segmentation", "abrupt", "RLCC", "PR", "Cj", "DA[K]")
def wilson_2010(model: Any, a: Any = 1.0, b: Any = 99.0, keep: int = 100, posterior: str = "LG") -> Bone:
    """Wilson, Nassar and Gold (2010): the hazard is unknown, with a Beta(a, b) prior.

    >>> import filtax as fx
    >>> wilson_2010(fx.models.linear(noise=1.0), keep=10).name
    'LG+RLCC[10](a=1.0, b=99.0)-PR'
    """
    return method(f"{posterior}+RLCC[1]-PR", model=model, auxiliary=auxiliary.run_length_count(a, b, keep=keep))


@row("segmentation", "abrupt", "CPT/ME", "MMPR", "any", "DA[K]")
def fearnhead_liu_2011(
    model: Any, lengths: Any = 0.01, dynamics: list | None = None, keep: int = 50, posterior: str = "LG"
) -> Bone:
    """Fearnhead and Liu (2011): parameters before and after a change are alike; for models that know their regime.

    >>> import filtax as fx
    >>> fearnhead_liu_2011(fx.models.linear(noise=1.0), keep=8).prior.name
    'MMPR'
    """
    return _paths(f"{posterior}+CPT[1]-MMPR(hazard=0.5)", model, lengths, dynamics, keep)


@row("bandits", "abrupt", "RL", "PR", "Cj", "DA[inf]")
def mellor_shapiro_2013(model: Any, hazard: Any = 0.01) -> Bone:
    """Mellor and Shapiro (2013): run lengths over Beta-Bernoulli arms, for changepoint Thompson sampling.

    >>> import filtax as fx
    >>> mellor_shapiro_2013(fx.models.bernoulli()).name
    'Cj+RL[inf]-PR(hazard=0.01)'
    """
    return adams_mackay_2007(model, hazard, posterior="Cj")


@row("segmentation", "both", "RL/ME", "PR", "Cj", "DA[K]")
def knoblauch_damoulas_2018(
    model: Any, dynamics: list, hazard: Any = 0.01, keep: int = 50, posterior: str = "LG"
) -> Bone:
    """Knoblauch and Damoulas (2018): in each regime one of several models holds, here several drifts of one model.

    >>> import filtax as fx
    >>> pair = [fx.priors.additive_inflation(0.0), fx.priors.additive_inflation(0.1)]
    >>> knoblauch_damoulas_2018(fx.models.linear(noise=1.0), pair, keep=8).name
    'LG+RL[8]/ME[2]-PR(hazard=0.01)'
    """
    inside = auxiliary.experts(len(dynamics))
    runs = auxiliary.run_length(hazard, keep=keep, experts=inside)
    return method(f"{posterior}+RL[1]-PR(hazard=0.5)", model=model, auxiliary=runs, prior=priors.by_expert(dynamics))


@row("any", "both", "RL", "OUPR", "any", "DA[1]")
def duran_martin_2025(model: Any, hazard: Any = 0.01, threshold: Any = 0.5, posterior: str = "LG") -> Bone:
    """The thesis' own RL[1]-OUPR: one hypothesis that relaxes or resets, as far as the datum asks for it.

    >>> import filtax as fx
    >>> duran_martin_2025(fx.models.linear(noise=1.0)).name
    'LG+RL[1]-OUPR(hazard=0.01)'
    """
    return method(
        f"{posterior}+RL[1]-OUPR(hazard=0.5)",
        model=model,
        auxiliary=auxiliary.run_length(hazard, keep=1),
        prior=priors.ou_reset(threshold),
    )


def _paths(name: str, model: Any, lengths: Any, dynamics: list | None, keep: int) -> Bone:
    """Change times under a law of lengths, with an expert for each drift."""
    inside = None if dynamics is None else auxiliary.experts(len(dynamics))
    times = auxiliary.change_times(lengths, keep=keep, experts=inside)
    return method(name, model=model, auxiliary=times, prior=None if dynamics is None else priors.by_expert(dynamics))
