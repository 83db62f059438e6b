"""What keeps a step cheap, as facts that a compiler report or a pointer can show: times are for `benchmarks/`."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax import bone

D = 40  # above every size that is unrolled or masked


def network(name):
    method = fx.method(name, model=fx.models.nonlinear(lambda theta, x: jnp.tanh(theta @ x), noise=0.1))
    return method, method.init(mean=jnp.zeros(D, jnp.float32), cov=1.0)


def tracker():
    F = jnp.eye(4, dtype=jnp.float32) + 0.1 * jnp.eye(4, k=2, dtype=jnp.float32)
    prior = fx.priors.linear_dynamics(F=F, Q=0.01 * jnp.eye(4, dtype=jnp.float32))
    method = fx.method("LG(form=covariance)+C-LSSM", model=fx.models.linear(noise=0.25), prior=prior)
    return method, method.init(mean=jnp.zeros(4, jnp.float32), cov=1.0)


def compiled_scan(method, state, X, Y, complete):
    lowered = bone._scan.lower(method, state, X, Y, None, None, None, keep=("mean",), complete=complete)
    return lowered.compile().as_text()


def loop_body(text):
    """The instructions of the scan's body, in XLA's own words."""
    name = re.search(r" while\(.*?body=%([\w.\-]+)", text).group(1)
    start = text.index(f"\n%{name} ")
    return text[start : text.index("\n}", start)]


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("name", ["LG(form=covariance)+C-ACI(q=0.001)", "LG(form=root)+C-Static"])
def test_a_large_belief_is_read_and_written_in_place(name, complete):
    method, state = network(name)
    X, Y = np.ones((8, D), np.float32), np.ones(8, np.float32)
    body = loop_body(compiled_scan(method, state, X, Y, complete))
    square = rf"f32\[(1,)?{D},{D}\]"
    assert len(re.findall(square + r"\S* copy\(", body)) == 0
    reads = re.findall(r"= f32\[[\d,]*\]\S* dot\(", body)
    assert len(reads) <= (1 if "covariance" in name else 2)  # one product with the whole belief; a root needs a second


def test_a_network_of_low_rank_holds_no_more_than_four_factors():
    """State, new state and work together: at most 4 D (rank + spare) numbers, as few more would be one more copy."""
    wide, outputs, rank, spare = 6000, 5, 20, 20
    model = fx.models.linear(likelihood=fx.models.categorical())
    method = fx.method(f"LoFi(rank={rank}, spare={spare})+C-ACI(q=0.001)", model=model)
    state = method.init(mean=jnp.zeros(wide, jnp.float32), cov=1.0)
    X, Y = np.ones((4, wide // outputs), np.float32), np.ones(4, np.float32)
    run = jax.jit(lambda *given: method.scan(*given, keep=("log_evidence",), complete=True), donate_argnums=0)
    used = run.lower(state, X, Y).compile().memory_analysis()
    total = used.argument_size_in_bytes + used.temp_size_in_bytes + used.output_size_in_bytes
    assert total - used.alias_size_in_bytes - X.nbytes - Y.nbytes <= 4 * wide * (rank + spare) * 4


def test_a_small_loop_has_nothing_that_xla_cannot_compile_whole():
    method, state = tracker()
    X, Y = np.ones((8, 2, 4), np.float32), np.ones((8, 2), np.float32)
    body = loop_body(compiled_scan(method, state, X, Y, complete=True))
    assert not re.search(r"\b(scatter|sort|custom-call|fft)\b", body)


def test_streams_of_a_complete_linear_model_share_one_covariance():
    method, state = tracker()
    X, Y = np.ones((8, 2, 4), np.float32), np.ones((5, 8, 2), np.float32)
    run = jax.vmap(lambda y: method.scan(state, X, y, keep=("belief_mean",), complete=True)[1].belief_mean)
    carried = loop_body(jax.jit(run).lower(Y).compile().as_text()).splitlines()[1]
    assert "f32[5,4]" in carried  # of the means there is one for each stream
    assert "f32[4,4]" in carried
    assert "f32[5,4,4]" not in carried


def test_products_for_many_streams_are_computed_once():
    """As calls of their own: merged into what reads them, each would be computed again for every number of that."""
    method, state = tracker()
    X, Y = np.ones((8, 2, 4), np.float32), np.ones((16, 8, 2), np.float32)
    many = jax.jit(jax.vmap(lambda y: method.scan(state, X, y, keep=("mean",))[1].mean))
    assert loop_body(many.lower(Y).compile().as_text()).count(" call(") >= 5
    assert " call(" not in loop_body(compiled_scan(method, state, X, Y[0], complete=False))


def test_a_step_hands_on_what_does_not_change():
    method, state = network("LG(form=covariance)+C-ACI(q=0.001)")
    later, _ = method.step(state, np.ones(D, np.float32), 0.5)
    assert later.initial.cov is state.initial.cov
    later, _ = method.scan(state, np.ones((3, D), np.float32), np.zeros(3, np.float32))
    assert later.initial.cov is state.initial.cov


def test_methods_are_plain_and_can_be_jitted_as_they_are():
    method, state = tracker()
    x, y = np.ones((2, 4), np.float32), np.ones(2, np.float32)
    direct, through = method.step(state, x, y)[1], jax.jit(method.step)(state, x, y)[1]
    assert type(method.step).__name__ == "method"
    np.testing.assert_allclose(direct.mean, through.mean, rtol=1e-6)
