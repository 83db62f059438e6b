"""Figures of the introduction and of the robustness of WoLF, drawn from the result of `wolf_intro`.

Thesis: fig:dynamical-system-intro, fig:weighted-log-likelihood-gaussian, fig:intro-image.
"""

from typing import TYPE_CHECKING

import numpy as np

from thesis.experiment import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_hidden", "draw_influence", "draw_likelihood", "draw_track"]


def draw_likelihood(result: Result) -> "Figure":
    """N(y | 0, 1) to the power w²."""
    from filtax.report.panels import COLOURS, DASHES, panels

    figure, axis = panels(size=(5.5, 3.4))
    y = np.linspace(-6.0, 6.0, 400)
    log_density = -0.5 * y**2 - 0.5 * np.log(2 * np.pi)
    for i, w in enumerate((1.0, 0.5, 0.25, 0.1)):
        axis.plot(y, np.exp(w * log_density), color=COLOURS[i], ls=DASHES[i % len(DASHES)], label=f"$w^2 = {w:g}$")
    axis.set(xlabel="y", ylabel="not normalised", title="Weighted likelihood of a standard normal", ylim=(0, None))
    axis.legend(frameon=False)
    return figure


def draw_track(result: Result) -> "Figure":
    """First component: data, truth, both filters with two standard deviations."""
    from filtax.report.panels import COLOURS, GREY, INK, panels

    a = result.arrays
    figure, axis = panels(size=(7.5, 3.8))
    steps = np.arange(len(a["y"])) + 1
    axis.plot(steps, a["theta"][:, 0], color=INK, ls="--", lw=1.2, label="truth")
    axis.plot(steps[~a["wrong"]], a["y"][~a["wrong"], 0], ls="", marker="o", ms=3.5, color=GREY, label="measurement")
    axis.plot(steps[a["wrong"]], a["y"][a["wrong"], 0], ls="", marker="x", ms=7, color="crimson", label="outlier")
    for label, name, colour, dash in (("plain", "KF", 0, ":"), ("robust", "WoLF-IMQ", 1, "-")):
        mean, sd = a[f"{label}_mean"][:, 0], np.sqrt(a[f"{label}_cov"][:, 0, 0])
        axis.plot(steps, mean, color=COLOURS[colour], ls=dash, lw=2, label=name)
        axis.fill_between(steps, mean - 2 * sd, mean + 2 * sd, color=COLOURS[colour], alpha=0.2, lw=0)
    axis.set(xlabel="step", ylabel="first component", title="Three outliers in twenty steps", xticks=steps[4::5])
    axis.legend(frameon=False, fontsize=8)
    return figure


def draw_influence(result: Result) -> "Figure":
    """Influence over the square for three methods, on one scale, and along a ray for all."""
    from filtax.report.panels import COLOURS, DASHES, panels

    a = result.arrays
    names = ("KF", "IMQ", "TMD")
    figure, axes = panels(1, 4, size=(12.0, 3.1), width_ratios=(1, 1, 1, 1.25))
    top, reach = max(a[f"square_{name}"].max() for name in names), a["side"][-1]
    shape = {"extent": (-reach, reach, -reach, reach), "origin": "lower", "vmin": 0.0, "vmax": top}
    for axis, name in zip(axes, names, strict=False):
        axis.imshow(a[f"square_{name}"], cmap="cividis", **shape)
        axis.set(title=name, xlabel="error of $y_1$")
    axes[0].set_ylabel("error of $y_2$")
    figure.colorbar(axes[0].images[0], ax=axes[:3].tolist(), label="influence (nats)", shrink=0.85)
    for i, name in enumerate(("KF", "IMQ", "MD", "TMD")):
        axes[3].loglog(
            a["sizes"], a[f"ray_{name}"][0], color=COLOURS[i], ls=DASHES[i % len(DASHES)], lw=1.8, label=name
        )
    axes[3].set(xlabel="size of the error", title="Along a ray", ylim=(1e-2, 1e12), xlim=(1, 1e16))
    axes[3].legend(frameon=False, fontsize=8)
    return figure


def draw_hidden(result: Result) -> "Figure":
    """Above, the system in the plane; below, what is seen of it."""
    from matplotlib.patches import ConnectionPatch

    from filtax.report.panels import GREY, INK, panels

    F, theta, y = (result.arrays[f"hidden_{name}"] for name in ("F", "theta", "y"))
    figure, (top, bottom) = panels(2, 1, size=(6.5, 6.0), height_ratios=(4, 1), sharex=True)
    reach = 1.15 * max(np.abs(theta).max(), np.abs(y).max())
    side = np.linspace(-reach, reach, 15)
    at = np.stack(np.meshgrid(side, side), axis=-1)
    move = at @ F.T - at
    top.quiver(at[..., 0], at[..., 1], move[..., 0], move[..., 1], color="#bbbbbb", width=0.003)
    top.plot(theta[:, 0], theta[:, 1], color=GREY, lw=0.6)
    top.plot(theta[:, 0], theta[:, 1], ls="", marker="o", ms=4, color=INK)
    bottom.plot(y, np.zeros_like(y), ls="", marker="o", ms=4, color="crimson")
    for point, seen in zip(theta, y, strict=True):
        ends = {"xyA": point, "xyB": (seen, 0.0), "coordsA": "data", "coordsB": "data"}
        figure.add_artist(ConnectionPatch(**ends, axesA=top, axesB=bottom, color="crimson", lw=0.5, alpha=0.6))
    top.set(ylabel="$\\theta_2$ (hidden)", title="A system in the plane, and its noisy projection")
    bottom.set(xlabel="$y$, a noisy $\\theta_1$", yticks=[], ylim=(-1, 1))
    return figure
