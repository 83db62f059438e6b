"""Published methods that go on learning while the world changes: by forgetting, widening, or remembering."""

from typing import Any

from filtax import auxiliary, priors
from filtax.bone import Bone
from filtax.grammar import method
from filtax.methods.row import row

__all__ = [
    "chang_2023",
    "galashov_2024",
    "kurle_2019",
    "kurle_2019_relaxing",
    "li_2021",
    "nassar_2022",
    "nguyen_2017",
    "titsias_2023",
]


@row("online continual learning", "abrupt", "CPL", "Sub", "VB", "DA[1]")
def nguyen_2017(model: Any, memory: int = 16, posterior: str = "VB") -> Bone:
    """Nguyen et al. (2017), VCL: all data belong; the last ones are a coreset, learned again at each datum.

    >>> import filtax as fx
    >>> nguyen_2017(fx.models.linear(noise=1.0)).name
    'RVGA+CPL[1](belong=1.0, memory=16, fold=True)-Sub'
    """
    return method(f"{posterior}+CPL[1](belong=1.0, memory={memory}, fold=True)-Sub", model=model)


@row("online continual learning", "gradual", "CPV", "Sub", "VB", "DA[1]")
def kurle_2019(model: Any, rate: Any = 0.9, memory: int = 16, posterior: str = "VB") -> Bone:
    """Kurle et al. (2019): a running memory in which a datum of age a counts as rate^a, as in the thesis' table.

    >>> import filtax as fx
    >>> kurle_2019(fx.models.linear(noise=1.0)).name
    'RVGA+CPV(rate=0.9, memory=16)-Sub'
    """
    shares = auxiliary.membership_vector(rate=rate, memory=memory)
    return method(f"{posterior}+CPV-Sub", model=model, auxiliary=shares)


@row("online continual learning", "gradual", "C", "OU", "VB", "DA[1]")
def kurle_2019_relaxing(model: Any, rate: Any = 0.99, posterior: str = "LG") -> Bone:
    """Kurle et al. (2019), as in the text of the thesis: the belief relaxes towards the initial one.

    >>> import filtax as fx
    >>> kurle_2019_relaxing(fx.models.linear(noise=1.0)).name
    'LG+C-OU(rate=0.99)'
    """
    return method(f"{posterior}+C-OU", model=model, prior=priors.ornstein_uhlenbeck(rate))


@row("online continual learning", "abrupt", "CPL", "MCI", "VB", "DA[K]")
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


@row("bandits, online continual learning", "abrupt", "CPV", "Sub", "LG", "DA[1]")
def nassar_2022(model: Any, belong: Any = 0.5, memory: int = 16, binary: bool = False, posterior: str = "LG") -> Bone:
    """Nassar et al. (2022), BAM: looks back at each datum for the past data, or shares of them, that belong with it.

    >>> import filtax as fx
    >>> [nassar_2022(fx.models.linear(noise=1.0), memory=4, binary=b).auxiliary.name for b in (False, True)]
    ['CPV', 'CPL']
    """
    shares = auxiliary.membership_vector(belong=belong, memory=memory)
    subsets = auxiliary.membership(belong=belong, memory=memory, keep=1)
    return method(f"{posterior}+CPV-Sub", model=model, auxiliary=subsets if binary else shares)


@row("online continual learning", "gradual", "C", "ACI", "LG", "DA[1]")
def chang_2023(model: Any, q: Any = 1e-4, rank: int = 10, form: str = "diagonal") -> Bone:
    """Chang et al. (2023), LoFi: a network whose weights walk at random, with a precision diagonal plus low rank.

    >>> import filtax as fx
    >>> chang_2023(fx.models.linear(noise=1.0)).name
    'LoFi(rank=10)+C-ACI(q=0.0001)'
    """
    return method(f"LoFi(rank={rank}, form={form})+C-ACI", model=model, prior=priors.additive_inflation(q))


@row("online continual learning", "both", "CPP", "OU", "LG", "CA")
def titsias_2023(model: Any) -> Bone:
    """Titsias et al. (2023): keep the share of the belief under which the datum is most probable.

    >>> import filtax as fx
    >>> titsias_2023(fx.models.linear(noise=1.0)).name
    'LG+CPP-OU'
    """
    return method("LG+CPP-OU", model=model)


@row("continual learning", "both", "CPP", "OU", "VB", "CA")
def galashov_2024(model: Any, steps: int = 10, posterior: str = "LG") -> Bone:
    """Galashov et al. (2024): the same with a share for each parameter.

    >>> import filtax as fx
    >>> galashov_2024(fx.models.linear(noise=1.0)).name
    'LG+CPP-OU(each_parameter=True)'
    """
    prior = priors.empirical_ou(each_parameter=True, steps=steps)
    return method(f"{posterior}+CPP-OU", model=model, prior=prior)
