"""Checks of what a user gives to a bandit: methods, policies, keys, contexts, and whether they fit together."""

import math
from typing import Any

import jax
from jaxtyping import Array

from filtax import _validation as checks
from filtax.bandits._policies import Policy, policy_named
from filtax.beliefs import Point
from filtax.bone import Bone
from filtax.models._exponential_family import CategoricalLikelihood
from filtax.models._generalised_bayes import LossLikelihood
from filtax.state import State


def checked_policy(call: str, method: Any, policy: Any) -> Policy:
    """Return a policy that is given itself or by its short name, and check that it can choose by this method.

    The method must be one, and not its name; it must learn rewards, not labels, and its beliefs must have what the
    policy explores by.
    """
    if not isinstance(method, Bone):
        raise ValueError(
            f"{call}(method={method!r:.40}) must come from filtax.method(..., model=...), which needs a model."
        )
    policy = policy_named(policy) if isinstance(policy, str) else policy
    if not isinstance(policy, Policy):
        raise ValueError(f"{call}(policy={policy!r:.40}) must come from filtax.bandits, such as thompson().")
    plain = method.model.likelihood.plain
    if isinstance(plain, CategoricalLikelihood):
        raise ValueError(
            f"{call}: {method.name} learns class labels, which are no rewards; give a model of rewards, such as "
            "bernoulli() for 0 and 1, with an output for each arm."
        )
    if policy.explores and method.posterior.families == (Point,):
        raise ValueError(
            f"{call}: {method.name} believes in a single point, so there is nothing for {type(policy).__name__} to "
            "explore by; use greedy() or epsilon_greedy(0.05)."
        )
    if policy.draw == "predictive" and isinstance(plain, LossLikelihood):
        raise ValueError(
            f"{call}: {method.name} learns by a loss, so rewards have no distribution to draw them from; use "
            'draw="parameter" or draw="linearised".'
        )
    return policy


def check_outputs(call: str, method: Any, state: State, x: Array | None, arms: int, *, shared: bool) -> None:
    """Check that the model takes this context, and predicts as many rewards as there are arms."""
    first = state.initial if shared else jax.tree.map(lambda leaf: leaf[0], state.initial)
    given, wanted = "no context" if x is None else f"a context of shape {x.shape}", arms if shared else 1
    try:
        outputs = method.model.bind(state.layout).outputs(first.mean, x)
    except ValueError:
        raise
    except Exception as error:  # of a network: whatever its own code says of a shape that does not fit
        why = str(error).strip().split("\n")[0][:120]
        raise ValueError(f"{call}: the model cannot take {given} ({why}); give the features it was made for.") from None
    if outputs != wanted:
        raise ValueError(
            f"{call}: for {given} the model predicts {outputs} rewards, expected {wanted}"
            f"{', one for each arm' if shared else ''}; give a context that fits mean=... of the bandit."
        )


def check_arms(call: str, method: Any, state: State, x: Array | None, arms: int, *, shared: bool) -> None:
    """Check that states are of this method and of so many arms; they may have a further leading axis."""
    for _ in range(state.t.ndim - (0 if shared else 1)):
        state = jax.tree.map(lambda leaf: leaf[0], state)
    if not shared and state.t.shape[0] != arms:
        raise ValueError(
            f"{call}: there are {state.t.shape[0]} states stacked but {arms} arms; give stack([method.init(...)] * "
            f"{arms})."
        )
    checks.check_state(call, state, method, stacked=not shared)
    check_outputs(call, method, state, x, arms, shared=shared)


def check_arm(arm: Any, known: list[Any]) -> None:
    """Check that the name of an arm can be stored, and that it is new."""
    if isinstance(arm, bool) or not isinstance(arm, str | int):
        raise ValueError(f"arm {arm!r:.40} must be a text or a whole number, so that it can be written down.")
    if arm in known:
        raise ValueError(f"arm {arm!r} is there already; give every arm a name of its own.")


def finite_reward(reward: Any) -> float:
    """Return a reward as a number."""
    try:
        if isinstance(reward, str | bytes):
            raise TypeError
        value = float(reward)
    except (TypeError, ValueError):
        raise ValueError(f"update: the reward must be a number, got {reward!r:.40}.") from None
    if not math.isfinite(value):
        raise ValueError(
            f"update: the reward is {value}; report a finite number. The decision goes on waiting for one."
        )
    return value
