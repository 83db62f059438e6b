"""Which loops XLA's CPU compiler is asked to compile whole, into one function.

By default it makes a list of small functions of the body of a loop, and walks through the list at every turn: for a
small filter that costs ten times its arithmetic. A loop that stands in a call of its own can be marked to become one
function instead, which is what `tune_xla` asks for in a whole process.

The mark is not documented by XLA, and it takes what is marked at its word. So only loops are marked that are small and
are made of plain arithmetic, and only by versions of XLA with which that was tried. FILTAX_WHOLE_LOOPS=0 in the
environment turns it off. Results are the same to rounding.
"""

import math
import os
from typing import Any

import jaxlib
from jax.extend.core import ClosedJaxpr, Jaxpr

from filtax.calls import chosen, stays

__all__ = ["may_be_whole"]

TRIED = ((0, 10),)
BYTES = 1 << 22  # that a turn may make: beyond, its parts are worth a thread each
PLAIN = frozenset(
    "abs add and argmax argmin broadcast_in_dim ceil clamp concatenate convert_element_type copy cos div "
    "dynamic_slice dynamic_update_slice eq erf exp exp2 expm1 floor gather ge gt integer_pow iota is_finite le log "
    "log1p logistic lt max min mul ne neg not or pad platform_index pow reduce_and reduce_max reduce_min reduce_or "
    "reduce_prod reduce_sum rem reshape rev round rsqrt select_n sign sin slice sqrt square squeeze stack "
    "stop_gradient sub tanh transpose xor".split()
)
SHORT = 64  # terms of a product that is summed in place; longer ones are a library's


def may_be_whole(body: ClosedJaxpr) -> bool:
    """Whether a loop with this body may be compiled whole.

    >>> import jax, jax.numpy as jnp
    >>> [may_be_whole(jax.make_jaxpr(f)(jnp.eye(9))) for f in (jnp.exp, jnp.linalg.cholesky)]
    [True, False]
    """
    tried = jaxlib.version.__version_info__[:2] in TRIED and os.environ.get("FILTAX_WHOLE_LOOPS") != "0"
    return tried and _made(body.jaxpr) <= BYTES


def _made(jaxpr: Jaxpr) -> float:
    """Bytes that a program makes; infinite if there is more to it than plain arithmetic."""
    made_by = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
    return float(sum(_of_equation(eqn, made_by) for eqn in jaxpr.eqns))


def _of_equation(eqn: Any, made_by: dict[Any, Any]) -> float:
    name, params = eqn.primitive.name, eqn.params
    if name in ("jit", "custom_jvp_call"):
        return _made(params["jaxpr" if name == "jit" else "call_jaxpr"].jaxpr)
    if name == "cond" and params.get("branches_platforms"):  # decided before anything is compiled
        return max(_made(branch.jaxpr) for branch in params["branches"])
    if name == "by_streams":
        given = eqn.invars[0].aval
        return _made(chosen(given.shape, given.dtype, **params).jaxpr)
    if name == "kept_apart":  # a call that stays one, inside of another, is not plain
        call = made_by.get(eqn.invars[0])
        shapes = [[atom.aval.shape for atom in atoms] for atoms in (call.invars if call else (), eqn.outvars)]
        return math.inf if stays(shapes[0], shapes[1], **params) else 0.0
    if name == "dot_general":
        (along, _), _ = params["dimension_numbers"]
        terms = math.prod(eqn.invars[0].aval.shape[axis] for axis in along)
        return math.inf if terms > SHORT or eqn.outvars[0].aval.size > 1 else 8.0
    if name not in PLAIN:
        return math.inf
    sizes = (math.prod(var.aval.shape) * getattr(var.aval.dtype, "itemsize", math.inf) for var in eqn.outvars)
    return float(sum(sizes))
