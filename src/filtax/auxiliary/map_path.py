r"""(M.2) The most probable path of experts that take turns: Viterbi's recursion on what a scan has kept.

$\delta_t(j) = \max_i \{\delta_{t-1}(i) + \log P_{ij}\} + \log p(y_t \mid j)$, and back from the best end. How each
expert scored is read off the weights, $\nu_t(j) \propto p(y_t \mid j) \sum_i \nu_{t-1}(i) P_{ij}$, so that it is the
merged beliefs (IMM, GPB) that are judged, as they were when the datum came. The weights themselves are the state
posterior.

Cost: T E².
Thesis: eqn:MELSSM, the switching state-space models (SSSM) among the tasks.
"""

from typing import Any

import numpy as np

from filtax.auxiliary.experts import Experts

__all__ = ["map_path"]


def map_path(auxiliary: Any, log_weight: Any) -> np.ndarray:
    """The most probable sequence of experts, one for each datum.

    Args:
        auxiliary: `filtax.auxiliary.experts(...)`, of the method that was run from its start.
        log_weight: (T, E), from `scan(..., keep=("log_weight",))`; exp of it is the posterior of each tick.

    Returns:
        (T,) whole numbers below E.

    >>> from filtax.auxiliary import experts
    >>> sticky = experts(2, transition=[[0.9, 0.1], [0.1, 0.9]])
    >>> map_path(sticky, np.log([[0.6, 0.4], [0.3, 0.7], [0.1, 0.9]])).tolist()
    [1, 1, 1]
    """
    weight = np.asarray(log_weight, "float64")
    E = auxiliary.slots if isinstance(auxiliary, Experts) else 0
    if weight.ndim != 2 or not len(weight) or weight.shape[1] != E:
        raise ValueError(
            f"map_path: log_weight has shape {weight.shape} but there are {E} experts; give the (T, {E}) array that "
            'scan(..., keep=("log_weight",)) keeps of a method whose auxiliary is ME.'
        )
    with np.errstate(divide="ignore"):
        prior = np.asarray(auxiliary.log_prior, "float64")
        same = np.where(np.eye(E, dtype=bool), 0.0, -np.inf)
        turn = same if auxiliary.log_transition is None else np.asarray(auxiliary.log_transition, "float64")
    before, best, back = prior, prior, []
    for now in weight:
        foreseen = _log_sum(before[:, None] + turn)
        score = np.where(foreseen > -np.inf, now - np.where(foreseen > -np.inf, foreseen, 0.0), -np.inf)
        reach = best[:, None] + turn
        back.append(np.argmax(reach, axis=0))
        best = np.max(reach, axis=0) + score
        best, before = best - best.max(), now
    path = [int(np.argmax(best))]
    for came in back[:0:-1]:
        path.append(int(came[path[-1]]))
    return np.array(path[::-1])


def _log_sum(values: np.ndarray) -> np.ndarray:
    """Log of the sum of exponentials along the first axis; -inf where all are."""
    top = np.max(values, axis=0)
    safe = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.sum(np.exp(values - safe), axis=0))
