"""Draws of the mean rewards, or of the rewards themselves, from any belief: what an outlook without a formula asks."""

from typing import Any

import jax
from jaxtyping import Array

from filtax.beliefs import Beta, Gamma
from filtax.models.gaussian import GaussianLikelihood
from filtax.protocols import Hypotheses
from filtax.tick import look_ahead

__all__ = ["SAMPLERS"]


def _draw_parameter(method: Any, hypotheses: Hypotheses, x: Array | None, key: Array) -> Array:
    of_part, of_value = jax.random.split(key)
    chosen = jax.random.categorical(of_part, hypotheses.log_weight)
    belief, aux = jax.tree.map(lambda leaf: leaf[chosen], (hypotheses.belief, hypotheses.aux))
    theta = belief.sample(of_value)
    if isinstance(belief, Beta | Gamma):
        return theta
    eta = method.model.value(theta, x, aux).eta
    plain = getattr(method.model.likelihood, "inner", method.model.likelihood)
    direct = isinstance(plain, GaussianLikelihood) or not hasattr(plain, "given")  # a loss: the prediction itself
    return eta if direct else plain.given(eta, x, False).mean


def _shared_parameter(held: tuple, key: Array) -> Array:
    method, hypotheses, _, _, x = held
    return _draw_parameter(method, hypotheses, x, key)


def _separate_parameter(held: tuple, key: Array) -> Array:
    method, hypotheses, _, _, x = held
    keys = jax.random.split(key, hypotheses.log_weight.shape[0])
    return jax.vmap(lambda hypotheses, key: _draw_parameter(method, hypotheses, x, key)[0])(hypotheses, keys)


def _shared_reward(held: tuple, key: Array) -> Array:
    method, _, initial, hypotheses, x = held
    return look_ahead(method, hypotheses, initial, x, None, False).sample(key).reshape(-1)


def _separate_reward(held: tuple, key: Array) -> Array:
    method, _, initial, hypotheses, x = held
    keys = jax.random.split(key, hypotheses.log_weight.shape[0])
    draw = lambda hypotheses, initial, key: look_ahead(method, hypotheses, initial, x, None, False).sample(key)  # noqa: E731
    return jax.vmap(draw)(hypotheses, initial, keys).reshape(-1)


SAMPLERS = {  # by (shared, with the noise of the rewards)
    (True, False): _shared_parameter,
    (False, False): _separate_parameter,
    (True, True): _shared_reward,
    (False, True): _separate_reward,
}
