"""The name of a method from its parts, which is the inverse of `filtax.method`; and the settings in a name."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from filtax._validation import is_concrete, nearest


def spell(method: Any) -> str:
    """Name of a method, `[TRUST+]POSTERIOR+AUX[K]-PRIOR`; the hazard stands with the prior; a trust stands for LG too.

    >>> import filtax as fx
    >>> spell(fx.method("RL[4]-PR(hazard=0.1)", model=fx.models.linear(noise=1.0)))
    'LG+RL[4]-PR(hazard=0.1)'
    """
    prior = method.prior if method.prior.name else method.prior.dynamics
    transition = f"{spell_auxiliary(method.auxiliary)}-{_spell(prior, _hazard(method.auxiliary))}"
    parts = [_spell(method.posterior), transition]
    likelihood = method.model.likelihood
    if likelihood.plain is not likelihood:
        parts = [_spell(likelihood.trust), *(parts[1:] if parts[0] == "LG" else parts)]
    return "+".join(parts)


def spell_auxiliary(auxiliary: Any) -> str:
    """Name of an auxiliary variable, with the number of hypotheses that it keeps.

    >>> from filtax.auxiliary import run_length
    >>> spell_auxiliary(run_length(0.1, keep=4))
    'RL[4]'
    """
    name, inner = auxiliary.name, auxiliary.inner
    law = _law(auxiliary)
    counts = [f"a={law[0]}", f"b={law[1]}"] if isinstance(law, tuple) else []
    settings = _spell(auxiliary, counts).removeprefix(name)
    if auxiliary.name == "CPV":
        name += settings
    elif auxiliary.regimes_end:
        name += f"[{'inf' if auxiliary.keep is None else auxiliary.keep}]{settings}"
    elif name == "ME":
        name += f"[{auxiliary.slots}]"
    return name if inner is None else f"{name}/{inner.name}[{inner.slots}]"


def read_settings(text: str | None) -> dict[str, Any]:
    """Read `name=value, ...`; nothing is ever evaluated.

    >>> read_settings("hazard=0.1, keep=4, form=root")
    {'hazard': 0.1, 'keep': 4, 'form': 'root'}
    """
    given: dict[str, Any] = {}
    for setting in filter(None, (part.strip() for part in (text or "").split(","))):
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise ValueError(f"method: ({setting}) is no setting; write name=value.")
        if key in given:
            raise ValueError(f"method: {key} is given twice; leave one of them out.")
        given[key] = read_number(value)
    return given


def read_number(text: str) -> Any:
    """Read a truth value, a whole number or a number, in ASCII digits; what is none of them stays text.

    >>> read_number("4"), read_number("0.5"), read_number("root"), read_number("1_0")
    (4, 0.5, 'root', '1_0')
    """
    if text in ("True", "False"):
        return text == "True"
    if "_" in text or not text.isascii():  # Python takes 1_0 for ten, and the digits of every script
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def check_settings(auxiliary: tuple, prior: tuple) -> None:
    """Refuse a setting after the prior that neither part has, and one that is given to both.

    Args:
        auxiliary: Its name, the settings written after it, and those that it takes.
        prior: The same of the prior.

    >>> check_settings(("RL", {}, ["hazard"]), ("PR", {"hazzard": 0.1}, []))
    Traceback (most recent call last):
    ValueError: method: PR(hazzard=0.1) is not a setting of PR or RL. Did you mean "hazard"? Known: hazard.
    """
    (name, given, takes), (prior_name, of_prior, wants) = auxiliary, prior
    for key, value in of_prior.items():
        if key in given and key in takes:
            raise ValueError(
                f"method: {key} is given twice, {name}({key}={given[key]}) and {prior_name}({key}={value}); leave one "
                "of them out."
            )
        if key not in takes and key not in wants and written(takes):
            both = [*written(wants), *written(takes)]
            listed = "" if (hint := nearest(key, both)).startswith("Known") else f" Known: {', '.join(both)}."
            raise ValueError(
                f"method: {prior_name}({key}={value}) is not a setting of {prior_name} or {name}. {hint}{listed}"
            )


def written(parameters: Iterable[str]) -> list[str]:
    """Settings that a name can hold in parentheses; the number kept and the experts have brackets of their own.

    >>> written(["hazard", "keep", "capacity"])
    ['hazard', 'capacity']
    """
    return [key for key in parameters if key not in ("dynamics", "experts", "frame", "keep")]


def _law(auxiliary: Any) -> Any:
    """The law of changes: a hazard, or the counts (a, b) of RLCC; None where there is none."""
    return auxiliary.hazard if auxiliary.regimes_end and not auxiliary.subsets else None


def _hazard(auxiliary: Any) -> list[str]:
    """The hazard as a setting; `given` stands for a law, a function or a traced number, and cannot be read back."""
    law = _law(auxiliary)
    if law is None or isinstance(law, tuple):
        return []
    rate = law.rate
    if not isinstance(rate, int | float):
        rate = float(rate) if rate is not None and is_concrete(rate) and np.ndim(rate) == 0 else "given"
    return [f"hazard={rate}"]


def _spell(part: Any, first: list[str] | None = None) -> str:
    """Name of a part, with the settings that differ from its defaults and fit into a name."""
    settings = list(first or [])
    for name, default in part.shown.items():
        value = getattr(part, name)
        if isinstance(value, str | int | float) and value != default:
            settings.append(f"{name}={value}")
    return part.name + (f"({', '.join(settings)})" if settings else "")
