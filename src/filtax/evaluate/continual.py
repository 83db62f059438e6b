r"""Scores of continual learning, from how well every task is done after each task was learned.

All take a matrix $a_{kj}$ of shape (..., K, N), the accuracy on task j after task k, of N tasks of which K were learned
so far, and return a number for each trial, (...). What is measured pulls two ways: one who never forgets cannot
learn a task that contradicts an earlier one, and one who resets at each remembers nothing.

Average accuracy and forgetting are those of Chaudhry et al. (2018, "Riemannian Walk for Incremental Learning"), the two
transfers those of Lopez-Paz and Ranzato (2017, "Gradient Episodic Memory for Continual Learning"), the accuracy at
learning that of Riemer et al. (2019, "Learning to Learn without Forgetting").
"""

from typing import Any

import numpy as np

__all__ = ["average_accuracy", "backward_transfer", "forgetting", "forward_transfer", "learning_accuracy"]


def average_accuracy(matrix: Any) -> np.ndarray:
    r"""Accuracy now, the mean over the tasks learned so far: $A_K = \frac1K \sum_{j \le K} a_{Kj}$.

    Give the first k rows for the average after k tasks.

    Example:
        >>> from filtax.evaluate.continual import average_accuracy
        >>> average_accuracy([[0.9, 0.2], [0.5, 0.8]]).item()
        0.65
    """
    a, K = _matrix("average_accuracy", matrix, 1)
    return np.asarray(np.mean(a[..., K - 1, :K], axis=-1))


def learning_accuracy(matrix: Any) -> np.ndarray:
    r"""Accuracy on each task when it had just been learned, the mean: $\frac1K \sum_{j \le K} a_{jj}$.

    Example:
        >>> from filtax.evaluate.continual import learning_accuracy
        >>> learning_accuracy([[0.9, 0.2], [0.5, 0.7]]).item()
        0.8
    """
    a, K = _matrix("learning_accuracy", matrix, 1)
    return np.asarray(np.mean(np.diagonal(a[..., :K], axis1=-2, axis2=-1), axis=-1))


def forgetting(matrix: Any) -> np.ndarray:
    r"""What was lost of the best: $F_K = \frac1{K-1} \sum_{j<K} \bigl(\max_{l<K} a_{lj} - a_{Kj}\bigr)$.

    Of two tasks or more; below 0 where later tasks helped earlier ones.

    Example:
        >>> from filtax.evaluate.continual import forgetting
        >>> forgetting([[0.9, 0.2], [0.5, 0.8]]).item()
        0.4
    """
    a, K = _matrix("forgetting", matrix, 2)
    return np.asarray(np.mean(np.max(a[..., : K - 1, : K - 1], axis=-2) - a[..., K - 1, : K - 1], axis=-1))


def backward_transfer(matrix: Any) -> np.ndarray:
    r"""What later tasks did to earlier ones: $\frac1{K-1} \sum_{j<K} (a_{Kj} - a_{jj})$.

    Of two tasks or more; below 0 where tasks were forgotten.

    Example:
        >>> from filtax.evaluate.continual import backward_transfer
        >>> backward_transfer([[0.75, 0.2], [0.5, 0.8]]).item()
        -0.25
    """
    a, K = _matrix("backward_transfer", matrix, 2)
    own = np.diagonal(a[..., :K], axis1=-2, axis2=-1)
    return np.asarray(np.mean(a[..., K - 1, : K - 1] - own[..., :-1], axis=-1))


def forward_transfer(matrix: Any, before: Any) -> np.ndarray:
    r"""What earlier tasks did for the next, before it began: $\frac1{N-1} \sum_{j=2}^N (a_{j-1,j} - b_j)$.

    Args:
        matrix: Accuracies (..., K, N), of two tasks or more; of tasks that no row comes before nothing is said.
        before: Accuracy b on each task before anything was learned, (..., N).

    Example:
        >>> from filtax.evaluate.continual import forward_transfer
        >>> forward_transfer([[0.9, 0.25], [0.5, 0.8]], before=[0.5, 0.5]).item()
        -0.25
    """
    a, K = _matrix("forward_transfer", matrix, 1)
    b = np.asarray(before, np.float64)
    N = a.shape[-1]
    if N < 2:
        raise ValueError("forward_transfer(matrix=...) has one task; two or more are needed.")
    if b.shape[-1:] != (N,):
        raise ValueError(f"forward_transfer(before=...) has shape {b.shape}; give one accuracy for each of {N} tasks.")
    last = min(K, N - 1)
    ahead = np.diagonal(a[..., :last, 1 : last + 1], axis1=-2, axis2=-1)
    return np.asarray(np.mean(ahead - b[..., 1 : last + 1], axis=-1))


def _matrix(call: str, matrix: Any, least: int) -> tuple[np.ndarray, int]:
    a = np.asarray(matrix, np.float64)
    if a.ndim < 2 or not least <= a.shape[-2] <= a.shape[-1]:
        raise ValueError(
            f"{call}(matrix=...) has shape {a.shape}; give (..., K, N): a row after each of K tasks, at least {least}, "
            "and a column for each of N tasks, at least K."
        )
    if not np.all((a >= 0.0) & (a <= 1.0)):
        raise ValueError(f"{call}(matrix=...) holds {a.min():g} to {a.max():g}; accuracies lie in [0, 1].")
    return a, a.shape[-2]
