"""Passes over a square matrix, against numpy in float64; and filters that learn by them, against those by products."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.beliefs import dense, native

compiled = pytest.mark.skipif(not native.usable(), reason="there is no C compiler here")
SIZES = [(17, 1), (64, 3), (65, 6), (257, 1), (300, 7), (301, 2), (512, 1), (530, 13), (1023, 1), (1024, 1), (1030, 2)]


def numbers(D, O, seed=0):
    """A symmetric matrix, rows, columns and a diagonal."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(D, D))
    given = A + A.T, rng.normal(size=(O, D)), rng.normal(size=(D, O)) / np.sqrt(D), rng.normal(size=D)
    return [np.asarray(a, np.float32) for a in given]


def close(found, want):
    """To the rounding of float32, beside the largest number."""
    np.testing.assert_allclose(np.asarray(found, float), want, rtol=0, atol=2e-6 * np.abs(want).max())


def traced(function):
    """Compiled by what is set now: JAX would find the program that it made of the same function before."""
    return jax.jit(lambda *given: function(*given))


@pytest.fixture(params=[pytest.param("kernels", marks=compiled), "products"])
def way(request, monkeypatch):
    """Both ways, for any number of parameters."""
    monkeypatch.setattr(dense, "MANY", 0 if request.param == "kernels" else 10**6)
    return request.param


@pytest.mark.parametrize(("D", "O"), SIZES)
def test_each_pass(way, D, O):
    A, J, U, d = numbers(D, O)
    a, j, u = (x.astype(float) for x in (A, J, U))
    a[0] += np.arange(D)  # a root is not symmetric
    root = np.asarray(a, np.float32)
    close(traced(dense.applied)(root, J), a @ j.T)
    close(traced(dense.reached)(root, J), j @ a)
    lower, shown = traced(dense.narrowed)(root, J, U.T)
    close(lower, a - (a @ j.T) @ u.T)
    close(shown, a @ j.T)
    want = A.astype(float) - u @ u.T
    np.fill_diagonal(want, d)
    found = np.asarray(traced(dense.downdated)(A, U, d))
    close(found, want)
    assert ("filtax_" in traced(dense.downdated).lower(A, U, d).as_text()) == (way == "kernels")
    np.testing.assert_array_equal(np.diagonal(found), d)


@pytest.mark.parametrize("D", [17, 64, 65, 257, 301, 512, 530, 1023, 1024])
def test_a_change_that_was_put_off_is_made_with_the_forecast(way, D):
    """Sizes around those of vectors, of rows side by side, and of pages; where u is zero a row keeps its bits."""
    A, J, U, _ = numbers(D, 1)
    np.fill_diagonal(A, 0.0)
    U[::3] = 0.0
    want = A.astype(float) - U.astype(float) @ U.T.astype(float)
    np.fill_diagonal(want, 0.0)
    found, shown = map(np.asarray, traced(dense.caught_up)(A, U[:, 0], J))
    close(found, want)
    close(shown, want @ J.T.astype(float))
    np.testing.assert_array_equal(np.diagonal(found), 0.0)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(found[::3], A[::3])


@compiled
@pytest.mark.parametrize(("D", "O"), SIZES)
def test_what_is_symmetric_stays_so_to_the_last_bit_and_what_is_given_is_not_written_over(monkeypatch, D, O):
    monkeypatch.setattr(dense, "MANY", 0)
    A, J, U, d = map(jnp.asarray, numbers(D, O))
    before = np.array(A)
    found = np.asarray(traced(dense.downdated)(A, U, d))
    np.testing.assert_array_equal(found, found.T)
    traced(dense.narrowed)(A, J, U.T)
    off = A.at[jnp.arange(D), jnp.arange(D)].set(0.0)
    made = traced(dense.caught_up)(off, U[:, 0], J[:1])[0]
    np.testing.assert_array_equal(made, traced(dense.downdated)(off, U[:, :1], jnp.zeros(D, jnp.float32)))
    np.testing.assert_array_equal(A, before)


@compiled
def test_the_same_numbers_each_time():
    """Whoever of the threads takes which part: fifty runs to the last bit."""
    A, J, U, d = map(jnp.asarray, numbers(530, 2))
    run = jax.jit(
        lambda: (
            *(dense.applied(A, J), dense.reached(A, J), dense.downdated(A, U, d), dense.narrowed(A, J, U.T)),
            dense.caught_up(A, U[:, 0], J[:1]),
        )
    )
    first = jax.tree.leaves(run())
    for _ in range(50):
        for found, want in zip(jax.tree.leaves(run()), first, strict=True):
            np.testing.assert_array_equal(found, want)


@compiled
def test_nothing_is_changed_by_no_datum():
    A, *_ = map(jnp.asarray, numbers(300, 2))
    none = jnp.zeros((2, 300), jnp.float32)
    np.testing.assert_array_equal(traced(dense.narrowed)(A, none, none)[0], A)
    np.testing.assert_array_equal(traced(dense.downdated)(A, none.T, jnp.diagonal(A)), A)


def learned(form, O=1, streams=None):
    """Mean, variances, evidence and its slope after 12 data of a curved model with 301 parameters."""
    rng = np.random.default_rng(5)
    X, Y = (np.asarray(rng.normal(size=(12, n)), np.float32) for n in (301, O))

    def h(theta, x):
        return jnp.stack([jnp.tanh(theta * x).sum() / (4.0 + o) for o in range(O)])

    def run(scale):
        drift = "Static" if form == "root" else "ACI(q=0.001)"
        method = fx.method(f"LG(form={form})+C-{drift}", model=fx.models.nonlinear(h, noise=0.3 * np.eye(O)))
        state = method.init(mean=jnp.full(301, 0.1, jnp.float32), cov=scale * jnp.ones(301, jnp.float32))
        state, infos = method.scan(state, jnp.asarray(X), jnp.asarray(Y))
        belief = method.belief(state)
        return infos.log_evidence.sum(), (belief.mean, belief.var, infos.log_evidence)

    if streams:
        return jax.tree.leaves(jax.jit(jax.vmap(run))(jnp.linspace(0.5, 2.0, streams, dtype=jnp.float32)))
    return jax.tree.leaves(jax.jit(jax.value_and_grad(run, has_aux=True))(jnp.float32(1.0)))


@compiled
@pytest.mark.parametrize(
    "given", [{"form": form, **more} for form in ("covariance", "root") for more in ({}, {"O": 2})], ids=str
)
@pytest.mark.parametrize("streams", [None, 3])
def test_a_filter_learns_the_same_with_kernels_as_with_products(monkeypatch, given, streams):
    """Means, variances, evidence, its slope; and streams side by side, which share products."""
    with_kernels = learned(**given, streams=streams)
    monkeypatch.setattr(dense, "MANY", 10**6)
    for found, want in zip(with_kernels, learned(**given, streams=streams), strict=True):
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-5)


@compiled
@pytest.mark.parametrize("form", ["covariance", "root"])
def test_slopes_of_slopes_pass_through_a_loop(monkeypatch, form):
    """Forwards, backwards and mixed, as with products."""
    X, Y = (jnp.asarray(np.random.default_rng(6).normal(size=shape), jnp.float32) for shape in ((5, 260), 5))

    def evidence(noise, h):
        method = fx.method(f"LG(form={form})+C-Static", model=fx.models.nonlinear(h, noise=noise))
        state = method.init(mean=jnp.zeros(260, jnp.float32), cov=0.01)
        return method.scan(state, X, Y)[1].log_evidence.sum()

    def twice(way):
        line = lambda theta, x: theta @ x  # another one each time: its programs are found again otherwise
        return jax.jit(way(lambda noise: evidence(noise, line))).lower(jnp.float32(1.0)).compile()

    forwards = lambda f: jax.jacfwd(jax.jacfwd(f))
    backwards = lambda f: jax.grad(jax.grad(f))
    found = list(map(twice, (jax.hessian, backwards, forwards)))
    monkeypatch.setattr(dense, "MANY", 10**6)
    want = twice(jax.hessian)
    assert ["filtax_" in way.as_text() for way in (*found, want)] == [True, True, True, False]
    np.testing.assert_allclose(
        [float(way(jnp.float32(1.0))) for way in found], float(want(jnp.float32(1.0))), rtol=2e-3
    )


def program(form, streams=None):
    """What XLA makes of a step of a filter with 300 parameters, and of a forecast."""
    drift = "ACI(q=0.1)" if form == "covariance" else "Static"
    method = fx.method(f"LG(form={form})+C-{drift}", model=fx.models.linear(noise=1.0))
    state = method.init(mean=jnp.zeros(300, jnp.float32), cov=1.0)
    x = jnp.ones((streams, 300) if streams else 300, jnp.float32)
    text = []
    for verb in (lambda state, x: method.step(state, x, 1.0)[0], lambda state, x: method.predict(state, x).var):
        way = jax.vmap(verb, in_axes=(None, 0)) if streams else verb
        text.append(jax.jit(way).lower(state, x).compile().as_text())
    return text


@compiled
@pytest.mark.parametrize(
    ("form", "learning", "looking"),
    [("covariance", ["caught_up"], ["applied"]), ("root", ["reached", "narrowed"], ["reached"])],
)
def test_a_step_is_as_many_passes_as_there_must_be(form, learning, looking):
    """Forecast and update share them, noise needs none; and a forecast alone writes nothing.

    Streams with rows of their own are products.
    """
    for text, passes in zip(program(form), (learning, looking), strict=True):
        assert {name: text.count(f'"filtax_{name}"') for name in native.DENSE} == {
            name: int(name in passes) for name in native.DENSE
        }
    assert not [name for name in native.DENSE for text in program(form, streams=3) if f'"filtax_{name}"' in text]
