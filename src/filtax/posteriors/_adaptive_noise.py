r"""(A.1) Posteriors that adapt the noise of each datum while they learn from it: OB, IW and ST.

They iterate between q(theta), which is the prior conditioned on the datum with the present noise, and the belief about
the noise of the datum, which needs the expected square of the whitened residual under q,
$$E_q[\epsilon\epsilon^\top] = (r - s)(r - s)^\top + BJ\Sigma'J^\top B^\top, \qquad s = BJ(\mu' - \mu).$$
It includes the uncertainty of theta. h is linearised once, at the mean of the prior.

In a form that conditions exactly, s and the covariance follow from the covariance of the forecast before the datum,
$BJ\Sigma J^\top B^\top = KK^\top$: with $I + K^\top C^\top CK = LL^\top$ the covariance after it is
$KL^{-\top}L^{-1}K^\top$. An iteration then costs O(O³) and no pass over the belief. A form that drops correlations is
conditioned again each time. The adapted noise is $B^{-1}(C^\top C)^{-1}B^{-\top}$ and is never formed: C B takes the
place of the whitener B, so that C = 0 leaves the belief bit for bit as it was.

Forecast and evidence are those of the plain model with noise R. Hypotheses are weighed by the evidence under the
adapted noise, so that an outlier does not look like a change.

Axes: D parameters, O outputs; a missing output has rows of zeros. Cost: one conditioning and O(O³) an iteration.
Thesis: sec:experiments-robustness, tab:complexity-linear-model, eq:noisy-2d-ssm-outlier-covariance.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import digamma
from jaxtyping import Array, Bool, Float, PyTree

from filtax import _validation as checks
from filtax.beliefs import Covariance, Pending, Precision, SquareRoot
from filtax.linalg import factor, log_normal, matmul, psd_root, trace, triangular_root
from filtax.models import Model, Whitened
from filtax.numerics import safe_scale, safe_sqrt
from filtax.posteriors._extended import Extended, GaussianPosterior, Mask, RandomKey, condition
from filtax.protocols import Module, Update, static

EXACT = (Covariance, Pending, Precision, SquareRoot)  # forms that condition without approximation
UNROLLED = 8  # so many iterations are written out, because XLA does not compile a loop within a loop as one program


class AdaptiveNoise(GaussianPosterior):
    """A posterior with the beliefs and forecasts of `Extended`, whose noise is adapted to each datum."""

    iterations = 4  # a field of each of them
    needs_covariance = True
    weighs_data = True

    def __check_init__(self) -> None:
        checks.whole(f"{self.name}(iterations=...)", self.iterations, least=1, most=checks.REPEATS)

    def update(
        self, belief: PyTree, model: Model, x: Array | None, y: Array, mask: Mask, aux: PyTree, key: RandomKey
    ) -> Update:
        """Condition on y with its adapted noise; `trust` is the expected factor of its precision."""
        datum = _whiten(belief, model, x, y, mask, aux)
        noise, share = self._adapt(datum)
        return _absorb(datum, model, x, y, mask, aux, noise, share)

    @abstractmethod
    def _adapt(self, datum: "_Datum") -> tuple["_Noise", Float[Array, ""] | None]:
        """The noise of a datum, and the prior probability of a good datum where outliers have a density."""

    def _precision(self, datum: "_Datum", step: Callable[[Array, Array], Array]) -> Float[Array, ""]:
        """A factor w of the precision, from w = 1 by `w <- step(w, expected square)`; 0 where that is not finite."""

        def revise(w: Array) -> Array:
            square = datum.expected_square(w)
            finite = jnp.isfinite(square)
            return jnp.where(finite, step(w, jnp.where(finite, square, 0.0)), 0.0)

        return _repeat(revise, jnp.ones((), datum.residual.dtype), self.iterations)


class StudentNoise(AdaptiveNoise):
    r"""The Kalman filter for noise with Student-t tails of known degrees of freedom; extended where h is not linear.

    The variational scale mixture of Piché, Särkkä and Hartikainen (2012): a Student-t density is a Gaussian whose
    precision has a factor of its own for each datum, $y \mid \theta, \tau \sim N(h(\theta), R/\tau)$ with
    $\tau \sim \mathrm{Gam}(\nu/2, \nu/2)$. With $q(\theta)\,q(\tau)$ and $w = E[\tau]$ one iteration takes
    $$w \leftarrow \frac{\nu + O}{\nu + E_q[(y - h(\theta))^\top R^{-1}(y - h(\theta))]}, \qquad
    q(\theta) \propto \pi_t(\theta)\,N(y; h(\theta), R/w).$$
    A datum that fits better than most has a weight above 1, up to (nu + O) / nu. The Student-t filter of Roth, Özkan
    and Gustafsson (2013) is another: its belief is t-shaped, with degrees of freedom that grow with each datum.

    Attributes:
        degrees: Degrees of freedom nu; the fewer, the heavier the tails.
        iterations: How often the weight of a datum is revised.
        form: Of the belief, as for `Extended`.

    >>> import filtax as fx
    >>> method = fx.method("ST(degrees=4)+C-Static", model=fx.models.linear(noise=1.0))
    >>> state = method.init(mean=jnp.zeros(1), cov=1.0)
    >>> [round(method.step(state, jnp.ones(1), y)[1].trust.item(), 2) for y in (1.0, 8.0, 100.0)]
    [1.06, 0.09, 0.0]
    """

    degrees: Any = 4.0
    iterations: Any = static(default=4)
    form: str = static(default="auto")
    name = "ST"
    shown = {"degrees": 4.0, "iterations": 4, "form": "auto"}  # noqa: RUF012

    def __check_init__(self) -> None:
        checks.positive("ST(degrees=...)", self.degrees, hint="Few degrees of freedom mean heavy tails; try 4.")

    def _adapt(self, datum: "_Datum") -> tuple["_Noise", None]:
        nu = jnp.asarray(self.degrees, datum.residual.dtype)
        w = self._precision(datum, lambda w, square: (nu + datum.count) / (nu + square))
        return datum.with_precision(w), None


class BernoulliOutliers(AdaptiveNoise):
    r"""The Kalman filter that detects and rejects outliers (KF-B); extended where h is not linear (EKF-B).

    The filter of Wang, Li, Fang and Wang (2018), a baseline of the thesis. An indicator z says whether a datum is good:
    $p(y \mid \theta, z) \propto N(y; h(\theta), R)^z$ with $z \sim \mathrm{Bern}(\pi)$ and
    $\pi \sim \mathrm{Beta}(a, b)$. With $q(\theta)\,q(z)\,q(\pi)$ and $w = E[z]$ one iteration takes
    $$q(\theta) \propto \pi_t(\theta)\,N(y; h(\theta), R/w), \qquad q(\pi) = \mathrm{Beta}(a + w, b + 1 - w),$$
    and
    $$\operatorname{logit} w \leftarrow \psi(a + w) - \psi(b + 1 - w)
      - \tfrac12 E_q[(y - h(\theta))^\top R^{-1}(y - h(\theta))].$$
    The prior of the probability is counted once, however many the iterations. An outlier has the constant density
    $|2\pi R|^{-1/2}$, so that the unit of y does not matter. Hypotheses are weighed by the evidence of the mixture,
    $\frac{a}{a+b}p(y) + \frac{b}{a+b}|2\pi R|^{-1/2}$, which for a far outlier is the same under all of them.

    Attributes:
        a: Of the Beta prior of the probability that a datum is good.
        b: Of the same; the prior expects a share b / (a + b) of outliers.
        iterations: How often the weight of a datum is revised.
        tolerance: A datum of less weight is dropped: the belief stays as it is, bit for bit.
        form: Of the belief, as for `Extended`.

    >>> import filtax as fx
    >>> method = fx.method("OB+C-Static", model=fx.models.linear(noise=1.0))
    >>> state = method.init(mean=jnp.zeros(1), cov=1.0)
    >>> [round(method.step(state, jnp.ones(1), y)[1].trust.item(), 3) for y in (1.0, 8.0, 100.0)]
    [1.0, 0.0, 0.0]
    """

    a: Any = 0.9
    b: Any = 0.1
    iterations: Any = static(default=4)
    tolerance: Any = 1e-6
    form: str = static(default="auto")
    name = "OB"
    shown = {"a": 0.9, "b": 0.1, "iterations": 4, "tolerance": 1e-6, "form": "auto"}  # noqa: RUF012

    def __check_init__(self) -> None:
        hint = "a and b count as that many good and bad data seen before."
        checks.positive("OB(a=...)", self.a, hint=hint)
        checks.positive("OB(b=...)", self.b, hint=hint)
        checks.share("OB(tolerance=...)", self.tolerance, hint="It is the weight below which a datum is dropped.")

    def _adapt(self, datum: "_Datum") -> tuple["_Noise", Float[Array, ""]]:
        dtype = datum.residual.dtype
        a, b, tolerance = (jnp.asarray(value, dtype) for value in (self.a, self.b, self.tolerance))

        def step(w: Array, square: Array) -> Array:
            return jax.nn.sigmoid(digamma(a + w) - digamma(b + 1.0 - w) - 0.5 * square)

        w = self._precision(datum, step)
        w = jnp.where(w < tolerance, 0.0, w)
        return datum.with_precision(w), jnp.asarray(self.a / (self.a + self.b), dtype)


class InverseWishartNoise(AdaptiveNoise):
    r"""The Kalman filter that gives each datum a noise covariance of its own (KF-IW, EKF-IW).

    The filter of Agamennoni, Nieto and Nebot (2012), a baseline of the thesis: $y \mid \theta, R_t \sim N(h(\theta),
    R_t)$ with $R_t^{-1} \sim \mathrm{Wishart}(R^{-1}/s,\, s)$. With $q(\theta)\,q(R_t)$ and
    $\Lambda = E[R_t^{-1}]^{-1}$ one iteration takes
    $$\Lambda \leftarrow \frac{sR + E_q[(y - h(\theta))(y - h(\theta))^\top]}{s + 1}, \qquad
    q(\theta) \propto \pi_t(\theta)\,N(y; h(\theta), \Lambda).$$
    For several outputs the outer product discounts the direction of the error alone. The prior is proper for
    s > O - 1; the equations hold for every s > 0.

    The first residual is that of the plain update, $\Lambda = R$, but in the direction of the forecast's residual
    $e_0$: $e \leftarrow e_0\,(e_0^\top R^{-1}e)/(e_0^\top R^{-1}e_0)$. In a direction of its own, the pull of an
    outlier with several outputs would grow with its size; from the forecast itself a vague belief would learn little.

    Attributes:
        degrees: Degrees of freedom s of the Wishart prior; the fewer, the more the noise of a datum may differ from R.
        iterations: How often the noise of a datum is revised.
        form: Of the belief, as for `Extended`.

    >>> import filtax as fx
    >>> method = fx.method("IW(degrees=4)+C-Static", model=fx.models.linear(noise=1.0))
    >>> state = method.init(mean=jnp.zeros(1), cov=1.0)
    >>> [round(method.step(state, jnp.ones(1), y)[1].trust.item(), 2) for y in (1.0, 8.0, 100.0)]
    [1.06, 0.09, 0.0]
    """

    degrees: Any = 4.0
    iterations: Any = static(default=4)
    form: str = static(default="auto")
    name = "IW"
    shown = {"degrees": 4.0, "iterations": 4, "form": "auto"}  # noqa: RUF012

    def __check_init__(self) -> None:
        checks.positive("IW(degrees=...)", self.degrees, hint="Few degrees of freedom mean heavy tails; try 4.")

    def _adapt(self, datum: "_Datum") -> tuple["_Noise", None]:
        r = datum.residual
        one = jnp.ones((), r.dtype)

        def revise(noise: _Noise) -> _Noise:
            shift, spread = datum.fit(noise)
            return self._noise(datum, r - shift, one, shift, spread)

        shift, spread = datum.fit(datum.with_precision(one))
        unit, length = _polar(r)
        left = jnp.where(length > 0.0, 1.0 - jnp.sum(unit * (shift / jnp.where(length > 0.0, length, 1.0))), 1.0)
        left = jnp.maximum(left, jnp.finfo(r.dtype).eps)
        first = self._noise(datum, left * r, 1.0 / left, jnp.zeros_like(r), spread)
        return _repeat(revise, first, self.iterations - 1), None

    def _noise(
        self, datum: "_Datum", e: Float[Array, " O"], along: Array, rest: Array, spread: Float[Array, "O O"]
    ) -> "_Noise":
        r"""The noise for an expected residual e with covariance `spread`, where r = along e + rest.

        In whitened units $\Lambda = A + aee^\top$ with $A = (sI + V)/(s + 1) = LL^\top$ and $a = 1/(s + 1)$. With
        $u = \sqrt a L^{-1}e$ and $k^2 = 1 + |u|^2$ a root of its inverse is $C = (I - (1 - 1/k)\hat u\hat
        u^\top)L^{-1}$, and $Ce = \hat u\,|u|/(k\sqrt a)$. So a residual of any size stays bounded, where a Cholesky
        factor of $\Lambda$ would lose it.
        """
        s, observed = jnp.asarray(self.degrees, e.dtype), datum.observed
        both, eye = observed[:, None] & observed[None, :], jnp.eye(e.size, dtype=e.dtype)
        L = factor(jnp.where(both, (s * eye + spread) / (s + 1.0), eye))
        direction, size = _polar(e)
        unit, length = _polar(L.solve(direction))
        root = jnp.sqrt(s + 1.0)
        u = size / root * length
        far = u > 1.0 / jnp.finfo(u.dtype).eps  # then 1 + u² rounds to u², which may overflow
        k = jnp.where(far, u, jnp.sqrt(1.0 + jnp.square(jnp.where(far, 1.0, u))))
        half = L.solve(eye)
        C = half - (1.0 - 1.0 / k) * unit[:, None] * matmul(unit[None, :], half)
        residual = along * root * (u / k) * unit + matmul(C, rest[:, None])[:, 0]
        precision = jnp.sum(jnp.where(both, jnp.square(C), 0.0)) / jnp.maximum(datum.count, 1.0)
        return _Noise(C, residual, -0.5 * L.log_det - jnp.log(k), precision)


def _polar(e: Float[Array, " O"]) -> tuple[Float[Array, " O"], Float[Array, ""]]:
    """Direction and length of e, whose square may overflow."""
    scale = safe_scale(e)
    size = safe_sqrt(jnp.sum(jnp.square(e / scale)))
    return e / scale / jnp.where(size > 0.0, size, 1.0), scale * size


class _Noise(Module):
    """The adapted noise of a datum: C, C r, log |C| over the observed outputs, and the trust."""

    scale: Float[Array, "O O"]
    residual: Float[Array, " O"]
    log_scale: Float[Array, ""]
    trust: Float[Array, ""]


class _Datum(Module):
    """A datum and the belief before it: whitened with the plain noise and made finite.

    `far` marks a residual that overflowed, `invalid` one that is not a number. `root` is K with K Kᵀ the covariance of
    the whitened forecast, None for a form that drops correlations.
    """

    prior: PyTree
    rows: Float[Array, "O D"]
    whitener: Float[Array, "O O"]
    residual: Float[Array, " O"]
    log_scale: Float[Array, ""]
    observed: Bool[Array, " O"]
    far: Bool[Array, ""]
    invalid: Bool[Array, ""]
    root: Float[Array, "O O"] | None

    @property
    def count(self) -> Float[Array, ""]:
        """Number of observed outputs."""
        return jnp.sum(self.observed.astype(self.residual.dtype))

    def fit(self, noise: _Noise) -> tuple[Float[Array, " O"], Float[Array, "O O"]]:
        """Condition on the datum; return the shift of the whitened forecast, and its covariance afterwards."""
        if self.root is not None:
            CK = matmul(noise.scale, self.root)
            half = factor(jnp.eye(len(CK), dtype=CK.dtype) + matmul(CK.T, CK)).solve(self.root.T)
            pull = matmul(half, matmul(noise.scale.T, noise.residual[:, None]))
            return matmul(half.T, pull)[:, 0], matmul(half.T, half)
        q = self.prior.condition(self.rows, noise.scale, noise.residual).belief
        return matmul(self.rows, (q.mean - self.prior.mean)[:, None])[:, 0], q.project_cov(self.rows)

    def with_precision(self, w: Float[Array, ""]) -> _Noise:
        """The noise R / w."""
        root = safe_sqrt(w)
        log_root = 0.5 * self.count * jnp.log(jnp.where(w > 0.0, w, 1.0))
        return _Noise(root * jnp.eye(self.residual.size, dtype=w.dtype), root * self.residual, log_root, w)

    def expected_square(self, w: Float[Array, ""]) -> Float[Array, ""]:
        """Expected square of the whitened residual under the belief conditioned with noise R / w."""
        shift, spread = self.fit(self.with_precision(w))
        return jnp.sum(jnp.square(self.residual - shift)) + trace(spread)


def _whiten(belief: PyTree, model: Model, x: Array | None, y: Array, mask: Mask, aux: PyTree) -> _Datum:
    at = model.linearise(belief.mean, x, aux)
    whitened = model.likelihood.whiten(at.eta, x, y, mask)
    B, r = whitened.whitener, whitened.residual
    rows = matmul(B, at.jacobian)
    invalid = jnp.any(jnp.isnan(r)) | ~jnp.all(jnp.isfinite(B)) | ~jnp.all(jnp.isfinite(rows))
    far = jnp.any(jnp.isinf(r))
    rows, B, r = jnp.where(invalid, 0.0, rows), jnp.where(invalid, 0.0, B), jnp.where(invalid | far, 0.0, r)
    observed = jnp.ones(r.shape, bool) if mask is None else mask
    root = _forecast_root(belief, rows) if isinstance(belief, EXACT) else None
    return _Datum(belief, rows, B, r, jnp.asarray(whitened.log_scale), observed, far, invalid, root)


def _forecast_root(belief: PyTree, rows: Float[Array, "O D"]) -> Float[Array, "O O"]:
    """K with K Kᵀ the covariance of rows theta; a root is not squared for it."""
    if isinstance(belief, SquareRoot):
        wide = matmul(rows, belief.root)
        return triangular_root(jnp.where(jnp.isfinite(jnp.sum(wide * wide)), wide, 0.0))
    spread = belief.project_cov(rows)
    return psd_root(jnp.where(jnp.isfinite(trace(spread)), spread, 0.0))


def _absorb(
    datum: _Datum,
    model: Model,
    x: Array | None,
    y: Array,
    mask: Mask,
    aux: PyTree,
    noise: _Noise,
    share: Float[Array, ""] | None,
) -> Update:
    """Condition on a datum with its adapted noise; one that overflowed has no effect, one that is NaN is refused."""
    taken = ~datum.far & (noise.trust > 0.0)
    B = jnp.where(taken, matmul(noise.scale, datum.whitener), 0.0)
    r = jnp.where(datum.invalid, jnp.nan, jnp.where(taken, noise.residual, 0.0))
    least = datum.count * jnp.log(jnp.finfo(r.dtype).tiny)
    log_scale = jnp.where(taken, datum.log_scale + noise.log_scale, least)
    trust = jnp.where(datum.count > 0, jnp.where(taken, noise.trust, 0.0), 1.0)
    whitened = Whitened(B, r, log_scale, trust)
    flat = datum.log_scale - 0.5 * math.log(2.0 * math.pi) * datum.count
    at = model.linearise(datum.prior.mean, x, aux)
    forecast = Extended().forecast(datum.prior, model, x, aux)
    model = Model(model.predictor, _Adapted(whitened, log_scale, flat, datum.count, share))
    return condition(datum.prior, model, x, y, mask, at, forecast, log_normal)


class _Adapted(Module):
    """The likelihood of one datum whose noise has been adapted."""

    whitened: Whitened
    log_scale: Float[Array, ""]
    flat: Float[Array, ""]
    count: Float[Array, ""]
    share: Float[Array, ""] | None

    def whiten(self, *_: Array | None) -> Whitened:
        return self.whitened

    def log_score(self, _whitened: Whitened, conditioned: PyTree, plain: Array, *_: Array | None) -> Array:
        """Evidence under the adapted noise, or of the mixture of a good datum and an outlier."""
        if self.share is None:
            score = log_normal(conditioned.innovation, conditioned.log_det, self.count) + self.log_scale
        else:
            score = jnp.logaddexp(jnp.log(self.share) + plain, jnp.log1p(-self.share) + self.flat)
        return jnp.where(self.count > 0, score, 0.0)


def _repeat(revise: Callable[[Any], Any], first: PyTree, iterations: int) -> PyTree:
    if iterations > UNROLLED:
        return jax.lax.scan(lambda carry, _: (revise(carry), None), first, length=iterations)[0]
    for _ in range(iterations):
        first = revise(first)
    return first
