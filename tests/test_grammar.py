"""The grammar of names: what each name builds, that a method spells its own name, and how a wrong one is refused."""

import re

import jax.numpy as jnp
import pytest

import filtax as fx
from filtax.auxiliary import Constant
from filtax.beliefs import Beta, Gamma
from filtax.models import Direct
from filtax.posteriors import Conjugate, Extended, UnknownNoise
from filtax.priors import Continue, additive_inflation
from filtax.weighting import Exact

LINEAR = fx.models.linear(noise=0.25)


def build(name, model=LINEAR, **parts):
    return fx.method(name, model=model, **parts)


def test_what_the_names_stand_for():
    """The five parts, with their defaults; a star and spaces around do not matter."""
    plain = build(" LG+C-Static* ")
    assert isinstance(plain.auxiliary, Constant)
    assert isinstance(plain.weighting, Exact)
    assert isinstance(plain.prior, Continue)
    assert plain.posterior == Extended("auto", 1)
    assert build("C-Static").posterior == plain.posterior  # LG may be omitted
    assert build("IEKF+C-Static").posterior == Extended("auto", 5)
    assert build("NIG+C-Static").posterior == UnknownNoise(1.0, 1.0, "auto")
    assert build("LG+C-ACI( q = 1e-2 )").prior.dynamics.q == 0.01
    dynamics = build("LG+C-SP(q=0.2, shrink=0.5)").prior.dynamics
    assert (dynamics.shrink, dynamics.q) == (0.5, 0.2)
    for likelihood, family in ((fx.models.bernoulli(), Beta), (fx.models.poisson(), Gamma)):
        coin = build("Cj+C-Static", likelihood)
        assert coin.posterior == Conjugate(family)
        assert isinstance(coin.model.predictor, Direct)  # a bare likelihood is a model of theta itself
        assert coin.name == "Cj+C-Static"


def test_parts_that_are_given_win():
    class Last(Exact):
        pass

    method = build("LG+C-Static", prior=additive_inflation(0.3), posterior=Extended("covariance"), weighting=Last())
    assert method.name == "LG(form=covariance)+C-ACI(q=0.3)"
    assert isinstance(method.weighting, Last)
    assert build("LG+C-LSSM", prior=fx.priors.linear_dynamics(F=jnp.eye(2))).name == "LG+C-LSSM"
    assert build("LG+C-ACI", prior=additive_inflation(0.3)).prior.dynamics.q == 0.3  # then the name needs no setting
    assert build("LG+C-Static", prior=Continue(additive_inflation(0.3))).name == "LG+C-ACI(q=0.3)"


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("LoFi(rank=10)+RL[1]-OUPR", "LoFi(rank=10)+RL[1]-OUPR(hazard=0.01)"),
        ("LG+RLCC[10]-PR", "LG+RLCC[10](a=1.0, b=99.0)-PR"),
        ("VB+CPL[8]-MCI(beta=0.25)", "RVGA+CPL[8]-MCI(hazard=0.01, beta=0.25)"),
        ("RL[1]-SPR*", "LG+RL[1]-OUPR(hazard=0.01)"),
        ("KF+C-ACI(q=0.1)", "LG+C-ACI(q=0.1)"),
        ("EKF(form=covariance)+C-Static", "LG(form=covariance)+C-Static"),
        ("WoLF-IMQ(c=4)+EKF+RL[1]-SPR", "WoLF-IMQ(c=4)+RL[1]-OUPR(hazard=0.01)"),
        ("KF-B(a=0.8)+C-Static", "OB(a=0.8)+C-Static"),
        ("EKF-B+C-Static", "OB+C-Static"),
        ("KF-IW(degrees=8)+C-Static", "IW(degrees=8)+C-Static"),
        ("EKF-IW+C-Static", "IW+C-Static"),
        ("R-VGA+C-Static", "RVGA+C-Static"),
        ("BOCPD", "LG+RL[inf]-PR(hazard=0.01)"),
        ("NIG+BOCPD(hazard=0.1)", "NIG+RL[inf]-PR(hazard=0.1)"),
        ("CPT[3]/ME[2]-PR", "LG+CPT[3]/ME[2]-PR(hazard=0.01)"),
    ],
)
def test_other_names_are_read_and_the_whole_name_is_printed(name, whole):
    assert build(name).name == whole == build(whole).name


def test_a_hazard_that_is_no_number_is_not_read_back_as_another_one():
    law = fx.auxiliary.hazards.from_lengths([0.25, 0.75])
    for hazard in (law, lambda r: 1.0 / (r + 2.0)):
        name = build("RL[3]-PR", auxiliary=fx.auxiliary.run_length(hazard, keep=3)).name
        assert name == "LG+RL[3]-PR(hazard=given)"
        with pytest.raises(ValueError, match="hazard=given is no number"):
            build(name)
    assert build("RL[3]-PR", auxiliary=fx.auxiliary.run_length(jnp.asarray(0.25), keep=3)).name.endswith(
        "(hazard=0.25)"
    )


def test_settings_that_are_arrays_do_not_fit_into_a_name():
    assert build("LG+C-ACI", prior=additive_inflation(jnp.array([0.1, 0.2]))).name == "LG+C-ACI"


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("LG", "a name reads POSTERIOR.AUXILIARY"),
        ("LG+C+Static", "a name reads"),
        ("LG+C-ACI(q=0.1", "a name reads"),
        ("LG+C-ACI(q=f(1))", "a name reads"),
        ("LG+C-Statik", "no prior 'Statik'. Did you mean \"Static\""),
        ("IEKV+C-Static", "no posterior 'IEKV'. Did you mean \"IEKF\""),
        ("LG+XX-Static", "no auxiliary 'XX'"),
        ("LG+C-ACI", r"ACI needs q; write ACI\(q=...\) or give prior="),
        ("LG+C-SP(q=0.1)", "SP needs shrink"),
        ("LG+C-ACI(rate=0.1)", r"ACI\(rate=0.1\) is not a setting of ACI. Known: q"),
        ("LG(from=root)+C-Static", 'Did you mean "form"'),
        ("LG+RL[10]-PR(hazzard=0.1)", 'not a setting of PR or RL. Did you mean "hazard".* Known: hazard, capacity'),
        ("LG+CPL[4]-MCI(zeal=0.1)", "not a setting of MCI or CPL. Known: beta, hazard, memory, capacity"),
        ("LG+RL[3](hazzard=0.1)-PR", 'Did you mean "hazard"'),
        ("LG+ME[2](speed=1)-Static", r"ME\(speed=1\) is not a setting of ME. It has none"),
        ("LG+RL[5](hazard=0.2)-PR(hazard=0.3)", r"hazard is given twice, RL\(hazard=0.2\) and PR\(hazard=0.3\); leave"),
        ("LG+RL[9999999999]-PR", r"RL\[K\] must be a whole number of at most 10000000"),
        ("LG+C-ACI(0.1)", r"\(0.1\) is no"),
        ("LG+C-Static(q=0.1)", "It has none"),
        ("LG+C-ACI(q=0.1, q=0.2)", "q.* twice; leave one of them out"),
        ("LG+C-ACI(q=-0.1)", r"additive_inflation\(q=...\) must be finite and at least 0"),
        ("LG+C-ACI(q=high)", "must be a number"),
        ("LG+C-LSSM", "LSSM needs its matrices; give prior=filtax.priors.linear_dynamics"),
        ("Cj+C-Static", "Cj counts one rate and takes no x"),
        ("IEKF(iterations=0)+C-Static", "must be a whole number of at least 1"),
        ("LG(iterations=True)+C-Static", "must be a whole number of at least 1"),
        ("LG+CPVV-Sub", "no auxiliary 'CPVV'. Did you mean \"CPV\""),
        ("LG+CPV-Subb", "no prior 'Subb'. Did you mean \"Sub\""),
        ("LG+CPV(memry=3)-Sub", 'Did you mean "memory"'),
        ("LG+CPV[3]-Sub", r"CPV has one hypothesis; leave \[3\] out"),
        ("LG+CPL[1](hazard=0.1)-Sub", r"CPL\(hazard=0.1\) is not a setting of CPL"),
        ("LG+CPL-Sub", r"say how many hypotheses CPL keeps"),
        ("LG+CPL[1](memory=0)-Sub", "must be a whole number of at least 1"),
        ("LG+RL[0]-PR(hazard=0.1)", r"RL\[K\] must be a whole number of at least 1"),
        ("LG+RL[2]-PR(hazard=1.5)", r"hazard=... must lie in \[0, 1\]"),
        ("LG+RL[inf](capacity=0)-PR(hazard=0.1)", r"RL\(capacity=...\) must be a whole number of at least 2"),
        ("LG+CPT[inf](capacity=0)-PR(hazard=0.1)", r"CPT\(capacity=...\) must be a whole number of at least 2"),
        ("LG+RL[3]-OUPR(hazard=0.1)", r"there is one hypothesis; use RL\[1\]-OUPR"),
        ("LG+CPT[2]/ME[0]-PR(hazard=0.1)", "A list of experts must not be empty"),
        ("LG+RLCC[2]/ME[2]-PR", "ME goes inside RL and CPT; write"),
        ("LG+CPV/ME[2]-Sub", "ME goes inside RL and CPT; write"),
        ("LG+C(name=CPP)-Static", r"C\(name=CPP\) is not a setting of C. It has none"),
        ("LG+C-PR", "C-PR: no regime ever ends under C, so nothing would be reset"),
        ("LG+ME[2]-MMPR", "no regime ever ends under ME"),
        ("LG+CPP-PR", "no regime ever ends under CPP"),
        ("LG+CPP-ACI(q=0.1)", "CPP-ACI: the share that CPP asks each datum for is used by OU alone"),
        ("OGD+RL[2]-MMPR(hazard=0.1)", r"a Point belief cannot move that way \(no `moment_match`\)"),
    ],
)
def test_refusals(name, match):
    with pytest.raises(ValueError, match=match):
        build(name)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        *(
            (f"{part}(iterations={{}})+C-Static", 10_000)
            for part in ("LG", "IEKF", "RVGA", "BLR", "BBB", "OB", "IW", "ST")
        ),
        ("LoFi(rank=3, iterations={})+C-Static", 10_000),
        ("OGD(inner={})+C-Static", 10_000),
        ("LG+CPP-OU(steps={})", 10_000),
        *((f"{part}(size={{}})+C-Static", 10_000_000) for part in ("EnKF", "ETKF", "PF", "APF")),
        ("RBPF(size={}, drawn=1)+C-Static", 10_000_000),
        ("RBPF(drawn={})+C-Static", 10_000_000),
        *((f"{part}(rank={{}})+C-Static", 10_000_000) for part in ("LoFi", "RVGA", "BONG", "BLR", "PULSE")),
        *((f"{part}(rank=1, spare={{}})+C-Static", 10_000_000) for part in ("LoFi", "RVGA", "BONG", "BLR", "PULSE")),
        *((f"{part}(samples={{}})+C-Static", 10_000_000) for part in ("RVGA", "BONG", "BLR", "BBB")),
        ("OGD(memory={})+C-Static", 10_000_000),
        *((f"LG+{part}[4](memory={{}})-PR", 10_000_000) for part in ("CPT", "CPL", "RLCC")),
        *((f"LG+{part}[inf](capacity={{}})-PR", 10_000_000) for part in ("RL", "CPT", "CPL", "RLCC")),
        *((f"LG+{part}[{{}}]-PR", 10_000_000) for part in ("RL", "CPT", "CPL", "RLCC")),
        ("LG+CPL[1](memory={})-Sub", 10_000_000),
        ("LG+CPV(memory={})-Sub", 10_000_000),
        ("LG+ME[{}]-Static", 10_000_000),
        ("LG+RL[4]/ME[{}]-PR", 10_000_000),
    ],
)
def test_every_count_is_bounded(name, most):
    """A program of so many turns would not return, and one of so many members has no room."""
    for count in (most + 1, 999_999_999_999, 10**400):
        with pytest.raises(ValueError, match=f"must be a whole number of at most {most}, got {str(count)[:40]}"):
            build(name.format(count))


@pytest.mark.parametrize("number", ["1_0", "\u0663", "\uff11", "0.\u0661", "1e\u0663", "1_0.5", "1__0"])
def test_numbers_are_written_in_ascii_digits(number):
    for name, match in (
        ("LG+C-ACI(q={})", "must be a number"),
        ("LG+RL[{}]-PR", "must be a whole number"),
        ("EnKF(size={})+C-Static", "must be a whole number"),
        ("LG+RL[4]/ME[{}]-PR", "a name reads"),
    ):
        with pytest.raises(ValueError, match=match):
            build(name.format(number))


@pytest.mark.parametrize("name", ["LG+CPL[1](fold={})-Sub", "LG+CPV(fold={})-Sub", "LG+CPP-OU(each_parameter={})"])
def test_a_truth_value_is_written_out(name):
    assert build(name.format("True"))
    for word in ("no", "2.5", "0"):
        with pytest.raises(ValueError, match=f"must be True or False, got '?{word}"):
            build(name.format(word))


def test_refusals_of_parts():
    with pytest.raises(ValueError, match=r"method\(model=...\) must come from filtax.models, .* got float"):
        build("LG+C-Static", 0.25)
    with pytest.raises(ValueError, match=r"a Beta belief cannot .* that way"):
        build("Cj+C-ACI(q=0.1)", fx.models.bernoulli())
    with pytest.raises(ValueError, match="no conjugate belief is known for CategoricalLikelihood"):
        build("Cj+C-Static", fx.models.categorical())
    with pytest.raises(ValueError, match="can only be learned under Gaussian noise, not BernoulliLikelihood"):
        build("NIG+C-Static", fx.models.linear(likelihood=fx.models.bernoulli()))


@pytest.mark.parametrize(
    ("name", "model", "advised"),
    [
        ("LG+RL[3]-OU(rate=0.9)", LINEAR, ["PR", "MMPR"]),
        ("LG+RL[1]-OU(rate=0.9)", LINEAR, ["PR", "MMPR", "OUPR"]),
        ("LG+CPL[2]-OU(rate=0.9)", LINEAR, ["PR", "MMPR", "MCI"]),
        ("OGD+RL[2]-MMPR", LINEAR, ["PR"]),
        ("OGD+RL[1]-MMPR", LINEAR, ["PR", "OUPR"]),
        ("OGD+C-ACI(q=0.1)", LINEAR, ["Static", "OU"]),
        ("Cj+C-ACI(q=0.1)", fx.models.bernoulli(), ["Static", "OU"]),
        ("Cj+RL[3]-ACI(q=0.1)", fx.models.bernoulli(), ["PR", "MMPR"]),
    ],
)
def test_what_a_refusal_advises_is_accepted(name, model, advised):
    with pytest.raises(ValueError, match="; use ") as refusal:
        build(name, model)
    words = re.search(r"; use ([A-Za-z, ]+?)[,.](?: and|$)", str(refusal.value))[1]
    assert re.split(", | or ", words) == advised
    for prior in advised:
        build(f"{name.rsplit('-', 1)[0]}-{prior}" + ("(rate=0.9)" if prior == "OU" else ""), model)
