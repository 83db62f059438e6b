"""The protocol of the LoFi paper: one pass over 2000 images of Fashion-MNIST, then the error on the test set.

    FILTAX_DATA=... python -m benchmarks.lofi_protocol [--seeds 10] [--network mlp|cnn] [--rank 10] [--size 2000]
                                                       [--variances 0.003,0.01,0.03,0.1] [--q 0]
                                                       [--units 500] [--judged 10000]

Published for LoFi-10: misclassification 0.218 and 0.224, negative log-likelihood 0.61 and 0.60, of the perceptron
(784-500-500-10) and the network with two convolutions. The variance at the start is chosen on three further draws of
the training images, never on the test set. Forecasts are judged with the parameters averaged out, and at their mean, as
a network without a belief would be. Needs an accelerator for its full size, but not for
`--units 20 --size 300 --judged 500`.
"""

import argparse
import json
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import filtax as fx
from filtax.datasets import read_images


def cnn_init(key):
    """Two convolutions of 3 x 3, each halved by the largest of 2 x 2, and a dense layer of 128: 421,642 parameters."""
    shapes = ((3, 3, 1, 32), (3, 3, 32, 64), (3136, 128), (128, 10))
    keys = jax.random.split(key, len(shapes))
    scale = [np.sqrt(2.0 / np.prod(shape[:-1])) for shape in shapes]
    return [
        {"weight": s * jax.random.normal(k, shape, "float32"), "bias": jnp.zeros(shape[-1], "float32")}
        for k, shape, s in zip(keys, shapes, scale, strict=True)
    ]


def cnn_apply(params, x):
    x = x[None]
    for layer in params[:2]:
        x = jax.lax.conv_general_dilated(x, layer["weight"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + layer["bias"].reshape(1, 1, 1, -1))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(x.reshape(-1) @ params[2]["weight"] + params[2]["bias"])
    return x @ params[3]["weight"] + params[3]["bias"]


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--network", choices=("mlp", "cnn"), default="mlp")
    parser.add_argument("--rank", type=int, default=10)
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--variances", default="0.003,0.01,0.03,0.1", help="of the parameters, to choose from")
    parser.add_argument("--q", type=float, default=0.0, help="variance of a random walk of the parameters")
    parser.add_argument("--units", type=int, default=500, help="of each hidden layer of the perceptron")
    parser.add_argument("--judged", type=int, default=10_000, help="images of the test set")
    options = parser.parse_args(arguments)
    images = read_images("fashion-mnist")
    X, X_test = (part.astype("float32") / 255.0 for part in (images.X, images.X_test))
    y, y_test = images.y.astype("float32"), images.y_test.astype("int32")
    X_test, y_test = X_test[: options.judged], y_test[: options.judged]
    if options.network == "mlp":
        net = fx.models.mlp((784, options.units, options.units, 10))
        begin, apply = partial(net.init, dtype="float32"), net.apply
        X, X_test = X.reshape(len(X), -1), X_test.reshape(len(X_test), -1)
    else:
        begin, apply, X, X_test = cnn_init, cnn_apply, X[..., None], X_test[..., None]
    model = fx.models.nonlinear(apply, likelihood=fx.models.categorical())
    lofi = fx.method(f"LoFi(rank={options.rank})+C-ACI(q={options.q})", model=model)

    @jax.jit
    def learned(state, X, y):
        state, _ = lofi.scan(state, X, y, keep=("ok",))
        return state

    @partial(jax.jit, static_argnames="plugin")
    def judged(state, X, y, plugin):
        chance = jax.lax.map(lambda x: lofi.predict(state, x, plugin=plugin).mean, X, batch_size=50)
        log_p = jnp.log(jnp.take_along_axis(chance, y[:, None], 1))
        return jnp.mean(chance.argmax(-1).astype(y.dtype) != y), -jnp.mean(log_p)

    def once(seed, cov, X_judge, y_judge):
        order = np.random.default_rng(seed).permutation(len(X))[: options.size]
        state = learned(lofi.init(params=begin(jax.random.key(seed)), cov=cov), X[order], y[order])
        if not bool(jnp.all(jnp.isfinite(lofi.belief(state).mean))):
            raise AssertionError("the belief is not finite.")
        return [float(v) for plugin in (False, True) for v in judged(state, X_judge, y_judge, plugin)]

    held = np.random.default_rng(99).permutation(len(X))[: min(2000, options.judged)]
    judge = lambda seed, cov: once(seed, cov, X[held], y[held].astype("int32"))[3]
    variances = [float(number) for number in options.variances.split(",")]
    scores = {cov: np.mean([judge(seed, cov) for seed in (1000, 1001, 1002)]) for cov in variances}
    best = min(scores, key=lambda cov: scores[cov] if np.isfinite(scores[cov]) else np.inf)
    print(json.dumps({"network": options.network, "chosen": best, "of": {str(k): float(v) for k, v in scores.items()}}))
    found = np.array([once(seed, best, X_test, y_test) for seed in range(options.seeds)])
    error = found.std(0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else [np.nan] * 4
    names = [f"{n}{at}" for at in ("", " at the mean") for n in ("misclassification", "negative log-likelihood")]
    rows = {name: f"{m:.4f} +- {s:.4f}" for name, m, s in zip(names, found.mean(0), error, strict=True)}
    print(json.dumps({"seeds": len(found), "device": jax.devices()[0].device_kind, **rows}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
