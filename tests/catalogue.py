"""The rows of the conformance table: one entry a method, with a small stream it can learn from."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import filtax as fx
from filtax.posteriors import Gradient

T = 12
models, priors = fx.models, fx.priors


class Row(NamedTuple):
    """A method as a function of one float setting, its initial belief, and T rows of data."""

    build: Any  # setting -> method
    setting: float
    init: dict
    X: np.ndarray | None
    Y: np.ndarray
    seed: int | None = None  # of methods that draw

    @property
    def key(self):
        return {} if self.seed is None else {"key": jax.random.key(self.seed)}

    def start(self, dtype="float64"):
        method = self.build(self.setting)
        return method, method.init(**jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), self.init), **self.key)


def named(name, model):
    return lambda setting: fx.method(name, model=model(setting))


def drifting(name, model, prior, auxiliary=None):
    return lambda setting: fx.method(name, model=model, prior=prior(setting), auxiliary=auxiliary)


def watching(name, model, auxiliary):
    return lambda setting: fx.method(name, model=model, auxiliary=auxiliary(setting))


def wolf(name, model, trust):
    """A robust method, as a function of its threshold."""
    return lambda setting: fx.method(name, model=models.robust(model, trust=trust(setting)))


def log_cosh(eta, y):
    return 3.0 * jnp.sum(jnp.logaddexp(y - eta, eta - y))


def network(params, x):
    return jnp.tanh(x @ params["inner"]) @ params["outer"]


def rate(theta, x):
    return theta[3] * jnp.tanh(theta[:3] @ x)


def split(model, params):
    """A subspace of the inner layer, the outer one free."""
    return models.subspace(model, basis[:12, :2], params, last="outer")


_rng = np.random.default_rng(7)
X = _rng.normal(size=(T, 3))
H = _rng.normal(size=(T, 2, 4))
y = X @ np.array([1.0, -2.0, 0.5]) + 0.5 * _rng.normal(size=T)
wrong = np.where(np.arange(T) == 5, 30.0, y)  # one gross error
pair = _rng.normal(size=(T, 2))
label = (y > 0).astype(float)
classes = _rng.integers(0, 3, size=T).astype(float)
counts = _rng.poisson(2.0, size=T).astype(float)
R = np.array([[1.0, 0.3], [0.3, 0.5]])
F = np.array([[1.0, 0.0, 0.1, 0.0], [0.0, 1.0, 0.0, 0.1], [0.0, 0.0, 0.9, 0.0], [0.0, 0.0, 0.0, 0.9]])
net = {"inner": 0.5 * _rng.normal(size=(3, 4)), "outer": 0.5 * _rng.normal(size=(4, 2))}
deep = {"inner": 0.5 * _rng.normal(size=(3, 4)), "outer": 0.5 * _rng.normal(size=(4, 3))}

basis = _rng.normal(size=(24, 3)) / 5.0
deep_labels = models.nonlinear(network, likelihood=models.categorical())
flat, wide, matrix = ({"mean": np.zeros(size), "cov": 1.0} for size in (3, 4, 9))
linear = lambda noise: models.linear(noise=noise)
linear_of = lambda likelihood: models.linear(likelihood=likelihood)
walk = priors.additive_inflation
relax = priors.ornstein_uhlenbeck
runs = lambda keep: lambda hazard: fx.auxiliary.run_length(hazard, keep=keep)
LENGTHS = fx.auxiliary.hazards.from_lengths([0.05, 0.1, 0.15, 0.2, 0.1])
TURNS = fx.auxiliary.experts(2, transition=[[0.9, 0.1], [0.2, 0.8]])


def walk_of(q):
    return priors.linear_dynamics(F=0.9, Q=q)


def dynamics(q):
    return priors.linear_dynamics(F, b=0.01 * np.ones(4), Q=q * jnp.diag(jnp.array([0.0, 1.0, 1.0, 2.0])))


ROWS = {
    "regression": Row(named("LG+C-Static", linear), 0.25, flat, X, y),
    "covariance-ACI": Row(drifting("LG(form=covariance)+C-ACI", linear(0.25), walk), 0.01, flat, X, y),
    "precision-OU": Row(drifting("LG(form=precision)+C-OU", linear(0.25), relax), 0.9, flat, X, y),
    "tracker": Row(
        drifting("LG+C-LSSM", models.linear(noise=R), dynamics), 0.1, {"mean": np.zeros(4), "cov": 1.0}, H, pair
    ),
    "tracker-covariance": Row(
        drifting("LG(form=covariance)+C-LSSM", models.linear(noise=R), dynamics),
        0.1,
        {"mean": np.zeros(4), "cov": 1.0},
        H,
        pair,
    ),
    "two-outputs": Row(
        named("LG+C-SP(shrink=0.9, q=0.1)", lambda v: linear(v * jnp.asarray(R))), 1.0, wide, X[:, :2], pair
    ),
    "noise-of-x": Row(drifting("LG+C-ACI", linear(lambda x: 0.1 + x[0] ** 2), walk), 0.01, flat, X, y),
    "logistic": Row(drifting("LG+C-ACI", linear_of(models.bernoulli()), walk), 0.01, flat, X, label),
    "softmax": Row(drifting("LG+C-OU", linear_of(models.categorical()), relax), 0.9, matrix, X, classes),
    "poisson": Row(drifting("LG+C-ACI", linear_of(models.poisson()), walk), 0.01, flat, X, counts),
    "network": Row(
        drifting("LG(form=covariance)+C-ACI", models.nonlinear(network, noise=0.1), walk),
        1e-3,
        {"params": net},
        X,
        pair,
    ),
    "network-iterated": Row(
        drifting("IEKF(iterations=3)+C-ACI", models.nonlinear(network, noise=0.1), walk), 1e-3, {"params": net}, X, pair
    ),
    "network-labels": Row(
        drifting("LG+C-OU", models.nonlinear(network, likelihood=models.categorical()), relax),
        0.95,
        {"params": deep},
        X,
        classes,
    ),
    "unknown-noise": Row(named("NIG+C-Static", linear), 1.0, flat, X, y),
    "unknown-noise-OU": Row(
        drifting("NIG(shape=2, rate=1)+C-OU", linear(np.asarray(R)), relax), 0.9, wide, X[:, :2], pair
    ),
    "line-per-run": Row(
        watching("NIG+RL[3]-PR(hazard=0.1)", models.since_change(1.0, unit=5.0), runs(3)),
        0.1,
        {"mean": np.zeros(5), "cov": 1.0},
        X,
        y,
    ),
    "run-lengths": Row(watching("RL[3]-PR(hazard=0.1)", linear(0.25), runs(3)), 0.1, flat, X, y),
    "run-lengths-labels": Row(
        watching("RL[2]-MMPR(hazard=0.1)", linear_of(models.bernoulli()), runs(2)), 0.1, flat, X, label
    ),
    "relax-or-reset": Row(watching("RL[1]-OUPR(hazard=0.1)", linear(0.25), runs(1)), 0.1, flat, X, y),
    "run-lengths-coin": Row(
        watching("Cj+RL[3]-PR(hazard=0.1)", models.bernoulli(), runs(3)), 0.1, {"mean": 0.5, "cov": 0.05}, None, label
    ),
    "change-times": Row(
        watching("CPT[3]-PR(hazard=0.1)", linear(0.25), lambda h: fx.auxiliary.change_times(h, keep=3)), 0.1, flat, X, y
    ),
    "change-widens": Row(
        watching("CPL[3]-MCI(hazard=0.1)", linear(0.25), lambda h: fx.auxiliary.change_locations(h, keep=3)),
        0.1,
        flat,
        X,
        y,
    ),
    "unknown-hazard": Row(
        watching("RLCC[3]-PR", linear(0.25), lambda a: fx.auxiliary.run_length_count(a, 9.0, keep=3)), 1.0, flat, X, y
    ),
    "switching": Row(
        drifting("ME[2]-ACI", linear(0.25), lambda q: priors.by_expert([walk(q), walk(10.0 * q)]), TURNS),
        0.1,
        flat,
        X,
        y,
    ),
    "most-probable-share": Row(named("CPP-OU", linear), 0.25, flat, X, y),
    "wolf-imq": Row(wolf("C-ACI(q=0.01)", linear(0.25), models.imq), 2.0, flat, X, wrong),
    "wolf-tmd": Row(
        drifting("LG(form=covariance)+C-ACI", models.robust(linear(R), models.threshold(3.0)), walk),
        0.1,
        wide,
        X[:, :2],
        pair,
    ),
    "wolf-huber-precision": Row(
        wolf("LG(form=precision)+C-OU(rate=0.9)", linear(0.25), models.huber), 1.0, flat, X, wrong
    ),
    "wolf-labels": Row(
        wolf("C-OU(rate=0.9)", linear_of(models.categorical()), models.mahalanobis), 1.5, matrix, X, classes
    ),
    "wolf-counts": Row(wolf("C-ACI(q=0.01)", linear_of(models.poisson()), models.mahalanobis), 2.0, flat, X, counts),
    "wolf-unknown-noise": Row(wolf("NIG+C-OU(rate=0.9)", linear(1.0), models.mahalanobis), 2.0, flat, X, wrong),
    "wolf-network": Row(
        wolf("IEKF(iterations=3)+C-ACI(q=0.001)", models.nonlinear(network, noise=0.1), models.imq),
        2.0,
        {"params": net},
        X,
        pair,
    ),
    "outlier-bernoulli": Row(named("OB(b=0.5)+C-ACI(q=0.01)", linear), 0.25, flat, X, wrong),
    "outlier-bernoulli-network": Row(
        drifting("OB(form=covariance)+C-OU", models.nonlinear(network, noise=0.1), relax),
        0.95,
        {"params": net},
        X,
        pair,
    ),
    "outlier-bernoulli-runs": Row(watching("OB+RL[2]-PR(hazard=0.1)", linear(0.25), runs(2)), 0.1, flat, X, wrong),
    "inverse-wishart": Row(
        named("IW+C-SP(shrink=0.9, q=0.1)", lambda v: linear(v * jnp.asarray(R))), 1.0, wide, X[:, :2], pair
    ),
    "inverse-wishart-tracker": Row(
        drifting("IW(form=covariance)+C-LSSM", models.linear(noise=R), dynamics), 0.1, wide, H, pair
    ),
    "student": Row(named("ST(form=precision)+C-ACI(q=0.01)", linear), 0.25, flat, X, wrong),
    "loss": Row(drifting("LG+C-ACI", linear_of(models.loss(log_cosh)), walk), 0.1, flat, X, wrong),
    "enkf": Row(drifting("EnKF(size=20, inflation=1.01)+C-ACI", linear(0.25), walk), 0.01, flat, X, y, 1),
    "etkf-tracker": Row(
        drifting("ETKF(size=16)+C-LSSM", models.linear(noise=R), dynamics),
        0.1,
        {"mean": np.zeros(4), "cov": 1.0},
        H,
        pair,
        2,
    ),
    "enkf-labels": Row(
        drifting("EnKF(size=20)+C-OU", linear_of(models.categorical()), relax), 0.9, matrix, X, classes, 3
    ),
    "etkf-network": Row(
        drifting("ETKF(size=30)+C-ACI", models.nonlinear(network, noise=0.1), walk), 1e-3, {"params": net}, X, pair, 4
    ),
    "gradient": Row(
        lambda rate: fx.method("C-Static", model=linear(0.25), posterior=Gradient(rate, memory=3, inner=2)),
        0.1,
        flat,
        X,
        y,
    ),
    "particles": Row(drifting("PF(size=60)+C-ACI", linear(0.25), walk), 0.05, flat, X, y, 5),
    "particles-counts": Row(
        drifting("PF(size=60, shrink=0.95)+C-OU", linear_of(models.poisson()), relax), 0.9, flat, X, counts, 6
    ),
    "particles-auxiliary": Row(named("APF(size=60)+C-Static", linear), 0.25, flat, X, y, 7),
    "particles-labels": Row(
        drifting("PF(size=60)+C-OU", linear_of(models.categorical()), relax), 0.9, matrix, X, classes, 8
    ),
    "particles-marginalised": Row(
        drifting("WoLF-Power(beta=0.2)+RBPF(size=60, drawn=2)+C-LSSM", models.linear(noise=R), dynamics),
        0.1,
        {"mean": np.zeros(4), "cov": 1.0},
        H * np.array([1.0, 1.0, 0.0, 0.0]),
        pair,
        9,
    ),
    "logistic-variational": Row(drifting("RVGA+C-ACI", linear_of(models.bernoulli()), walk), 0.01, flat, X, label),
    "lofi-network": Row(
        drifting("LoFi(rank=4, spare=4)+C-ACI", models.nonlinear(network, noise=0.1), walk),
        1e-3,
        {"params": net},
        X,
        pair,
    ),
    "lofi-spherical-labels": Row(
        drifting(
            "LoFi(rank=3, form=spherical)+C-OU", models.nonlinear(network, likelihood=models.categorical()), relax
        ),
        0.95,
        {"params": deep},
        X,
        classes,
    ),
    "lofi-wolf-relax-or-reset": Row(
        watching("LoFi(rank=2, spare=3)+RL[1]-OUPR(hazard=0.1)", models.robust(linear(0.25), models.imq(2.0)), runs(1)),
        0.1,
        flat,
        X,
        wrong,
    ),
    "logistic-diagonal": Row(
        drifting("LG(form=diagonal)+C-ACI", linear_of(models.bernoulli()), walk), 0.01, flat, X, label
    ),
    "logistic-explicit": Row(
        drifting("BONG(form=diagonal)+C-OU", linear_of(models.bernoulli()), relax), 0.9, flat, X, label
    ),
    "network-sampled": Row(
        drifting("RVGA(iterations=2, samples=10)+C-ACI", models.nonlinear(network, noise=0.1), walk),
        1e-3,
        {"params": net},
        X,
        pair,
        seed=1,
    ),
    "labels-backprop": Row(
        named("BBB(iterations=2, form=diagonal)+C-OU(rate=0.9)", lambda step: linear_of(models.bernoulli())),
        0.1,
        flat,
        X,
        label,
    ),
    "network-low-rank": Row(
        drifting("RVGA(iterations=2, rank=2, spare=4)+C-ACI", models.nonlinear(network, noise=0.1), walk),
        1e-3,
        {"params": net},
        X,
        pair,
    ),
    "softmax-natural": Row(
        drifting("BLR(iterations=2)+C-OU", linear_of(models.categorical()), relax), 0.9, matrix, X, classes
    ),
    "subspace-labels": Row(
        drifting("LG+C-OU", models.subspace(deep_labels, basis[:, :3], deep), relax),
        0.95,
        {"mean": np.zeros(3), "cov": 0.5},
        X,
        classes,
    ),
    "subspace-runs": Row(
        watching("RL[2]-PR(hazard=0.1)", models.subspace(deep_labels, basis[:, :3], deep), runs(2)),
        0.1,
        {"mean": np.zeros(3), "cov": 0.5},
        X,
        classes,
    ),
    "pulse": Row(
        drifting(
            "PULSE(hidden=covariance, last=covariance)+C-ACI", split(models.nonlinear(network, noise=0.1), net), walk
        ),
        1e-3,
        {"mean": np.append(np.zeros(2), net["outer"]), "cov": (0.5, 1.0)},
        X,
        pair,
    ),
    "pulse-relax-or-reset": Row(
        watching("PULSE(hidden=diagonal)+RL[1]-OUPR(hazard=0.1)", split(deep_labels, deep), runs(1)),
        0.1,
        {"mean": np.append(np.zeros(2), deep["outer"]), "cov": 0.5},
        X,
        classes,
    ),
    "pulse-uncoupled-poisson": Row(
        wolf(
            "PULSE(coupled=False)+C-OU(rate=0.9)",
            models.subspace(models.nonlinear(rate, likelihood=models.poisson()), basis[:3, :1], np.ones(4) / 9, last=1),
            models.mahalanobis,
        ),
        2.0,
        {"mean": np.zeros(2), "cov": 0.3},
        X,
        counts,
    ),
    "subsets": Row(
        watching("CPL[inf](memory=3)-Sub", linear(0.25), lambda p: fx.auxiliary.membership(belong=p, memory=3)),
        0.6,
        flat,
        X,
        y,
    ),
    "chaer_1997": Row(
        lambda rate: fx.methods.chaer_1997(linear(0.25), [walk_of(0.01), walk_of(1.0)], rate), 0.5, flat, X, y
    ),
    "ghahramani_hinton_2000": Row(
        lambda noise: fx.methods.ghahramani_hinton_2000(linear(noise), [[0.9, 0.1], [0.2, 0.8]], posterior="LG"),
        0.25,
        flat,
        X,
        y,
    ),
    "fearnhead_liu_2007": Row(
        lambda h: fx.methods.fearnhead_liu_2007(linear(0.25), h, [relax(0.9), relax(1.0)], keep=3), 0.1, flat, X, y
    ),
    "nguyen_2017": Row(lambda noise: fx.methods.nguyen_2017(linear(noise), memory=3, posterior="LG"), 0.25, flat, X, y),
    "kurle_2019": Row(
        lambda rate: fx.methods.kurle_2019(linear(0.25), rate, memory=3, posterior="LG"), 0.9, flat, X, y
    ),
    "nassar_2022": Row(lambda p: fx.methods.nassar_2022(linear(0.25), p, memory=3), 0.6, flat, X, y),
    "nassar_2022-binary": Row(
        lambda noise: fx.methods.nassar_2022(linear(noise), 0.6, memory=3, binary=True), 0.25, flat, X, y
    ),
    "kalman_1960": Row(lambda q: fx.methods.kalman_1960(linear(0.25), walk_of(q)), 0.1, flat, X, y),
    "magill_1965": Row(lambda q: fx.methods.magill_1965(linear(0.25), [walk_of(q), walk_of(1.0)]), 0.1, flat, X, y),
    "chang_athans_1978": Row(
        lambda q: fx.methods.chang_athans_1978(linear(0.25), [walk_of(q), walk_of(1.0)], [[0.9, 0.1], [0.2, 0.8]]),
        0.1,
        flat,
        X,
        y,
    ),
    "adams_mackay_2007": Row(lambda h: fx.methods.adams_mackay_2007(linear(0.25), h), 0.1, flat, X, y),
    "wilson_2010": Row(lambda a: fx.methods.wilson_2010(linear(0.25), a, 9.0, keep=3), 1.0, flat, X, y),
    "fearnhead_liu_2011": Row(  # under a constant hazard, paths that differ in when they changed would weigh the same
        lambda noise: fx.methods.fearnhead_liu_2011(linear(noise), LENGTHS, keep=3), 0.25, flat, X, y
    ),
    "mellor_shapiro_2013": Row(
        lambda h: fx.methods.mellor_shapiro_2013(models.bernoulli(), h), 0.1, {"mean": 0.5, "cov": 0.05}, None, label
    ),
    "knoblauch_damoulas_2018": Row(
        lambda h: fx.methods.knoblauch_damoulas_2018(linear(0.25), [walk(0.0), walk(0.1)], h, keep=3), 0.1, flat, X, y
    ),
    "kurle_2019_relaxing": Row(lambda r: fx.methods.kurle_2019_relaxing(linear(0.25), r), 0.9, flat, X, y),
    "li_2021": Row(lambda h: fx.methods.li_2021(linear(0.25), h, keep=3), 0.1, flat, X, y),
    "liu_2023": Row(lambda q: fx.methods.liu_2023(linear(0.25), [walk(q), walk(1.0)]), 0.1, flat, X, y),
    "chang_2023": Row(lambda q: fx.methods.chang_2023(linear(0.25), q, rank=2), 0.01, flat, X, y),
    "titsias_2023": Row(lambda noise: fx.methods.titsias_2023(linear(noise)), 0.25, flat, X, y),
    "galashov_2024": Row(lambda noise: fx.methods.galashov_2024(linear(noise)), 0.25, flat, X, y),
    "abeles_2024": Row(lambda q: fx.methods.abeles_2024(linear(0.25), [walk_of(q), walk_of(1.0)]), 0.1, flat, X, y),
    "duran_martin_2025": Row(lambda h: fx.methods.duran_martin_2025(linear(0.25), h), 0.1, flat, X, y),
    "survivors-drawn": Row(
        lambda h: fx.method(
            "RL[3]-PR(hazard=0.1)", model=linear(0.25), auxiliary=runs(3)(h), weighting=fx.weighting.sampled(3)
        ),
        0.1,
        flat,
        X,
        y,
        9,
    ),
    "survivors-diverse": Row(
        lambda h: fx.method(
            "CPL[3]-MCI(hazard=0.1)",
            model=linear(0.25),
            auxiliary=fx.auxiliary.change_locations(h, keep=3),
            weighting=fx.weighting.diverse(3),
        ),
        0.1,
        flat,
        X,
        y,
    ),
    "coin": Row(drifting("Cj+C-OU", models.bernoulli(), relax), 0.9, {"mean": 0.5, "cov": 0.05}, None, label),
    "count": Row(drifting("Cj+C-OU", models.poisson(), relax), 0.9, {"mean": 2.0, "cov": 1.0}, None, counts),
}
