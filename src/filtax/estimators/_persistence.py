"""Estimators on disk: arrays of equal shape stacked over the members, and each different note once.

An estimator is looked up by name in a table, never by an import; nothing that is read is run.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from filtax import io
from filtax.estimators.classifier import Classifier
from filtax.estimators.fleet import Fleet
from filtax.estimators.regressor import Regressor
from filtax.estimators.segmenter import Segmenter

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Classifier, Fleet, Regressor, Segmenter)}


def save(folder: str | Path, model: Any, *, source: Any = None, held: bool = False) -> int:
    """Write an estimator as the next generation of a folder.

    Args:
        folder: As for `filtax.io.save`.
        model: A `Regressor`, `Classifier`, `Segmenter` or `Fleet`; names of features, classes, ids and keys must be
            texts, numbers or truth values.
        source: Position in the source, as JSON.
        held: Whether the caller holds the folder's lock.

    Returns:
        The number of the generation.

    >>> import tempfile
    >>> from filtax.estimators import Regressor
    >>> model = Regressor()
    >>> model.learn_one({"a": 1.0}, 2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save(folder, model, source={"row": 1})
    ...     same, manifest = load(folder)
    >>> same.predict_one({"a": 1.0}) == model.predict_one({"a": 1.0}), manifest["source"]
    (True, {'row': 1})
    """
    kind = type(model).__name__
    if KINDS.get(kind) is not type(model):
        raise ValueError(f"save(model=...) must be one of {', '.join(KINDS)}, got {kind}.")
    with model._lock:
        fleet = model if isinstance(model, Fleet) else None
        members = [model] if fleet is None else fleet._members.values()
        one = model if fleet is None else fleet.estimator
        note = {"kind": kind, "member": type(one).__name__, "params": _plain(one.get_params())}
        arrays = _stacked(members)
        if fleet is not None:
            note |= {"capacity": fleet.capacity, "events": fleet._events}
            arrays["last"] = np.array([fleet._last[key] for key in fleet._members], np.int64)
            arrays["keys"] = _text([_plain(key) for key in fleet._members])
        note["shapes"] = [[name, str(array.dtype), list(array.shape)] for name, array in arrays.items()]
        return io.save(folder, arrays, note=note, source=source, held=held)


def load(folder: str | Path) -> tuple[Any, dict]:
    """Read the newest sound generation that `save` wrote.

    Returns:
        The estimator, which goes on bit for bit as the one that was saved, and the manifest with `source`.

    >>> load("no/such/folder")
    Traceback (most recent call last):
    filtax.io._errors.Missing: no/such/folder holds no checkpoint; ...
    """
    arrays, manifest = io.load(folder, _like)
    note = manifest["note"]
    kind = KINDS[note["member"]]
    members = _members(kind(**note["params"]), arrays)
    if note["kind"] != "Fleet":
        return next(iter(members)), manifest
    fleet = Fleet(kind(**note["params"]), capacity=note["capacity"])
    keys = json.loads(arrays["keys"].tobytes())
    fleet._members = dict(zip(keys, members, strict=True))
    fleet._last, fleet._events = dict(zip(keys, arrays["last"].tolist(), strict=True)), note["events"]
    return fleet, manifest


def _stacked(members: Iterable[Any]) -> dict[str, np.ndarray]:
    """All that members have learned, in few arrays: those of one name, type and shape are one."""
    stacks: dict[tuple, list[np.ndarray]] = {}
    order: dict[tuple, int] = {}
    notes: dict[str, int] = {}
    which = []
    for member in members:
        note, arrays = member._state()
        forms = []
        for name, array in arrays.items():
            form = (name, str(array.dtype), array.shape)
            stacks.setdefault(form, []).append(array)
            forms.append(order.setdefault(form, len(order)))
        which.append(notes.setdefault(json.dumps([_plain(note), forms]), len(notes)))
    found = {str(at): np.stack(stack) for at, stack in enumerate(stacks.values())}
    names = [name for name, _, _ in stacks]
    return {**found, "which": np.array(which, np.int64), "notes": _text([names, list(notes)])}


def _members(fresh: Any, arrays: dict[str, np.ndarray]) -> Iterable[Any]:
    names, texts = json.loads(arrays["notes"].tobytes())
    notes = [json.loads(text) for text in texts]
    used = [0] * len(names)
    for at in arrays["which"].tolist():
        (note, forms), own = notes[at], {}
        for form in forms:
            own[names[form]] = np.array(arrays[str(form)][used[form]])
            used[form] += 1
        member = fresh.clone()
        member._resume(note, own)
        yield member


def _like(manifest: dict) -> dict[str, np.ndarray]:
    """The shapes that the arrays must have, as the note says."""
    note = manifest["note"]
    if not isinstance(note, dict) or note.get("kind") not in KINDS:
        raise io.Foreign("it holds no estimator")
    return {name: np.empty(shape, dtype) for name, dtype, shape in note["shapes"]}


def _text(value: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def _plain(value: Any) -> Any:
    """A value of dicts, lists, texts and numbers as it is; whatever else json would change or refuse is refused."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _plain(part) for name, part in value.items()}
    raise ValueError(f"{value!r:.60} cannot be stored; names, labels, ids and keys must be texts or numbers.")
