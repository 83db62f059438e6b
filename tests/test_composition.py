"""Composition is shown, not promised: models x forms x trusts x auxiliary variables x priors, on a stream that changes.

Every combination must stay finite, and must forecast a stream with jumps and drift better than the static filter of the
same model does. Most run at night; one of each kind by day.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx

T, D = 240, 3
rng = np.random.default_rng(11)
X = rng.normal(size=(T, D)).astype("float32")
LEVELS = np.array([[2.0, -1.0, 0.5], [-2.0, 1.0, 1.0], [1.0, 2.0, -1.5]])
THETA = np.repeat(LEVELS, T // 3, axis=0) + np.cumsum(0.03 * rng.normal(size=(T, D)), axis=0)
SIGNAL = np.sum(X * THETA, axis=1)
Y = (SIGNAL + 0.3 * rng.normal(size=T)).astype("float32")
WRONG = np.where(rng.random(T) < 0.04, Y + 25.0 * rng.choice([-1.0, 1.0], size=T), Y).astype("float32")
LABEL = (rng.random(T) < 1.0 / (1.0 + np.exp(-2.0 * SIGNAL))).astype("float32")


def network(params, x):
    return params["out"] @ jnp.tanh(params["in"] @ x + params["bias"]) + params["skip"] @ x


def start_of(model):
    if model != "mlp":
        return dict(mean=jnp.zeros(D, "float32"), cov=4.0)
    draw = np.random.default_rng(1).normal
    shapes = {"in": (4, D), "bias": (4,), "out": (4,), "skip": (D,)}
    params = {name: jnp.asarray(0.3 * draw(size=shape), "float32") for name, shape in shapes.items()}
    return dict(params=params, cov=1.0)


MODELS = {
    "linear": lambda: fx.models.linear(noise=0.1),
    "mlp": lambda: fx.models.nonlinear(network, noise=0.1),
    "logistic": lambda: fx.models.linear(likelihood=fx.models.bernoulli()),
}
CHOICES = {
    "C-ACI(q=0.05)": {},
    "C-OU(rate=0.97)": {},
    "RL[1]-OUPR(hazard=0.02)": {},
    "RL[4]-PR(hazard=0.02)": {},
    "RL[4]-PR(hazard=0.02) walking": dict(prior=fx.priors.additive_inflation(0.01)),
    "RL[4]-MMPR(hazard=0.02) walking": dict(prior=fx.priors.additive_inflation(0.05)),
    "RLCC[6](a=1, b=49)-PR": {},
    "CPT[4]-PR(hazard=0.02)": {},
    "CPL[4]-MCI(hazard=0.02, beta=0.05)": {},
    "CPP-OU": {},
    "ME[2]-ACI": dict(prior=fx.priors.by_expert([fx.priors.additive_inflation(q) for q in (0.001, 0.1)])),
}
FORMS = {
    "linear": ("root", "covariance", "diagonal"),
    "mlp": ("covariance", "diagonal"),
    "logistic": ("root", "diagonal"),
}
CASES = [
    (model, form, trust, choice)
    for model in MODELS
    for form in FORMS[model]
    for trust in ("", "WoLF-IMQ(c=1.5)+" if model != "logistic" else "WoLF-MD(c=3)+")
    for choice in CHOICES
]
DAY = {("linear", "root", "", choice) for choice in list(CHOICES)[4::2]}
DAY |= {("linear", "diagonal", "", "RL[4]-PR(hazard=0.02)")}
DAY |= {("mlp", "covariance", "WoLF-IMQ(c=1.5)+", "RL[4]-PR(hazard=0.02)")}
DAY |= {("logistic", "root", "WoLF-MD(c=3)+", "RL[1]-OUPR(hazard=0.02)")}


def score(name, model, robust, **parts):
    """Mean absolute error of the forecast, or for labels its mean negative log score."""
    method = fx.method(name, model=MODELS[model](), **parts)
    data = LABEL if model == "logistic" else WRONG if robust else Y
    end, infos = method.scan(method.init(**start_of(model)), X, data, keep=("mean", "log_evidence", "ok"))
    assert bool(infos.ok.all())
    leaves = [leaf for leaf in jax.tree.leaves(end.hypotheses.belief)]
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    np.testing.assert_allclose(np.exp(end.hypotheses.log_weight).sum(), 1.0, rtol=1e-5)
    if model == "logistic":
        return -float(infos.log_evidence.mean())
    return float(np.abs(np.asarray(infos.mean) - SIGNAL).mean())


@pytest.fixture(scope="module")
def static():
    done = {}

    def of(model, form, trust):
        key = model, form, trust
        if key not in done:
            done[key] = score(f"{trust}LG(form={form})+C-Static", model, bool(trust))
        return done[key]

    return of


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in DAY else [pytest.mark.nightly]) for case in CASES], ids="|".join
)
def test_adapts_better_than_the_static_filter(case, static):
    model, form, trust, choice = case
    name = f"{trust}LG(form={form})+{choice.removesuffix(' walking')}"
    assert score(name, model, bool(trust), **CHOICES[choice]) < static(model, form, trust)
