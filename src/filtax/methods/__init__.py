"""Methods: `fx.method` builds one from its name, and each published method is one function here.

The five choices of a method are data: `filtax methods` prints them as a table. A default is the publication's where it
gives one, and a plain guess where it does not: hazards are of the latter kind, and `filtax methods NAME` says which.

Thesis: tab:related-bone-methods, all 21 rows, and Kurle's a second time as the text of the thesis has it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from filtax import auxiliary, priors, weighting
from filtax.bone import Bone
from filtax.methods._parse import method

__all__ = [
    "PUBLISHED",
    "REFERENCES",
    "Published",
    "abeles_2024",
    "adams_mackay_2007",
    "chaer_1997",
    "chang_2023",
    "chang_athans_1978",
    "duran_martin_2025",
    "fearnhead_liu_2007",
    "fearnhead_liu_2011",
    "galashov_2024",
    "ghahramani_hinton_2000",
    "kalman_1960",
    "knoblauch_damoulas_2018",
    "kurle_2019",
    "kurle_2019_relaxing",
    "li_2021",
    "liu_2023",
    "magill_1965",
    "mellor_shapiro_2013",
    "nassar_2022",
    "nguyen_2017",
    "source",
    "titsias_2023",
    "wilson_2010",
]


class Published(NamedTuple):
    """A row of the table: how to build it, for what task and kind of change, and its choices M.2, M.3, A.1 and A.2.

    `auxiliary`, `prior`, `posterior` and `weighting` are those of the thesis's table, except where `docs/methods.md`
    says why not.

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
    """Add the decorated function to the table."""

    def add(build: Callable[..., Bone]) -> Callable[..., Bone]:
        PUBLISHED[build.__name__] = Published(build, task, changes, *choices)
        return build

    return add


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
    """Magill (1965): several Kalman filters, one of which is right for the whole stream.

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> magill_1965(fx.models.linear(noise=1.0), pair).name
    'LG+ME[2]-LSSM'
    """
    return _experts(model, dynamics)


@_row("filtering", "both", "ME", "LSSM", "LG", "CA")
def chang_athans_1978(model: Any, dynamics: list, transition: Any) -> Bone:
    """Chang and Athans (1978): switching Kalman filters, merged into one belief at each step (GPB).

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> chang_athans_1978(fx.models.linear(noise=1.0), pair, [[0.9, 0.1], [0.1, 0.9]]).auxiliary.merge
    'gpb'
    """
    return _experts(model, dynamics, transition=transition, merge="gpb")


@_row("filtering", "both", "ME", "LSSM", "LG", "DA[K]")
def chaer_1997(model: Any, dynamics: list, rate: Any = 0.5) -> Bone:
    """Chaer, Bishop and Ghosh (1997): Kalman experts whose weights come from a gate that is learned online.

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> chaer_1997(fx.models.linear(noise=1.0), pair).weighting.rate
    0.5
    """
    return _experts(model, dynamics, weighting=weighting.gated(rate))


@_row("switching state-space models", "both", "ME", "Static", "VB", "CA")
def ghahramani_hinton_2000(
    model: Any, transition: Any, dynamics: list | None = None, rounds: int = 5, posterior: str = "VB"
) -> Bone:
    """Ghahramani and Hinton (2000): each expert has its own belief and learns from its share of each datum.

    Without `dynamics` the experts are alike, and unequal starting weights let them specialise.

    >>> import filtax as fx
    >>> ghahramani_hinton_2000(fx.models.linear(noise=1.0), [[0.9, 0.1], [0.1, 0.9]]).name
    'RVGA+ME[2]-Static'
    """
    E = len(transition)
    start = None if dynamics else [2.0 * (E - k) / (E * (E + 1)) for k in range(E)]
    dynamics = dynamics or [priors.static()] * E
    settings = dict(prior=start, transition=transition, merge="none", weighting=weighting.responsibilities(rounds))
    return _experts(model, dynamics, posterior=posterior, **settings)


@_row("segmentation", "abrupt", "RL", "PR", "Cj", "DA[inf]")
def adams_mackay_2007(model: Any, hazard: Any = 0.01, posterior: str = "LG") -> Bone:
    """Adams and MacKay (2007), BOCD: exact run lengths; a new run absorbs its first datum (errata E12).

    >>> import filtax as fx
    >>> adams_mackay_2007(fx.models.bernoulli(), posterior="Cj").name
    'Cj+RL[inf]-PR(hazard=0.01)'
    """
    return method(f"{posterior}+RL[inf]-PR(hazard=0.5)", model=model, auxiliary=auxiliary.run_length(hazard))


@_row("segmentation, prequential", "abrupt", "CPT/ME", "PR", "any", "DA[K]")
def fearnhead_liu_2007(
    model: Any, lengths: Any = 0.01, dynamics: list | None = None, keep: int = 50, posterior: str = "LG"
) -> Bone:
    """Fearnhead and Liu (2007): paths of change times; in each regime one of several dynamics, if they are given.

    >>> import filtax as fx
    >>> fearnhead_liu_2007(fx.models.linear(noise=1.0), keep=8).name
    'LG+CPT[8]-PR(hazard=0.01)'
    """
    return _paths(f"{posterior}+CPT[1]-PR(hazard=0.5)", model, lengths, dynamics, keep)


@_row("segmentation", "abrupt", "RLCC", "PR", "Cj", "DA[K]")
def wilson_2010(model: Any, a: Any = 1.0, b: Any = 99.0, keep: int = 100, posterior: str = "LG") -> Bone:
    """Wilson, Nassar and Gold (2010): the hazard is unknown, with a Beta(a, b) prior.

    >>> import filtax as fx
    >>> wilson_2010(fx.models.linear(noise=1.0), keep=10).name
    'LG+RLCC[10](a=1.0, b=99.0)-PR'
    """
    return method(f"{posterior}+RLCC[1]-PR", model=model, auxiliary=auxiliary.run_length_count(a, b, keep=keep))


@_row("segmentation", "abrupt", "CPT/ME", "MMPR", "any", "DA[K]")
def fearnhead_liu_2011(
    model: Any, lengths: Any = 0.01, dynamics: list | None = None, keep: int = 50, posterior: str = "LG"
) -> Bone:
    """Fearnhead and Liu (2011): parameters after a change are like those before it.

    >>> import filtax as fx
    >>> fearnhead_liu_2011(fx.models.linear(noise=1.0), keep=8).prior.name
    'MMPR'
    """
    return _paths(f"{posterior}+CPT[1]-MMPR(hazard=0.5)", model, lengths, dynamics, keep)


@_row("bandits", "abrupt", "RL", "PR", "Cj", "DA[inf]")
def mellor_shapiro_2013(model: Any, hazard: Any = 0.01) -> Bone:
    """Mellor and Shapiro (2013): run lengths over Beta-Bernoulli arms, for changepoint Thompson sampling.

    >>> import filtax as fx
    >>> mellor_shapiro_2013(fx.models.bernoulli()).name
    'Cj+RL[inf]-PR(hazard=0.01)'
    """
    return adams_mackay_2007(model, hazard, posterior="Cj")


@_row("online continual learning", "abrupt", "CPL", "Sub", "VB", "DA[1]")
def nguyen_2017(model: Any, memory: int = 16, posterior: str = "VB") -> Bone:
    """Nguyen et al. (2017), VCL: all data belong; the last ones are a coreset, learned again at each step.

    >>> import filtax as fx
    >>> nguyen_2017(fx.models.linear(noise=1.0)).name
    'RVGA+CPL[1](belong=1.0, memory=16, fold=True)-Sub'
    """
    return method(f"{posterior}+CPL[1](belong=1.0, memory={memory}, fold=True)-Sub", model=model)


@_row("segmentation", "both", "RL/ME", "PR", "Cj", "DA[K]")
def knoblauch_damoulas_2018(
    model: Any, dynamics: list, hazard: Any = 0.01, keep: int = 50, posterior: str = "LG"
) -> Bone:
    """Knoblauch and Damoulas (2018): each regime follows one of several dynamics.

    >>> import filtax as fx
    >>> pair = [fx.priors.additive_inflation(0.0), fx.priors.additive_inflation(0.1)]
    >>> knoblauch_damoulas_2018(fx.models.linear(noise=1.0), pair, keep=8).name
    'LG+RL[8]/ME[2]-PR(hazard=0.01)'
    """
    inside = auxiliary.experts(len(dynamics))
    runs = auxiliary.run_length(hazard, keep=keep, experts=inside)
    return method(f"{posterior}+RL[1]-PR(hazard=0.5)", model=model, auxiliary=runs, prior=priors.by_expert(dynamics))


@_row("online continual learning", "gradual", "CPV", "Sub", "VB", "DA[1]")
def kurle_2019(model: Any, rate: Any = 0.9, memory: int = 16, posterior: str = "VB") -> Bone:
    """Kurle et al. (2019): a running memory in which a datum of age a counts as rate^a, as in the thesis' table.

    >>> import filtax as fx
    >>> kurle_2019(fx.models.linear(noise=1.0)).name
    'RVGA+CPV(rate=0.9, memory=16)-Sub'
    """
    shares = auxiliary.membership_vector(rate=rate, memory=memory)
    return method(f"{posterior}+CPV-Sub", model=model, auxiliary=shares)


@_row("online continual learning", "gradual", "C", "OU", "VB", "DA[1]")
def kurle_2019_relaxing(model: Any, rate: Any = 0.99, posterior: str = "LG") -> Bone:
    """Kurle et al. (2019), as in the text of the thesis: the belief relaxes towards the initial one.

    >>> import filtax as fx
    >>> kurle_2019_relaxing(fx.models.linear(noise=1.0)).name
    'LG+C-OU(rate=0.99)'
    """
    return method(f"{posterior}+C-OU", model=model, prior=priors.ornstein_uhlenbeck(rate))


@_row("online continual learning", "abrupt", "CPL", "MCI", "VB", "DA[K]")
def li_2021(model: Any, hazard: Any = 0.01, beta: Any = 0.5, keep: int = 6, posterior: str = "LG") -> Bone:
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


@_row("bandits, online continual learning", "abrupt", "CPV", "Sub", "LG", "DA[1]")
def nassar_2022(model: Any, belong: Any = 0.5, memory: int = 16, binary: bool = False, posterior: str = "LG") -> Bone:
    """Nassar et al. (2022), BAM: finds for each datum the past data, or shares of them, that belong with it.

    >>> import filtax as fx
    >>> [nassar_2022(fx.models.linear(noise=1.0), memory=4, binary=b).auxiliary.name for b in (False, True)]
    ['CPV', 'CPL']
    """
    shares = auxiliary.membership_vector(belong=belong, memory=memory)
    subsets = auxiliary.membership(belong=belong, memory=memory, keep=1)
    return method(f"{posterior}+CPV-Sub", model=model, auxiliary=subsets if binary else shares)


@_row("prequential", "both", "ME", "LSSM", "any", "DA[K]")
def liu_2023(model: Any, dynamics: list, forget: Any = 0.01) -> Bone:
    """Liu et al. (2023): each expert has its own dynamics; weights are forgotten slowly, so that no expert is lost.

    >>> import filtax as fx
    >>> pair = [fx.priors.additive_inflation(0.0), fx.priors.additive_inflation(0.1)]
    >>> liu_2023(fx.models.linear(noise=1.0), pair).name
    'LG+ME[2]-ACI'
    """
    return _experts(model, dynamics, weighting=weighting.fixed_share(forget))


@_row("online continual learning", "gradual", "C", "ACI", "LG", "DA[1]")
def chang_2023(model: Any, q: Any = 1e-4, rank: int = 10, form: str = "diagonal") -> Bone:
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


@_row("prequential", "both", "ME", "LSSM", "LG", "DA[K]")
def abeles_2024(model: Any, dynamics: list, share: Any = 0.01) -> Bone:
    """Abeles et al. (2024): Kalman experts, aggregated online; at each step a share of the weight is spread over all.

    >>> import filtax as fx
    >>> pair = [fx.priors.linear_dynamics(F=0.9, Q=0.1), fx.priors.linear_dynamics(F=0.5, Q=0.1)]
    >>> abeles_2024(fx.models.linear(noise=1.0), pair).weighting.share
    0.01
    """
    return _experts(model, dynamics, weighting=weighting.fixed_share(share))


@_row("continual learning", "both", "CPP", "OU", "VB", "CA")
def galashov_2024(model: Any, steps: int = 10, posterior: str = "LG") -> Bone:
    """Galashov et al. (2024): CPP-OU with one share for each parameter.

    >>> import filtax as fx
    >>> galashov_2024(fx.models.linear(noise=1.0)).name
    'LG+CPP-OU(each_parameter=True)'
    """
    prior = priors.empirical_ou(each_parameter=True, steps=steps)
    return method(f"{posterior}+CPP-OU", model=model, prior=prior)


@_row("any", "both", "RL", "OUPR", "any", "DA[1]")
def duran_martin_2025(model: Any, hazard: Any = 0.01, threshold: Any = 0.5, posterior: str = "LG") -> Bone:
    """The thesis' own RL[1]-OUPR: one hypothesis that relaxes or resets, as the datum decides.

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


def _experts(model: Any, dynamics: list, weighting: Any = None, posterior: str = "LG", **settings: Any) -> Bone:
    """One filter for each of the dynamics."""
    E, prior = len(dynamics), priors.by_expert(dynamics)
    each = auxiliary.experts(E, **settings)
    return method(f"{posterior}+ME[{E}]-Static", model=model, auxiliary=each, prior=prior, weighting=weighting)


def _paths(name: str, model: Any, lengths: Any, dynamics: list | None, keep: int) -> Bone:
    """Change times under a law of segment lengths, with an expert for each of the dynamics."""
    inside = None if dynamics is None else auxiliary.experts(len(dynamics))
    times = auxiliary.change_times(lengths, keep=keep, experts=inside)
    return method(name, model=model, auxiliary=times, prior=None if dynamics is None else priors.by_expert(dynamics))


REFERENCES: dict[str, str] = {
    "kalman_1960": "R. E. Kalman. A new approach to linear filtering and prediction problems. J. Basic Eng. 82, 1960.",
    "magill_1965": "D. T. Magill. Optimal adaptive estimation of sampled stochastic processes. IEEE TAC 10, 1965.",
    "chang_athans_1978": "C. B. Chang and M. Athans. State estimation for discrete systems with switching parameters. "
    "IEEE Trans. AES 14, 1978.",
    "chaer_1997": "W. S. Chaer, R. H. Bishop and J. Ghosh. A mixture-of-experts framework for adaptive Kalman "
    "filtering. IEEE Trans. SMC B 27, 1997.",
    "ghahramani_hinton_2000": "Z. Ghahramani and G. E. Hinton. Variational learning for switching state-space models. "
    "Neural Computation 12, 2000.",
    "adams_mackay_2007": "R. P. Adams and D. J. C. MacKay. Bayesian online changepoint detection. "
    "arXiv:0710.3742, 2007.",
    "fearnhead_liu_2007": "P. Fearnhead and Z. Liu. On-line inference for multiple changepoint problems. "
    "JRSS B 69, 2007.",
    "wilson_2010": "R. C. Wilson, M. R. Nassar and J. I. Gold. Bayesian online learning of the hazard rate in "
    "change-point problems. Neural Computation 22, 2010.",
    "fearnhead_liu_2011": "P. Fearnhead and Z. Liu. Efficient Bayesian analysis of multiple changepoint models with "
    "dependence across segments. Statistics and Computing 21, 2011.",
    "mellor_shapiro_2013": "J. Mellor and J. Shapiro. Thompson sampling in switching environments with Bayesian online "
    "change detection. AISTATS 2013.",
    "nguyen_2017": "C. V. Nguyen, Y. Li, T. D. Bui and R. E. Turner. Variational continual learning. "
    "arXiv:1710.10628, 2017.",
    "knoblauch_damoulas_2018": "J. Knoblauch and T. Damoulas. Spatio-temporal Bayesian on-line changepoint detection "
    "with model selection. ICML 2018.",
    "kurle_2019": "R. Kurle, B. Cseke, A. Klushyn, P. van der Smagt and S. Günnemann. Continual learning with Bayesian "
    "neural networks for non-stationary data. ICLR 2020.",
    "li_2021": "A. Li, A. Boyd, P. Smyth and S. Mandt. Detecting and adapting to irregular distribution shifts in "
    "Bayesian online learning. NeurIPS 2021.",
    "nassar_2022": "J. Nassar, J. Brennan, B. Evans and K. Lowrey. BAM: Bayes with adaptive memory. ICLR 2022.",
    "liu_2023": "B. Liu. Robust sequential online prediction with dynamic ensemble of multiple models. "
    "Neurocomputing 552, 2023.",
    "chang_2023": "P. G. Chang, G. Durán-Martín, A. Shestopaloff, M. Jones and K. Murphy. Low-rank extended Kalman "
    "filtering for online learning of neural networks from streaming data. CoLLAs 2023.",
    "titsias_2023": "M. K. Titsias, A. Galashov, A. Rannen-Triki, R. Pascanu, Y. W. Teh and J. Bornschein. Kalman "
    "filter for online classification of non-stationary data. arXiv:2306.08448, 2023.",
    "galashov_2024": "A. Galashov, M. K. Titsias, A. György, C. Lyle, R. Pascanu, Y. W. Teh and M. Sahani. "
    "Non-stationary learning of neural networks with automatic soft parameter reset. NeurIPS 2024.",
    "abeles_2024": "B. Abélès, J. de Vilmarest and O. Wintenberger. Adaptive time series forecasting with Markovian "
    "variance switching. arXiv:2402.14684, 2024.",
    "duran_martin_2025": "G. Durán-Martín. The thesis itself, RL[1]-OUPR*; sec:SPR.",
}
REFERENCES["kurle_2019_relaxing"] = REFERENCES["kurle_2019"]

_FROM = {
    ("duran_martin_2025", "threshold"): "the thesis: back to the prior when a change is the more probable",
    ("li_2021", "keep"): "the publication's experiments",
}


def source(name: str, parameter: str) -> str:
    """Say where a default of a published method comes from.

    >>> source("adams_mackay_2007", "hazard")
    'ours, a plain guess'
    >>> source("kalman_1960", "posterior")
    'ours; any other name of the grammar will do'
    """
    if parameter == "posterior":
        return "ours; any other name of the grammar will do"
    return _FROM.get((name, parameter), "ours, a plain guess")
