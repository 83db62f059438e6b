"""A method's name, read off its parts: the grammar of `filtax.method` the other way round."""

from typing import Any

import numpy as np

from filtax.checks import is_concrete

__all__ = ["spell", "spell_auxiliary"]


def spell(method: Any) -> str:
    """Spell a name in the grammar `[TRUST+]POSTERIOR+AUX[K]-PRIOR`; the hazard stands with the prior.

    After a trust, LG is not said.

    >>> import filtax as fx
    >>> spell(fx.method("RL[4]-PR(hazard=0.1)", model=fx.models.linear(noise=1.0)))
    'LG+RL[4]-PR(hazard=0.1)'
    """
    prior = method.prior if hasattr(method.prior, "name") else method.prior.drift
    transition = f"{spell_auxiliary(method.auxiliary)}-{_spell(prior, _hazard(method.auxiliary))}"
    parts = [_spell(method.posterior), transition]
    trust = getattr(method.model.likelihood, "trust", None)
    if trust is not None:
        parts = [_spell(trust), *(parts[1:] if parts[0] == "LG" else parts)]
    return "+".join(parts)


def spell_auxiliary(auxiliary: Any) -> str:
    """Spell (M.2) with the number of hypotheses that it keeps.

    >>> from filtax.auxiliary import run_length
    >>> spell_auxiliary(run_length(0.1, keep=4))
    'RL[4]'
    """
    name, inner = auxiliary.name, getattr(auxiliary, "inner", None)
    law = getattr(auxiliary, "hazard", None)
    counts = [f"a={law[0]}", f"b={law[1]}"] if isinstance(law, tuple) else []
    settings = _spell(auxiliary, counts).removeprefix(name)
    if auxiliary.name == "CPV":
        name += settings
    elif hasattr(auxiliary, "keep"):
        name += f"[{'inf' if auxiliary.keep is None else auxiliary.keep}]{settings}"
    elif name == "ME":
        name += f"[{auxiliary.slots}]"
    return name if inner is None else f"{name}/{inner.name}[{inner.slots}]"


def _hazard(auxiliary: Any) -> list[str]:
    """The hazard; a law, a function or a traced number has no spelling, and `given` is not read back as another one."""
    law = getattr(auxiliary, "hazard", None)
    if law is None or isinstance(law, tuple):
        return []
    rate = getattr(law, "rate", None)
    if not isinstance(rate, int | float):
        rate = float(rate) if rate is not None and is_concrete(rate) and np.ndim(rate) == 0 else "given"
    return [f"hazard={rate}"]


def _spell(part: Any, first: list[str] | None = None) -> str:
    """Name of a part, with the settings that differ from its defaults and fit into a name."""
    settings = list(first or [])
    for name, default in getattr(part, "shown", {}).items():
        value = getattr(part, name)
        if isinstance(value, str | int | float) and value != default:
            settings.append(f"{name}={value}")
    name = getattr(part, "name", None) or f"WoLF-{type(part).__name__}"  # a trust of the user's own
    return name + (f"({', '.join(settings)})" if settings else "")
