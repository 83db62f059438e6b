"""A belief over eight devices, which a processor is told to play, gives the numbers of one."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import filtax as fx

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import filtax as fx
from filtax import shard

assert len(jax.devices()) == 8
rng = np.random.default_rng(0)
net = fx.models.mlp((7, 4, 8))  # 72 parameters
X, Y = rng.normal(size=(12, 7)), rng.integers(0, 8, 12).astype(float)
model = fx.models.nonlinear(net.apply, likelihood=fx.models.categorical())
mesh = jax.make_mesh((8,), ("parameters",))
for name in ("LoFi(rank=5)+C-ACI(q=1e-3)", "LG(form=diagonal)+C-Static", "LG(form=covariance)+C-Static"):
    method = fx.method(name, model=model)
    state = method.init(params=net.init(jax.random.key(0), "float64"), cov=0.1)
    alone, infos = method.scan(state, X, Y, keep=("log_evidence", "mean"))
    apart, others = method.scan(shard(state, mesh), X, Y, keep=("log_evidence", "mean"))
    np.testing.assert_allclose(others.log_evidence, infos.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(method.belief(apart).mean, method.belief(alone).mean, rtol=1e-7, atol=1e-10)
    held = {len(leaf.sharding.device_set) for leaf in jax.tree.leaves(apart.hypotheses.belief) if 72 in leaf.shape}
    parts = [leaf.addressable_shards[0].data.size * 8 == leaf.size for leaf in jax.tree.leaves(apart.hypotheses.belief)
             if 72 in leaf.shape]
    assert held == {8} and all(parts), (name, held, parts)

# streams that lie on several devices; JAX itself refuses a scan over an explicit axis that no `jax.set_mesh` names
kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
state, X, Y = kf.init(mean=jnp.zeros(8), cov=1.0), rng.normal(size=(6, 8)), rng.normal(size=(40, 6))
alone, split = (kf.scan(held, X, Y[0])[1].mean for held in (state, shard(state, mesh)))
np.testing.assert_allclose(split, alone, rtol=1e-12)
mesh = jax.make_mesh((8,), ("parameters",), axis_types=(jax.sharding.AxisType.Auto,))
streams = jax.device_put(Y, jax.NamedSharding(mesh, jax.P("parameters")))
each = jax.jit(jax.vmap(lambda y: kf.scan(state, X, y)[1].mean))
np.testing.assert_allclose(each(streams), each(Y), rtol=1e-12)

# a shard_map that looks at what differs between devices: states of their own, or one for all
kf = fx.method("WoLF-IMQ(c=2)+NIG+RL[1]-OUPR(hazard=0.01)", model=fx.models.linear(noise=1.0))
state, over = kf.init(mean=jnp.zeros(8), cov=1.0), jax.P("parameters")
run = lambda state, y: kf.scan(state, X, y)[1].mean
states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (40, *leaf.shape)), state)
for first, held, axis in ((over, states, 0), (jax.P(), state, None)):
    mapped = jax.shard_map(jax.vmap(run, in_axes=(axis, 0)), mesh=mesh, in_specs=(first, over), out_specs=over)
    np.testing.assert_allclose(jax.jit(mapped)(held, Y), jax.vmap(run, in_axes=(axis, 0))(held, Y), rtol=1e-9)
print("same")
"""


@pytest.mark.x64
def test_eight_devices_give_the_numbers_of_one():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env={**os.environ, "XLA_FLAGS": flags}
    )
    assert done.stdout == "same\n", done.stderr[-2000:]


def test_as_many_rows_as_parameters_lie_one_after_the_other():
    lofi = fx.method("LoFi(rank=4, spare=4)+C-Static", model=fx.models.linear(noise=1.0))
    state = fx.shard(lofi.init(mean=jnp.zeros(8), cov=1.0), jax.make_mesh((1,), ("parameters",)))
    assert tuple(state.hypotheses.belief.rows.sharding.spec)[-2:] == (None, "parameters")


def test_what_cannot_be_split_is_refused():
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    state = kf.init(mean=jnp.zeros(3), cov=1.0)
    mesh = jax.make_mesh((1,), ("parameters",))
    with pytest.raises(ValueError, match="is no axis of the mesh; it has parameters"):
        fx.shard(state, mesh, "rows")

    class Four:
        axis_names, shape = ("parameters",), {"parameters": 4}

    with pytest.raises(ValueError, match=r"3 parameters cannot be split evenly over 4 .* or add 1 parameters"):
        fx.shard(state, Four())
