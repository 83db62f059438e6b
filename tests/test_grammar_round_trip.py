"""Names drawn at random from all words of the grammar: what a method prints builds the same method again.

Each part is drawn with any of its settings, those of their default value too, in any order. Two methods are the same
when every number and every size in them is: a setting that a name forgets shows.
"""

import inspect

import equinox as eqx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import filtax as fx
from filtax.methods import _parse as grammar

share = st.floats(0.001, 1.0)
size = st.integers(1, 40)
form = st.sampled_from(["auto", "root", "covariance", "precision"])
shape = st.sampled_from(["auto", "root", "diagonal"])
guess = dict(samples=st.integers(2, 9), expectation=st.sampled_from(["quadrature", "linearised"]), form=shape)

TRUSTS = {
    "": {},
    "WoLF-IMQ": dict(c=share),
    "WoLF-MD": dict(c=share),
    "WoLF-TMD": dict(c=share),
    "WoLF-Huber": dict(c=share),
    "WoLF-Power": dict(beta=share),
    "WoLF-Tempered": dict(w=share),
}
POSTERIORS = {
    "": {},
    "LG": dict(form=form, iterations=size),
    "IEKF": dict(form=form, iterations=size),
    "LoFi": dict(rank=size, spare=size, iterations=size, form=st.sampled_from(["diagonal", "spherical"])),
    "NIG": dict(shape=share, rate=share, form=form),
    "RVGA": dict(iterations=size, **guess),
    "VB": dict(iterations=size, rank=size, spare=size),
    "EKF": dict(form=form),
    "KF-B": dict(a=share),
    "EKF-IW": dict(iterations=size),
    "BONG": guess,
    "BLR": dict(iterations=size, step=share, **guess),
    "BBB": dict(iterations=size, step=share, **guess),
    "OGD": dict(rate=share, memory=size, inner=size),
    "OB": dict(a=share, b=share, iterations=size, tolerance=share),
    "IW": dict(degrees=share.map(lambda v: 2.0 + v), iterations=size),
    "ST": dict(degrees=share.map(lambda v: 2.0 + v), iterations=size),
    "EnKF": dict(size=size.map(lambda n: n + 2), inflation=share.map(lambda v: 1.0 + v)),
    "ETKF": dict(size=size.map(lambda n: n + 2), inflation=share.map(lambda v: 1.0 + v)),
    "PF": dict(size=size.map(lambda n: n + 2), threshold=share, shrink=share),
    "APF": dict(size=size.map(lambda n: n + 2), shrink=share),
    "RBPF": dict(drawn=size, size=size.map(lambda n: n + 2), threshold=share),
    "PULSE": dict(
        rank=size,
        spare=size,
        hidden=st.sampled_from(["auto", "root", "diagonal", "spherical"]),
        last=form,
        coupled=st.booleans(),
        marginal=st.booleans(),
        iterations=size,
    ),
}
LINEAR = fx.models.linear(noise=1.0)
NETWORK = fx.models.nonlinear(lambda theta, x: theta @ x, noise=1.0)
BLOCKS = fx.models.subspace(NETWORK, None, np.ones(50), last=5)  # what PULSE asks for
CHANGE = dict(hazard=share)
GROWS = dict(capacity=size.map(lambda n: n + 1))
TRANSITIONS = {  # what stands in brackets, the settings of (M.2), whether experts may follow, and those of (M.3)
    "C-Static": ("", {}, False, {}),
    "C-ACI": ("", {}, False, dict(q=share)),
    "C-OU": ("", {}, False, dict(rate=share)),
    "C-SP": ("", {}, False, dict(shrink=share, q=share)),
    "RL-PR": ("K", GROWS, True, CHANGE),
    "RL-MMPR": ("K", GROWS, True, CHANGE),
    "RL-OUPR": ("1", {}, False, CHANGE | dict(threshold=share)),
    "RL-SPR": ("1", {}, False, CHANGE | dict(threshold=share)),
    "RLCC-PR": ("K", GROWS | dict(a=share, b=share, memory=size), False, {}),
    "CPT-PR": ("K", GROWS | dict(memory=size), True, CHANGE),
    "CPT-MMPR": ("K", GROWS | dict(memory=size), True, CHANGE),
    "CPL-MCI": ("K", GROWS | dict(memory=size), False, CHANGE | dict(beta=share)),
    "CPP-OU": ("", {}, False, dict(each_parameter=st.booleans(), steps=size, step=share, rate=share)),
    "ME-Static": ("E", {}, False, {}),
    "ME-ACI": ("E", {}, False, dict(q=share)),
    "CPL-Sub": ("S", dict(belong=share, memory=st.integers(1, 9), fold=st.booleans()), False, {}),
    "CPV-Sub": ("", dict(belong=share, rate=share, memory=size, fold=st.booleans()), False, {}),
}
MUST = {"c", "beta", "w", "rank", "drawn", "q", "rate", "shrink", "hazard"}  # where a part has no default for it
BRACKETS = {
    "": st.just(""),
    "1": st.just("[1]"),
    "K": st.one_of(st.just("[inf]"), size.map("[{}]".format)),
    "E": st.integers(1, 4).map("[{}]".format),
    "S": st.sampled_from(["[1]", "[inf]"]),
}


def part(draw, name, known, must=()):
    """A word with some of its settings."""
    chosen = [key for key in draw(st.permutations(list(known))) if key in must or draw(st.booleans())]
    chosen = [key for key in chosen if key != "spare" or "rank" in chosen]
    told = [f"{key}={draw(known[key])}" for key in chosen]
    return name + (f"({', '.join(told)})" if told else "")


def needed(table, name, known):
    """Settings without a default, by the signature of what the word builds."""
    parameters = inspect.signature(table[grammar.OTHER_NAMES.get(name, name)]).parameters
    return [key for key in known if parameters[key].default is inspect.Parameter.empty]


@st.composite
def names(draw):
    pieces = []
    for table, known in ((grammar.TRUSTS, TRUSTS), (grammar.POSTERIORS, POSTERIORS)):
        word = draw(st.sampled_from(list(known)))
        if word:
            pieces.append(part(draw, word, known[word], needed(table, word, known[word])))
    word = draw(st.sampled_from(list(TRANSITIONS)))
    bracket, of_auxiliary, experts, of_prior = TRANSITIONS[word]
    auxiliary, prior = word.split("-")
    must = [key for key in of_prior if key in MUST and word != "CPP-OU"]
    left = part(draw, auxiliary + draw(BRACKETS[bracket]), of_auxiliary)
    inside = draw(st.sampled_from(["", "/ME[2]"])) if experts else ""
    star = draw(st.sampled_from(["", "*"]))
    return "+".join([*pieces, f"{left}{inside}-{part(draw, prior, of_prior, must)}{star}"])


def built(name, model):
    """The method, or why there is none."""
    try:
        return fx.method(name, model=model), ""
    except ValueError as refusal:
        return None, str(refusal)


def test_every_word_is_drawn():
    assert TRUSTS.keys() - {""} == grammar.TRUSTS.keys()
    words = POSTERIORS.keys() - {""} - grammar.OTHER_NAMES.keys()
    assert words == grammar.POSTERIORS.keys() - {"Cj"}  # chosen by the likelihood
    auxiliaries, priors = zip(*(word.split("-") for word in TRANSITIONS), strict=True)
    assert set(auxiliaries) == grammar.AUXILIARIES.keys()
    assert set(priors) - grammar.OTHER_NAMES.keys() == grammar.PRIORS.keys() - {"LSSM"}


@pytest.mark.x64
@given(names())
@example("ME[1]-Static")
@example("CPP-OU(each_parameter=True, step=1.5)")
@example("RL[inf](capacity=128)-PR(hazard=0.01)")
@example("CPT[inf](capacity=9)/ME[2]-PR(hazard=0.01)")
@example("RLCC[5](a=1, b=9, memory=3)-PR")
@example("CPL[inf](capacity=8, memory=3)-MCI(hazard=0.1)")
@example("WoLF-Power(beta=0.2)+RBPF(size=60, drawn=2)+C-OU(rate=0.9)")
@example("BBB(iterations=2, form=diagonal)+CPL[1](belong=0.9, memory=4)-Sub")
@example("RVGA(rank=3)+CPT[4]/ME[2]-PR(hazard=0.1)")
@example("PULSE(hidden=diagonal, last=root, iterations=2)+C-ACI(q=0.1)")
@example("PULSE(rank=3, marginal=True)+RL[2]-PR(hazard=0.1)")
@example("WoLF-IMQ(c=0.5)+PULSE(coupled=False, hidden=spherical, rank=40, spare=1, last=covariance)+C-Static")
@example("PULSE(rank=0, hidden=auto)+CPL[2]-MCI(hazard=0.1, beta=0.4)")
@example("PULSE(hidden=spherical)+C-Static")
@example("PULSE(rank=3, hidden=root)+C-Static")
@example("PULSE(rank=46)+C-Static")
@settings(deadline=None)
def test_a_name_builds_what_printed_it(name):
    """Or it is refused in a sentence: not all parts go together."""
    model = BLOCKS if "PULSE" in name else LINEAR
    made, sentence = built(name, model)
    if made is None:
        assert sentence.endswith((".", "?"))
        assert "\n" not in sentence
        return
    again = fx.method(made.name, model=model)
    assert again.name == made.name
    assert eqx.tree_equal(made, again), f"{name} prints {made.name}"
