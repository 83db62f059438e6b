r"""Special functions that keep their digits for large arguments, where the library ones subtract huge numbers.

In float32 the log of a gamma function near 10⁶ is only known to about one, and with it everything that is a difference
of two: Student-t densities, count probabilities, incomplete gamma and beta functions. After Stirling's series the
large parts cancel on paper instead.
"""

import math

import jax.numpy as jnp
from jax.scipy.special import betainc, gammaincc, gammaln, ndtr
from jaxtyping import Array

__all__ = ["cap", "exceeds", "gamma_tail", "log_peak", "log_rising", "student_tail"]

SERIES = 20.0  # from here on three terms of Stirling's series are exact to 1e-12
NORMAL = 200.0  # degrees of freedom from which the expansion of Student's t is exact to 1e-12


def cap(dtype: jnp.dtype) -> float:
    """Largest log that can be exponentiated, halved or squared without leaving the type.

    >>> round(cap(jnp.dtype("float32")), 1)
    79.9
    """
    return 0.9 * math.log(float(jnp.finfo(dtype).max))


def exceeds(size: Array) -> Array:
    """Say where a library function of this size of argument would be wrong by more than 1e-5.

    >>> exceeds(jnp.asarray(1e6, "float32")).item()
    True
    """
    return size * float(jnp.finfo(size.dtype).eps) > 1e-5


def log_rising(a: Array, k: Array) -> Array:
    """Log of Gamma(a + k) / Gamma(a), for a > 0 and k >= 0.

    >>> log_rising(jnp.asarray(3.0), jnp.asarray(2.0)).round(5).item()  # 3 x 4
    2.48491
    """
    far = jnp.where(a > SERIES, a, SERIES)
    series = (far - 0.5) * jnp.log1p(k / far) + k * jnp.log(far + k) - k + _rest(far + k) - _rest(far)
    near = jnp.where(a > SERIES, SERIES, a)
    return jnp.where(a > SERIES, series, gammaln(near + k) - gammaln(near))


def log_peak(y: Array) -> Array:
    """Log Poisson probability of y at the rate y itself, which is the largest it can be: y log y - y - log y!.

    >>> log_peak(jnp.asarray(1.0)).round(5).item()
    -1.0
    """
    far = jnp.where(y > SERIES, y, SERIES)
    near = jnp.where((y > 0.0) & (y <= SERIES), y, 1.0)
    exact = jnp.where(y > 0.0, near * jnp.log(near) - near - gammaln(near + 1.0), 0.0)
    return jnp.where(y > SERIES, -0.5 * jnp.log(2.0 * math.pi * far) - _rest(far), exact)


def gamma_tail(a: Array, x: Array) -> Array:
    r"""Probability that a Gamma(a) variable exceeds x; that of at most a - 1 events at the rate x.

    For large a by the uniform expansion of Temme (1979) in $\eta$, $\tfrac12\eta^2 = \mu - \log(1+\mu)$ with
    $\mu = x/a - 1$.

    >>> gamma_tail(jnp.asarray(1.0), jnp.asarray(2.0)).round(5).item()  # exp(-2)
    0.13534
    """
    large = exceeds(a)
    far = jnp.where(large, a, 1.0)
    mu = jnp.maximum((jnp.where(large, x, 1.0) - far) / far, -0.999)
    small = jnp.where(jnp.abs(mu) < 0.01, mu, 0.0)
    series = small * small * (0.5 - small * (1 / 3 - small * (0.25 - 0.2 * small)))
    half = jnp.where(jnp.abs(mu) < 0.01, series, mu - jnp.log1p(mu))
    eta = jnp.sign(mu) * _root(2.0 * half)
    near = jnp.clip(eta, -1.0, 1.0)  # beyond, the correction is below exp(-40)
    first = -1 / 3 + near * (1 / 12 - near * (2 / 135 - near * (1 / 864 + near / 2835)))
    rest = first - (1 / 540 + near / 288) / far
    expanded = ndtr(-eta * jnp.sqrt(far)) + jnp.exp(-far * half) * rest / jnp.sqrt(2.0 * math.pi * far)
    return jnp.where(large, expanded, gammaincc(jnp.where(large, 1.0, a), jnp.where(large, 1.0, x)))


def student_tail(t: Array, n: Array) -> Array:
    """Probability that Student's t with n degrees of freedom exceeds t >= 0; many degrees after Hill (1970).

    >>> student_tail(jnp.asarray(1.0), jnp.asarray(1.0)).round(5).item()
    0.25
    """
    few = jnp.where(n < NORMAL, n, NORMAL)
    exact = 0.5 * betainc(0.5 * few, 0.5 * jnp.ones_like(few), few / (few + t * t))
    many = jnp.where(n < NORMAL, NORMAL, n)
    a = many - 0.5
    b = 48.0 * a * a
    y = a * jnp.log1p(t * t / many)
    bend = (((-0.4 * y - 3.3) * y - 24.0) * y - 85.5) / (0.8 * y * y + 100.0 + b)
    return jnp.where(n < NORMAL, exact, ndtr(-_root(y) * (1.0 + (y + 3.0 + bend) / b)))


def _root(x: Array) -> Array:
    """Square root with a finite gradient at zero."""
    return jnp.where(x > 0.0, jnp.sqrt(jnp.where(x > 0.0, x, 1.0)), 0.0)


def _rest(z: Array) -> Array:
    """What Stirling's formula leaves out of log Gamma(z)."""
    inverse = 1.0 / z
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square / 1260))
