"""The rules by which the claims about the electricity load are decided, and the means they rest on."""

import numpy as np

from thesis.experiment import Result
from thesis.verdicts import Verdict, all_of, below, holds_if, holds_only_if

__all__ = ["CHANGE", "five_day", "flat", "lowest", "quickest", "resets", "rolling", "window"]

CHANGE = "2020-03-07"
SLOW = ("RL[1]-PR", "CPP-OU")
RULES = ("last value", "plus yesterday's change")


def window(result: Result, first: str, last: str) -> np.ndarray:
    """Which hours lie from the first day to before the last.

    >>> window(Result({}, {"hours": np.arange(30)}), "1970-01-01", "1970-01-02").sum().item()
    24
    """
    time = result.arrays["hours"].astype("datetime64[h]")
    return (time >= np.datetime64(first, "h")) & (time < np.datetime64(last, "h"))


def five_day(error: np.ndarray) -> np.ndarray:
    """Means over consecutive buckets of five days, of all networks, (B,); the last, if it is not whole, is left out.

    >>> five_day(np.ones((2, 250)))
    array([1., 1.])
    """
    whole = error.shape[1] // 120
    return error[:, : 120 * whole].reshape(len(error), whole, 120).mean(axis=(0, 2))


def rolling(result: Result, name: str, width: int = 12) -> np.ndarray:
    """Mean absolute error of the last `width` hours, (T,), over networks; NaN before there are as many.

    >>> rolling(Result({}, {"a": np.ones((1, 4)), "y": np.zeros(4)}), "a", 2)
    array([nan,  1.,  1.,  1.])
    """
    error = np.abs(result.arrays[name] - result.arrays["y"]).mean(axis=0)
    total = np.cumsum(np.concatenate([[0.0], error]))
    mean = (total[width:] - total[:-width]) / width
    return np.concatenate([np.full(width - 1, np.nan), mean])


def flat(result: Result) -> Verdict:
    """Within the working days of the week after, the load varies by less than a third of the week before."""
    sd = [
        result.arrays["load"][window(result, first, last)].reshape(5, 24).std(axis=1)
        for first, last in (("2020-03-02", CHANGE), ("2020-03-09", "2020-03-14"))
    ]
    said = f"sd within the day {sd[0].min():.0f} to {sd[0].max():.0f} MW on 2-6 March, {sd[1].min():.0f} to "
    return holds_if(sd[1].mean() < sd[0].mean() / 3, f"{said}{sd[1].max():.0f} MW on 9-13 March")


def quickest(result: Result) -> Verdict:
    """Over four days from the change, the rolling errors of the two are below those of the others."""
    days = window(result, CHANGE, "2020-03-11")
    mean = {name: float(rolling(result, name)[days].mean()) for name in ("C-ACI", "RL[1]-OUPR", *SLOW, *RULES)}
    said = "12-hour error on 7-10 March: " + ", ".join(f"{name} {value:.3f}" for name, value in mean.items())
    return holds_if(max(mean["C-ACI"], mean["RL[1]-OUPR"]) < min(mean[name] for name in SLOW), said)


def resets(result: Result) -> Verdict:
    """Resets a day in the six days before, and in the four days from the change on."""
    before, after = window(result, "2020-03-01", CHANGE), window(result, CHANGE, "2020-03-11")

    def counted(name: str) -> tuple[float, float]:
        born = result.arrays[name] == 0
        return float(born[:, before].sum(axis=1).mean() / 6), float(born[:, after].sum(axis=1).mean())

    rate, later = counted("RL[1]-PR, runs")
    old, old_later = counted("RL[1]-PR, runs at the published setting")
    said = f"{rate:.1f} resets a day on 1-6 March, {later:g} in all on 7-10 March"
    theirs = f"at the published scaling and hazard {old:.1f} a day and {old_later:g} in all"
    twice = lambda rate, later: 1.5 <= rate <= 2.5 and later == 0  # noqa: E731
    if twice(rate, later):
        return holds_if(True, f"{said}; {theirs}")
    return holds_only_if(twice(old, old_later), "scaling and hazard are the published ones", f"{said}; {theirs}")


def lowest(result: Result) -> Verdict:
    """Paired over buckets of five days, among the four methods and then with the rules of thumb."""
    means = lambda name: five_day(np.abs(result.arrays[name] - result.arrays["y"]))  # noqa: E731
    ours = means("RL[1]-OUPR")
    among = all_of([below(ours, means(name), ("OUPR", name)) for name in ("C-ACI", "CPP-OU", "RL[1]-PR")])
    rules = all_of([below(ours, means(name), ("OUPR", name)) for name in RULES])
    with_walk = float(np.median(means("RL[1]-OUPR+ACI")))
    said = f"{among.evidence}; with a random walk and a tuned variance OUPR has {with_walk:.3f}"
    said = f"{said}. With the rules of thumb it {rules.text.replace('holds', 'still holds')}: {rules.evidence}"
    if among.text == "holds" and rules.text != "holds":
        return holds_only_if(True, "rules of thumb are left out", said)
    return Verdict(among.text, said)
