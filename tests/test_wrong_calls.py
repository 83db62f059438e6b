"""Wrong calls of the contract: each is refused where it is made, in a sentence that says what to give."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import filtax as fx
from filtax import evaluate as ev
from filtax import models, priors
from filtax.distributions import Bernoulli, Categorical, Mixture, NegativeBinomial, Normal, Poisson, StudentT

LINEAR = models.linear(noise=1.0)
KF = fx.method("LG+C-Static", model=LINEAR)
STATE = KF.init(mean=np.zeros(2), cov=1.0)
X, Y = np.ones((5, 2)), np.arange(5.0)
ONE, TWO = jnp.zeros(1), jnp.zeros(2)
# plain: one output without an axis of its own
PLAIN = {
    "normal": Normal(ONE, jnp.eye(1), scalar=True),
    "student": StudentT(ONE, jnp.eye(1), jnp.asarray(4.0), scalar=True),
    "bernoulli": Bernoulli(ONE - 0.7, ONE - 0.7, scalar=True),
    "poisson": Poisson(ONE, ONE, scalar=True),
    "negative-binomial": NegativeBinomial(ONE + 1.0, ONE + 1.0, scalar=True),
    "mixture": Mixture(Normal(jnp.zeros((2, 1)), jnp.ones((2, 1, 1)), scalar=True), jnp.log(TWO + 0.5)),
}
LABELS = {
    "labels": Categorical(jnp.log(jnp.full(3, 1 / 3))),
    "mixed-labels": Mixture(Categorical(jnp.log(jnp.full((2, 3), 1 / 3))), jnp.log(TWO + 0.5)),
}


@pytest.fixture(autouse=True)
def untyped():
    """As users run it: without the check of annotations, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize("name", [*PLAIN, *LABELS])
def test_one_y_has_a_log_probability(name):
    ask = (PLAIN | LABELS)[name].log_prob
    with pytest.raises(
        ValueError, match=r"log_prob: y has shape \(2,\) but one y of this forecast has shape \(\); give"
    ):
        ask(np.ones(2))
    for wrong in ("a", None, 1j):
        with pytest.raises(ValueError, match=r"log_prob.* y must hold numbers, got .*; give a number"):
            ask(wrong)
    with pytest.raises(ValueError, match=r"mask has shape \(2,\) but"):
        ask(1.0, mask=np.ones(2, bool))
    with pytest.raises(ValueError, match=r"mask=...\) must hold True and False, got float64; write mask.astype"):
        ask(1.0, mask=np.ones(()))
    shape = lambda ask, *given: jax.eval_shape(ask, *given).shape
    assert shape(ask, 1) == shape(ask, np.ones(1)) == shape(ask, np.ones(()), np.ones(1, bool)) == ()
    assert shape(jax.vmap(ask), np.ones(2)) == (2,)


@pytest.mark.parametrize("name", PLAIN)
def test_one_y_has_a_probability_of_less(name):
    ask = PLAIN[name].cdf
    with pytest.raises(
        ValueError, match=r"cdf: y has shape \(2,\) but the forecast has shape \(\); .*vmap\(forecast.cdf"
    ):
        ask(np.ones(2))
    with pytest.raises(ValueError, match=r"cdf.* y must hold numbers, got 'a'"):
        ask("a")
    assert jax.eval_shape(ask, 1).shape == ()
    assert jax.eval_shape(jax.vmap(ask), np.ones(2)).shape == (2,)


def test_rows_are_not_taken_for_outputs():
    """Of equal size is not of equal shape: a y of (2, 3) once passed for one of (3, 2)."""
    ahead = Normal(jnp.zeros((3, 2)), jnp.broadcast_to(jnp.eye(2), (3, 2, 2)))
    for y in (np.ones((2, 3)), np.ones(6)):
        with pytest.raises(ValueError, match=r"but one y of this forecast has shape \(3, 2\)"):
            ahead.log_prob(y)
        with pytest.raises(ValueError, match=r"but the forecast has shape \(3, 2\)"):
            ahead.cdf(y)
    assert ahead.cdf(0.0).shape == (3, 2)
    hypotheses = Mixture(Normal(jnp.zeros((3, 2, 1)), jnp.ones((3, 2, 1, 1)), scalar=True), jnp.full((3, 2), -0.7))
    with pytest.raises(ValueError, match=r"y has shape \(2,\) but there are 3 rows of forecasts; give one each"):
        hypotheses.log_prob(np.ones(2))


dynamics = priors.linear_dynamics


def prequential(**given):
    return lambda: ev.prequential(**{"method": KF, "state": STATE, "X": X, "Y": Y, **given})


def moved(**given):
    kf = fx.method("LG+C-LSSM", model=LINEAR, prior=priors.linear_dynamics(**given))
    return kf.step(kf.init(mean=np.zeros(2), cov=1.0), X[0], 0.0)


def named(name, **parts):
    return lambda: fx.method(name, model=LINEAR, **parts)


WRONG = [
    (
        lambda: fx.method("LG+C-Static", model=models.linear(likelihood=models.categorical())).step(STATE, X[0], 0.0),
        "needs an output for each class, but the model has 1",
    ),
    (
        lambda: KF.init(mean=np.zeros(2), cov=None),
        r"init: cov is None; give a variance, \(D,\) variances or a \(D, D\)",
    ),
    (lambda: KF.predict(STATE, X[0], plugin="no"), r"predict\(plugin=...\) must be True or False, got 'no'"),
    (lambda: KF.scan(STATE, X, Y, complete="no"), r"scan\(complete=...\) must be True or False, got 'no'"),
    (
        lambda: KF.scan(STATE, X, Y, keep=None),
        r"scan\(keep=None\) must name fields, such as \('mean', 'log_evidence'\)",
    ),
    (lambda: KF.scan(STATE, X, Y, keep=(3,)), r"scan\(keep=3\): no such field"),
    (lambda: fx.kl(PLAIN["normal"], PLAIN["normal"]), r"kl: Normal.* is no belief; give method.belief\(state\)"),
    # evaluation
    (prequential(state=3), r"prequential: the state is a int; begin with state = method.init"),
    (prequential(state=(STATE, None)), "prequential: the state is a tuple; unpack it"),
    (prequential(mask=np.ones(5)), r"mask must hold True and False, got float64; write mask != 0"),
    (prequential(mask="a"), "mask must hold True and False, got 'a'"),
    (prequential(X=[["a", "b"]] * 5), "X must hold numbers"),
    (prequential(Y=Y * 1j), "Y must hold numbers"),
    (prequential(Y=None), "prequential: Y is None; give the targets"),
    (prequential(dt=-np.ones(5)), "dt must be finite and at least 0"),
    (prequential(dt=list("abcde")), "dt must hold numbers"),
    (prequential(delay=True), r"prequential\(delay=...\) must be a whole number of at least 0, got True. 0 is a label"),
    (prequential(metrics=3), r"prequential\(metrics=...\) must be metrics in a list, such as .*, got 3"),
    (prequential(metrics=[3]), 'a metric is a name such as "rmse", or a Metric, got 3'),
    (prequential(baselines=ev.last_value()), r"prequential\(baselines=...\) must be baselines in a list"),
    (
        lambda: ev.metrics.rmse(1.0, 2.0),
        r"rmse: forecast must have a leading axis T, got a single number; give \[number\]",
    ),
    (lambda: ev.metrics.rmse([1.0], None), "rmse: y must hold numbers, got None"),
    (lambda: ev.metrics.rmse("a", [1.0]), "rmse: forecast must hold numbers, got 'a'"),
    (lambda: ev.metrics.rmse.aggregate("a"), "rmse: losses must hold numbers, got 'a'"),
    (
        lambda: ev.metrics.accuracy(np.ones((3, 2)), np.ones((3, 3))),
        r"of shape \(3, 2\) do not fit labels of shape \(3, 3\)",
    ),
    (lambda: ev.metric("coverage(..)"), r'no metric is called "coverage\(\.\.\)"'),
    (lambda: ev.rolling("a", 3), "losses must hold numbers, got 'a'"),
    (lambda: ev.Forecast("a"), r"Forecast\(mean=...\) must hold numbers, got 'a'"),
    (lambda: ev.Forecast(Y, var=np.ones(2)), r"Forecast\(var=...\) has shape \(2,\) but the mean \(5,\)"),
    (lambda: ev.last_value()(3.0), r"last-value\(y\) must have one or more rows, got shape \(\); give \(T,\)"),
    (lambda: ev.last_value()([]), r"last-value\(y\) must have one or more rows, got shape \(0,\)"),
    (lambda: ev.last_value()(list("ab")), r"last-value\(y\) must hold numbers"),
    (lambda: ev.last_value()(Y, delay=1.5), r"last-value\(delay=1.5\) must be a whole number of steps, 0 or more"),
    (lambda: ev.last_class(3)([0, 1], delay="a"), r"last-class\(delay='a'\) must be a whole number of steps"),
    (lambda: ev.last_class(2.5), r"last_class\(classes=2.5\) must be 2 or more, or None"),
    (lambda: ev.majority_class("a"), r"majority_class\(classes='a'\) must be 2 or more, or None"),
    (lambda: ev.seasonal_naive(True), r"seasonal_naive\(period=True\) must be 1 or more steps"),
    # models
    (lambda: models.linear(noise=np.ones(0)), r"noise=... holds no number, got shape \(0,\); give a number"),
    (lambda: models.linear(noise=np.ones((0, 0))), r"noise=... holds no number, got shape \(0, 0\)"),
    (
        lambda: models.mlp(3),
        r"mlp\(sizes=...\) must be two or more positive whole widths, from input to output, got 3",
    ),
    (lambda: models.mlp([3, 2.5, 1]), r"mlp\(sizes=...\) .* got \[3, 2.5, 1\]"),
    (lambda: models.lenet5("ten"), r"lenet5\(classes=...\) must be a whole number of at least 1, got 'ten'"),
    (lambda: models.lenet5(image=28), r"lenet5\(image=...\) must be \(height, width, channels\) .*got 28"),
    # priors
    (lambda: priors.additive_inflation(np.ones(0)), r"additive_inflation\(q=...\) holds no number"),
    (lambda: priors.ornstein_uhlenbeck(np.ones(0)), r"ornstein_uhlenbeck\(rate=...\) holds no number"),
    (lambda: priors.shrink_perturb(np.ones(0), 0.1), r"shrink_perturb\(shrink=...\) holds no number"),
    (lambda: priors.shrink_perturb(0.5, np.ones(0)), r"shrink_perturb\(q=...\) holds no number"),
    (lambda: dynamics(b=np.ones(0)), r"linear_dynamics\(b=...\) holds no number"),
    (lambda: dynamics(b=np.eye(2)), r"linear_dynamics\(b=...\) must be a number or a vector, got shape \(2, 2\)"),
    (lambda: dynamics(F=np.eye(2), Q=np.eye(3)), r"F of shape \(2, 2\) and Q of shape \(3, 3\) do not fit"),
    (lambda: dynamics(F=np.ones(2), Q=np.ones(3)), r"F of shape \(2,\) and Q of shape \(3,\) do not fit"),
    (lambda: dynamics(F=np.eye(2), b=np.ones(3)), r"F of shape \(2, 2\) and b of shape \(3,\) do not fit"),
    (lambda: dynamics(b=np.ones(3), Q=np.eye(1)), r"b of shape \(3,\) and Q of shape \(1, 1\) do not fit"),
    (lambda: moved(F=np.eye(3), Q=0.1), r"LSSM\(F=...\) has shape \(3, 3\) but the belief has D = 2 parameters; give"),
    (lambda: moved(b=np.ones(3)), r"LSSM\(b=...\) has shape \(3,\) but the belief has D = 2 parameters"),
    (lambda: moved(F=lambda dt: np.eye(3)), r"linear_dynamics\(F=...\) returned shape \(3, 3\) but there are D = 2"),
    (lambda: moved(Q=lambda dt: -np.eye(2)), "linear_dynamics: what Q returned must be positive semidefinite"),
    (
        lambda: moved(F=lambda theta: jnp.stack([theta[0] + theta[1], theta[1]])),
        r"linear_dynamics\(F=...\) is a function that failed .*; give .* one of theta as nonlinear_dynamics\(f, Q\)",
    ),
    (lambda: moved(Q=lambda theta: theta[0]), r"linear_dynamics\(Q=...\) is a function that failed"),
    (lambda: priors.by_expert([3]), "by_expert: the dynamics must be a list of those of filtax.priors"),
    # True and False are no numbers; they passed for 1 and 0
    (lambda: models.linear(noise=True), "noise=... must be a number .* got True; write 1.0 where True means one"),
    (lambda: models.gaussian(jnp.eye(2, dtype=bool)), r"noise=... must be a number .* got bool of shape \(2, 2\)"),
    (lambda: KF.init(mean=np.array([True, False])), r"init\(mean=...\) must be a number .* got bool of shape \(2,\)"),
    (lambda: KF.init(mean=np.zeros(2), cov=True), r"init\(cov=...\) must be a number"),
    (named("LG+C-ACI(q=True)"), r"additive_inflation\(q=...\) must be a number .* got True"),
    (lambda: dynamics(F=True), r"linear_dynamics\(F=...\) must be a number .* got True"),
    # names: a part that is given does not excuse a name that says nothing
    (named("LG+C-Statik", prior=priors.static()), "method: no prior 'Statik'. Did you mean \"Static\""),
    (named("LH+C-Static", posterior=KF.posterior), "method: no posterior 'LH'"),
    (named("LG+D-Static", auxiliary=KF.auxiliary), "method: no auxiliary 'D'"),
    (lambda: fx.method("LG+C-Static"), r"method: there is no model; give model=filtax.models.linear\(noise=0.1\)"),
]


@pytest.mark.x64
@pytest.mark.parametrize(("call", "match"), WRONG, ids=[str(row) for row in range(len(WRONG))])
def test_refuses(call, match):
    with pytest.raises(ValueError, match=match) as error:
        call()
    assert str(error.value).endswith((".", "?"))


def test_what_one_number_says_serves_any_number_of_parameters():
    state, _ = moved(F=np.ones(1), b=1.0, Q=[0.1])
    assert state.initial.mean.shape == (2,)
    assert priors.linear_dynamics(F=np.eye(1), b=np.ones(1), Q=np.eye(1)).b.shape == (1,)
