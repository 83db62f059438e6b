"""The figure of the continual-learning experiment: labels foreseen as they come, and accuracy on all tasks so far."""

from typing import TYPE_CHECKING

import numpy as np

from filtax.evaluate import average_accuracy
from thesis.continual_learning import METHODS
from thesis.experiment import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]

SPAN = 50  # labels of a moving mean


def draw(result: Result) -> "Figure":
    """A column for each kind of task: labels foreseen, boundaries unknown; and accuracy on the tasks so far."""
    from filtax.report.panels import COLOURS, GREY, INK, panels

    a = result.arrays
    scenarios = list(result.numbers["scores"])
    figure, axes = panels(2, len(scenarios), size=(11.0, 6.0), sharey="row")
    lines = [(name, name, colour, "-", 1.3) for name, colour in zip(METHODS, COLOURS, strict=False)]
    lines.append(("Static, told", "Static, told of each task", INK, "--", 1.0))
    for (above, below), scenario in zip(axes.T, scenarios, strict=True):
        _, N, T = a[f"{scenario}, majority"].shape
        for name, words, colour, dashes, width in lines:
            right = a[f"{scenario}, {name}, right"].reshape(-1, N * T).mean(axis=0)
            above.plot(np.arange(N * T) + 1, _moving(right), color=colour, ls=dashes, lw=width, label=words)
            matrix = a[f"{scenario}, {name}, matrix"]
            so_far = [average_accuracy(matrix[:, : k + 1]).mean() for k in range(N)]
            below.plot(np.arange(N) + 1, so_far, color=colour, ls=dashes, lw=width, marker="o", ms=3)
        usual = a[f"{scenario}, majority"].reshape(-1, N * T).mean(axis=0)
        above.plot(np.arange(N * T) + 1, _moving(usual), color=GREY, ls=":", label="majority class")
        mixed = average_accuracy(a[f"{scenario}, Static, shuffled, matrix"]).mean()
        below.axhline(mixed, color=GREY, ls="-.", lw=1.0, label="Static, all tasks shuffled")
        for boundary in range(T, N * T, T):
            above.axvline(boundary, color=GREY, lw=0.5, alpha=0.5)
        above.set(title=scenario, xlabel="images seen", xlim=(0, N * T), ylim=(0, 1))
        below.set(xlabel="tasks learned", xticks=range(1, N + 1), ylim=(0, 1))
    axes[0, 0].set_ylabel(f"labels foreseen, mean of {SPAN}")
    axes[1, 0].set_ylabel("accuracy on the tasks so far")
    axes[0, -1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes[1, -1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _moving(values: np.ndarray) -> np.ndarray:
    """Mean of the latest SPAN values, of fewer at the beginning."""
    total = np.cumsum(np.concatenate([[0.0], values]))
    end = np.arange(1, len(values) + 1)
    start = np.maximum(end - SPAN, 0)
    return (total[end] - total[start]) / (end - start)
