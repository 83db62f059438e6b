"""The numbers in a method's name that can be turned, and where they may lie."""

import re
from typing import NamedTuple

from filtax.tuning import Log, Uniform

__all__ = ["Knob", "knobs_of", "turned"]

_PART = re.compile(r"(?P<part>[A-Za-z][A-Za-z-]*)(?:\[[^\]]*\])?\((?P<settings>[^()]*)\)")
RANGES: dict[str, Uniform] = {
    "c": Log(0.5, 20.0),
    "hazard": Log(1e-6, 0.2),
    "q": Log(1e-9, 1.0),
    "degrees": Log(2.1, 100.0),
    "beta": Uniform(0.05, 1.0),
    "w": Uniform(0.05, 1.0),
    "shape": Log(0.1, 100.0),
    "prior": Log(1e-3, 1e3),
}
NEAR_ONE = Log(1e-6, 0.3)  # of what is missing to 1
KEPT = {("OU", "rate"), ("SP", "shrink")}


class Knob(NamedTuple):
    """A setting in a name.

    Attributes:
        name: What it is called in a search: the setting, with its part where two have the same.
        start, stop: Where its value stands in the name.
        space: Where it may lie.
        kept: Whether the search is over what is missing to 1.

    >>> knobs_of("LG+C-OU(rate=0.99)")[0].kept
    True
    """

    name: str
    start: int
    stop: int
    space: Uniform
    kept: bool

    def value(self, at: float) -> float:
        """The setting at a point of the search; 5 digits are enough for a name."""
        digits = float(f"{at:.5g}")
        return 1.0 - digits if self.kept else digits


def knobs_of(method: str) -> list[Knob]:
    """The settings of a name that can be turned; sizes, forms and unknown ones stay as they are.

    >>> [knob.name for knob in knobs_of("WoLF-MD(c=4)+NIG(form=covariance)+RL[1]-OUPR(hazard=0.001)")]
    ['c', 'hazard']
    """
    found: list[Knob] = []
    for match in _PART.finditer(method):
        at = match.start("settings")
        part = match["part"].split("-")[-1]
        for text in match["settings"].split(","):
            setting, _, value = text.partition("=")
            name = setting.strip()
            kept = (part, name) in KEPT
            space = NEAR_ONE if kept else None if name == "rate" else RANGES.get(name)
            if space is not None and value.strip():
                start = at + len(setting) + 1
                called = f"{part} {name}" if any(knob.name == name for knob in found) else name
                found.append(Knob(called, start, start + len(value), space, kept))
            at += len(text) + 1
    return found


def turned(method: str, knobs: list[Knob], point: dict[str, float]) -> str:
    """The name with other values.

    >>> name = "WoLF-MD(c=4)+RL[1]-OUPR(hazard=0.001)"
    >>> turned(name, knobs_of(name), {"c": 2.5, "hazard": 0.0101234567})
    'WoLF-MD(c=2.5)+RL[1]-OUPR(hazard=0.010123)'
    """
    for knob in reversed(knobs):  # from the end, so that the places before stay where they are
        method = f"{method[: knob.start]}{knob.value(point[knob.name])!r}{method[knob.stop :]}"
    return method
