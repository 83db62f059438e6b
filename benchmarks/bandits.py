"""Contextual bandits in the protocol of the Deep Bayesian Bandits Showdown, and the MNIST bandit.

    python -m benchmarks.bandits [NAME ...] [--steps 2000] [--seeds 10] [--networks] [--json out/bandits.json]
    python -m benchmarks.bandits --mnist [--steps 40000] [--seeds 10] [--policy ts-linearised] [--method METHOD]
    python -m benchmarks.bandits --speed

The tables are found by FILTAX_DATA; `benchmarks.showdown` holds the protocol.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.showdown import LINEAR, PUBLISHED, contest

BEST_PUBLISHED_MNIST = 31_168  # mean cumulative reward of 40,000 steps


def mnist(steps, seeds, policy, method_name, first=1):
    """LeNet-5 with an output for each digit; the reward is 1 for the right one.

    Rank, noise and prior variance were chosen among twelve settings by 4000 rounds of seed 0, which is not played here.
    """
    import jax
    import jax.numpy as jnp

    import filtax as fx
    from filtax.bandits import play, table
    from thesis.tables import load_table

    held = load_table("mnist")
    net = fx.models.lenet5(activation="elu")
    method = fx.method(method_name, model=fx.models.nonlinear(net.apply, noise=0.1))
    totals = []
    for seed in range(first, first + seeds):  # one after the other: side by side the factor would be cut at every round
        of_order, of_net, of_play = jax.random.split(jax.random.key(seed), 3)
        world = table(held.contexts, held.rewards, key=of_order, steps=steps)
        state = method.init(params=net.init(of_net, jnp.float32), cov=1e-3)
        began = time.perf_counter()
        played = play(method, policy, world, state, key=of_play, shared=True)
        totals.append(float(played.total[0]))
        print(f"seed {seed}: {totals[-1]:.0f} of {steps}, {time.perf_counter() - began:.0f} s", flush=True)
    mean = float(np.mean(totals))
    print(f"{method.name}, {policy}: mean {mean:.1f}; best published for 40,000 steps {BEST_PUBLISHED_MNIST}")
    return {"method": method.name, "policy": policy, "steps": steps, "totals": totals, "mean": mean}


def speed(steps=10_000, simulations=100, repeats=5):
    """Seconds for 10^6 arm-steps of Gaussian arms: C-ACI, ten Bernoulli arms; median of warm runs, noise included."""
    import jax

    import filtax as fx
    from filtax.bandits import drifting_bernoulli, play, stack, thompson

    method = fx.method("LG(form=covariance)+C-ACI(q=0.01)", model=fx.models.bernoulli())
    world = drifting_bernoulli(key=jax.random.key(0), steps=steps, simulations=simulations)
    state = stack([method.init(mean=np.zeros(1, np.float32), cov=2.0)] * world.arms)
    run = lambda key: jax.block_until_ready(play(method, thompson(), world, state, key=jax.random.key(key)))
    run(0)
    took = []
    for i in range(repeats):
        began = time.perf_counter()
        run(i)
        took.append(time.perf_counter() - began)
    seconds, millions = float(np.median(took)), steps * simulations * world.arms / 1e6
    print(f"{seconds:.3f} s for {millions:g} million arm-steps: {seconds / millions:.4f} s a million, at most 0.15")
    return {"seconds": seconds, "a million": seconds / millions, "each": took}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bandits", description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help=f"tables: {', '.join(LINEAR)}; those with published numbers by default"
    )
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--first", type=int, default=1, help="for --mnist: the first seed")
    parser.add_argument("--networks", action="store_true", help="networks beside the linear arms")
    parser.add_argument("--mnist", action="store_true", help="the MNIST bandit; meant for a GPU")
    parser.add_argument("--speed", action="store_true", help="the time of Gaussian arms")
    parser.add_argument("--policy", default="ts-linearised")
    parser.add_argument("--method", default="LoFi(rank=20)+C-Static", help="for --mnist")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    given = parser.parse_args(arguments)
    if given.speed:
        out = speed()
    elif given.mnist:
        out = mnist(given.steps or 40_000, given.seeds or 10, given.policy, given.method, given.first)
    else:
        names = given.names or list(PUBLISHED)
        out = {n: contest(n, given.steps or 2000, given.seeds or 10, given.networks) for n in names}
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(out, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
