"""The catalogue: one short function for each published method, made of the same parts as everything else.

The five choices of a method are data: `filtax methods` prints them as a table. A default is the publication's where it
gives one, and a plain guess where it does not: hazards are of the latter kind.

Thesis: tab:related-bone-methods. Of its 21 rows five are not here yet: those that need a memory of data (VCL, and the
CPV-Sub of Kurle and of Nassar), gates learnt by gradient (Chaer), or variational responsibilities (Ghahramani and
Hinton).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from filtax import auxiliary, priors
from filtax.bone import Bone
from filtax.grammar import method
from filtax.weighting import fixed_share

__all__ = [
    "PUBLISHED",
    "Published",
    "abeles_2024",
    "adams_mackay_2007",
    "chang_2023",
    "chang_athans_1978",
    "duran_martin_2025",
    "fearnhead_liu_2007",
    "fearnhead_liu_2011",
    "galashov_2024",
    "kalman_1960",
    "knoblauch_damoulas_2018",
    "kurle_2019",
    "li_2021",
    "liu_2023",
    "magill_1965",
    "mellor_shapiro_2013",
    "titsias_2023",
    "wilson_2010",
]


class Published(NamedTuple):
    """A row of the table: how to build it, for what task and kind of change, and its choices M.2, M.3, A.1 and A.2.

    >>> PUBLISHED["adams_mackay_2007"].auxiliary
    'RL'
    """

    build: Callable[..., Bone]
    task: str
    changes: str
    auxiliary: str
    prior: str
    posterior: str
    weighting: str


PUBLISHED: dict[str, Published] = {}


def _row(task: str, changes: str, *choices: str) -> Callable[[Callable[..., Bone]], Callable[..., Bone]]:
    def note(build: Callable[..., Bone]) -> Callable[..., Bone]:
        PUBLISHED[build.__name__] = Published(build, task, changes, *choices)
        return build

    return note


@_row("filtering", "gradual", "C", "LSSM", "LG", "DA[1]")
def kalman_1960(model: Any, dynamics: Any) -> Bone:
    """Kalman (1960): a linear state-space model, given as `filtax.priors.linear_dynamics`.

    >>> import filtax as fx
    >>> kalman_1960(fx.models.linear(noise=1.0), fx.priors.linear_dynamics(F=0.9, Q=0.1)).name
    'LG+C-LSSM'
    """
    return method("LG+C-LSSM", model=model, prior=dynamics)


@_row("filtering", "gradual", "ME", "LSSM", "LG", "DA[K]")
def magill_1965(model: Any, dynamics: list) -> Bone:
    """Magill (1965): a bank of Kalman filters, of which one is right for the whole stream.

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> magill_1965(fx.models.linear(noise=1.0), pair).name
    'LG+ME[2]-LSSM'
    """
    return _bank(model, dynamics)


@_row("filtering", "both", "ME", "LSSM", "LG", "CA")
def chang_athans_1978(model: Any, dynamics: list, transition: Any) -> Bone:
    """Chang and Athans (1978): switching Kalman filters, merged into one belief at each tick (GPB).

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> chang_athans_1978(fx.models.linear(noise=1.0), pair, [[0.9, 0.1], [0.1, 0.9]]).auxiliary.merge
    'gpb'
    """
    return _bank(model, dynamics, transition=transition, merge="gpb")


@_row("segmentation", "abrupt", "RL", "PR", "Cj", "DA[inf]")
def adams_mackay_2007(model: Any, hazard: Any = 0.01, posterior: str = "LG") -> Bone:
    """Adams and MacKay (2007), BOCD: exact run lengths; a newborn absorbs the datum it is born with (errata E12).

    >>> import filtax as fx
    >>> adams_mackay_2007(fx.models.bernoulli(), posterior="Cj").name
    'Cj+RL[inf]-PR(hazard=0.01)'
    """
    return method(f"{posterior}+RL[inf]-PR(hazard=0.5)", model=model, auxiliary=auxiliary.run_length(hazard))


@_row("segmentation, prequential", "abrupt", "CPT", "PR", "any", "DA[K]")
def fearnhead_liu_2007(model: Any, lengths: Any = 0.01, keep: int = 50, posterior: str = "LG") -> Bone:
    """Fearnhead and Liu (2007): paths of change times under a law of segment lengths; `keep` of them are kept.

    >>> import filtax as fx
    >>> fearnhead_liu_2007(fx.models.linear(noise=1.0), keep=8).name
    'LG+CPT[8]-PR(hazard=0.01)'
    """
    return method(
        f"{posterior}+CPT[1]-PR(hazard=0.5)", model=model, auxiliary=auxiliary.change_times(lengths, keep=keep)
    )


@_row("segmentation", "abrupt", "RLCC", "PR", "Cj", "DA[K]")
def wilson_2010(model: Any, a: float = 1.0, b: float = 99.0, keep: int = 100, posterior: str = "LG") -> Bone:
    """Wilson, Nassar and Gold (2010): the hazard is unknown, with a Beta(a, b) prior.

    >>> import filtax as fx
    >>> wilson_2010(fx.models.linear(noise=1.0), keep=10).name
    'LG+RLCC[10](a=1.0, b=99.0)-PR'
    """
    return method(f"{posterior}+RLCC[1]-PR", model=model, auxiliary=auxiliary.run_length_count(a, b, keep=keep))


@_row("segmentation", "abrupt", "CPT", "MMPR", "any", "DA[K]")
def fearnhead_liu_2011(model: Any, lengths: Any = 0.01, keep: int = 50, posterior: str = "LG") -> Bone:
    """Fearnhead and Liu (2011): parameters before and after a change are alike; for models that know their regime.

    >>> import filtax as fx
    >>> fearnhead_liu_2011(fx.models.linear(noise=1.0), keep=8).prior.name
    'MMPR'
    """
    return method(
        f"{posterior}+CPT[1]-MMPR(hazard=0.5)", model=model, auxiliary=auxiliary.change_times(lengths, keep=keep)
    )


@_row("bandits", "abrupt", "RL", "PR", "Cj", "DA[inf]")
def mellor_shapiro_2013(model: Any, hazard: Any = 0.01) -> Bone:
    """Mellor and Shapiro (2013): run lengths over Beta-Bernoulli arms, for changepoint Thompson sampling.

    >>> import filtax as fx
    >>> mellor_shapiro_2013(fx.models.bernoulli()).name
    'Cj+RL[inf]-PR(hazard=0.01)'
    """
    return adams_mackay_2007(model, hazard, posterior="Cj")


@_row("segmentation", "both", "RL/ME", "PR", "Cj", "DA[K]")
def knoblauch_damoulas_2018(model: Any, drifts: list, hazard: Any = 0.01, keep: int = 50) -> Bone:
    """Knoblauch and Damoulas (2018): in each regime one of several models holds, here several drifts of one model.

    >>> import filtax as fx
    >>> pair = [fx.priors.additive_inflation(0.0), fx.priors.additive_inflation(0.1)]
    >>> knoblauch_damoulas_2018(fx.models.linear(noise=1.0), pair, keep=8).name
    'LG+RL[8]/ME[2]-PR(hazard=0.01)'
    """
    inside = auxiliary.experts(len(drifts))
    runs = auxiliary.run_length(hazard, keep=keep, experts=inside)
    return method("LG+RL[1]-PR(hazard=0.5)", model=model, auxiliary=runs, prior=priors.by_expert(drifts))


@_row("online continual learning", "gradual", "C", "OU", "VB", "DA[1]")
def kurle_2019(model: Any, rate: float = 0.99, posterior: str = "LG") -> Bone:
    """Kurle et al. (2019), as in the text of the thesis: the belief relaxes towards the initial one.

    >>> import filtax as fx
    >>> kurle_2019(fx.models.linear(noise=1.0)).name
    'LG+C-OU(rate=0.99)'
    """
    return method(f"{posterior}+C-OU", model=model, prior=priors.ornstein_uhlenbeck(rate))


@_row("online continual learning", "abrupt", "CPL", "MCI", "VB", "DA[K]")
def li_2021(model: Any, hazard: Any = 0.01, beta: float = 0.5, keep: int = 6, posterior: str = "LG") -> Bone:
    """Li et al. (2021): a change widens the belief; a beam of `keep` histories is followed.

    >>> import filtax as fx
    >>> li_2021(fx.models.linear(noise=1.0)).name
    'LG+CPL[6]-MCI(hazard=0.01)'
    """
    return method(
        f"{posterior}+CPL[1]-MCI(hazard=0.5)",
        model=model,
        auxiliary=auxiliary.change_locations(hazard, keep=keep),
        prior=priors.covariance_inflation(beta),
    )


@_row("prequential", "both", "ME", "LSSM", "any", "DA[K]")
def liu_2023(model: Any, dynamics: list, forget: float = 0.01) -> Bone:
    """Liu et al. (2023): experts with dynamics of their own; weights are forgotten slowly, so that none is lost.

    >>> import filtax as fx
    >>> pair = [fx.priors.additive_inflation(0.0), fx.priors.additive_inflation(0.1)]
    >>> liu_2023(fx.models.linear(noise=1.0), pair).name
    'LG+ME[2]-ACI'
    """
    return _bank(model, dynamics, weighting=fixed_share(forget))


@_row("online continual learning", "gradual", "C", "ACI", "LG", "DA[1]")
def chang_2023(model: Any, q: float = 1e-4, rank: int = 10, form: str = "diagonal") -> Bone:
    """Chang et al. (2023), LoFi: a network whose weights walk at random, with a precision diagonal plus low rank.

    >>> import filtax as fx
    >>> chang_2023(fx.models.linear(noise=1.0)).name
    'LoFi(rank=10)+C-ACI(q=0.0001)'
    """
    return method(f"LoFi(rank={rank}, form={form})+C-ACI", model=model, prior=priors.additive_inflation(q))


@_row("online continual learning", "both", "CPP", "OU", "LG", "CA")
def titsias_2023(model: Any) -> Bone:
    """Titsias et al. (2023): keep the share of the belief under which the datum is most probable.

    >>> import filtax as fx
    >>> titsias_2023(fx.models.linear(noise=1.0)).name
    'LG+CPP-OU'
    """
    return method("LG+CPP-OU", model=model)


@_row("continual learning", "both", "CPP", "OU", "VB", "CA")
def galashov_2024(model: Any, steps: int = 10, posterior: str = "LG") -> Bone:
    """Galashov et al. (2024): the same with a share for each parameter.

    >>> import filtax as fx
    >>> galashov_2024(fx.models.linear(noise=1.0)).name
    'LG+CPP-OU(each_parameter=True)'
    """
    prior = priors.empirical_ou(each_parameter=True, steps=steps)
    return method(f"{posterior}+CPP-OU", model=model, prior=prior)


@_row("prequential", "both", "ME", "LSSM", "LG", "DA[K]")
def abeles_2024(model: Any, dynamics: list, share: float = 0.01) -> Bone:
    """Abeles et al. (2024): Kalman experts aggregated online; at each tick a share of the weight is spread over all.

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> abeles_2024(fx.models.linear(noise=1.0), pair).weighting.share
    0.01
    """
    return _bank(model, dynamics, weighting=fixed_share(share))


@_row("any", "both", "RL", "OUPR", "any", "DA[1]")
def duran_martin_2025(model: Any, hazard: Any = 0.01, threshold: float = 0.5, posterior: str = "LG") -> Bone:
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


def _bank(model: Any, drifts: list, weighting: Any = None, **experts: Any) -> Bone:
    """A filter for each drift."""
    each = auxiliary.experts(len(drifts), **experts)
    name = f"LG+ME[{len(drifts)}]-Static"
    return method(name, model=model, auxiliary=each, prior=priors.by_expert(drifts), weighting=weighting)
