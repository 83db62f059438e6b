"""Estimators on disk: what they learned as arrays, and names, classes and waiting data as JSON beside them.

An estimator is looked up in a table of a few lines, never by an import; nothing that is read is run.
"""

from collections import OrderedDict
from typing import Any

import jax
import numpy as np

from filtax import io as store
from filtax.estimators.beginning import EXTRA, Beginning
from filtax.estimators.classifier import Classifier
from filtax.estimators.engine import engine
from filtax.estimators.fleet import Fleet
from filtax.estimators.notes import (
    name_features,
    of_segmenter,
    of_segmenters,
    params_of,
    plain,
    shapes_of_segmenter,
    shapes_of_segmenters,
    to_segmenter,
    to_segmenters,
)
from filtax.estimators.regressor import Regressor
from filtax.estimators.segmenter import Segmenter

__all__ = ["load", "save"]

LEARNERS: dict[str, Any] = {"Classifier": Classifier, "Regressor": Regressor}
KINDS: dict[str, Any] = {**LEARNERS, "Fleet": Fleet, "Segmenter": Segmenter}


def save(folder: Any, model: Any, *, source: Any = None, held: bool = False) -> int:
    """Write an estimator as the next generation of a folder of checkpoints.

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
    note, arrays = {"Fleet": _of_fleet, "Segmenter": of_segmenter}.get(kind, _of_learner)(model)
    return store.save(folder, arrays, note={"kind": kind, **note}, source=source, held=held)


def load(folder: Any) -> tuple[Any, dict]:
    """Read the newest sound generation that `save` wrote.

    Returns:
        The estimator, which goes on bit for bit as the one that was saved, and the manifest with `source`.

    >>> load("no/such/folder")
    Traceback (most recent call last):
    filtax.io._errors.Missing: no/such/folder holds no checkpoint; ...
    """
    with jax.enable_x64(True):
        arrays, manifest = store.load(folder, _like)
    note = manifest["note"]
    make = {"Fleet": _to_fleet, "Segmenter": to_segmenter}.get(note["kind"], _to_learner)
    return make(note, arrays), manifest


def _like(manifest: dict) -> dict:
    """The shapes that the arrays must have, by what the note says they are for."""
    note = manifest["note"]
    if not isinstance(note, dict) or note.get("kind") not in KINDS:
        raise store.Foreign("it holds no estimator")
    if note["kind"] == "Segmenter":
        return shapes_of_segmenter(note)
    if note["kind"] == "Fleet" and note["estimator"] == "Segmenter":
        return shapes_of_segmenters(note)
    if note["kind"] == "Fleet":
        pools, tales = note["pools"], note["tales"]
        sizes = [(len(pool["keys"]), _memory(note, pool["size"]).size) for pool in pools]
        young = [(pool["size"], sum(tales[tale].get("first") or 0 for *_, tale in pool["keys"])) for pool in pools]
        return {"memories": [np.zeros(size) for size in sizes], **_young(young)}
    return {"memory": _memory(note, note["size"]), **_young([(note["size"], note.get("first") or 0)])}


def _young(counts: list[tuple[list[int], int]]) -> dict:
    """Room for the first rows of streams, so many for each size; nothing where no stream is young."""
    rows = [np.zeros((count, size[0] + 3 + EXTRA)) for size, count in counts]
    return {"first": rows} if any(map(len, rows)) else {}


def _memory(note: dict, size: list[int]) -> np.ndarray:
    if tuple(size) == (0, 0):
        return np.zeros(0)
    kernels = engine(note["params"]["method"], float(note["params"]["prior"]), *size)
    since = 0 if note.get("narrow") else 1 if note.get("elder") else 1 + kernels.elder
    return np.zeros(kernels.fresh.size - since)


def _now(note: dict, size: list[int], memory: np.ndarray) -> np.ndarray:
    """A memory as it is laid out now."""
    if note.get("narrow") or not memory.size:
        return memory
    kernels = engine(note["params"]["method"], float(note["params"]["prior"]), *size)
    return kernels.renewed(memory, bool(note.get("elder")))


def _of_learner(model: Any) -> tuple[dict, dict]:
    model._begin()
    memory = vars(model).get("_vector", np.zeros(0))
    note = {"params": params_of(model), "elder": True, "narrow": True, **_learned(model)}
    return note, {"memory": np.asarray(memory), **({"first": [model._first.rows]} if note["first"] else {})}


def _to_learner(note: dict, arrays: dict) -> Any:
    model = _revived(note["kind"], note["params"], note, arrays["first"][0] if note.get("first") else None)
    if arrays["memory"].size:
        model._vector = _now(note, note["size"], arrays["memory"])
    return model


def _learned(model: Any) -> dict[str, Any]:
    """What a learner knows beside its memory."""
    waiting = [[plain(id), {plain(name): plain(x) for name, x in row.items()}] for id, row in model._pending.items()]
    return {
        "slots": [[plain(part) for part in key] for key in model._table.slot],  # in the order of the slots
        "room": model._table.room,
        "capacity": model._table.capacity,
        "size": list(model._size),
        "labels": [plain(label) for label in vars(model).get("_labels", [])],
        "waiting": [[id, list(row.items())] for id, row in waiting],
        "late": [model._pending.given_up, model._pending.unknown],
        "columns": vars(model).get("n_features_in_"),
        "names": [str(name) for name in vars(model).get("feature_names_in_", [])],
        "first": None if model._first is None else len(model._first.rows),
    }


def _revived(kind: str, params: dict, note: dict, first: np.ndarray | None) -> Any:
    """A learner as `_learned` tells of it, without its memory."""
    model: Any = LEARNERS[kind](**_given(params, note))
    model._begin()
    if note["room"]:
        model._table.capacity = note.get("capacity", params["capacity"])
    model._table.slot = {tuple(key): at for at, key in enumerate(note["slots"])}
    model._table.room = note["room"]
    model._size = tuple(note["size"])
    model._pending.given_up, model._pending.unknown = note["late"]
    model._pending._waiting = OrderedDict((id, dict(map(tuple, row))) for id, row in note["waiting"])
    if kind == "Classifier":
        model._labels = list(note["labels"])
    model._first = None if note.get("first") is None else Beginning(first)  # of those of before it is not known
    name_features(model, note)
    return model


def _given(params: dict, note: dict) -> dict:
    """Parameters as they are given now: 255 slots were the default when slots doubled as names appeared."""
    doubled = "capacity" not in note and params["capacity"] == 255
    return {**params, "capacity": None} if doubled else params


def _of_fleet(fleet: Any) -> tuple[dict, dict]:
    """What all fleets tell, and what the streams of each kind do."""
    note = {
        "estimator": type(fleet.estimator).__name__,
        "params": params_of(fleet.estimator),
        "capacity": fleet.capacity,
        "events": fleet._events,
        "order": [plain(key) for key in fleet.keys()],
    }
    if isinstance(fleet.estimator, Segmenter):
        own, arrays = of_segmenters(fleet._crew.members)
        return {**note, **own, "last": [fleet._last[key] for key in fleet.keys()]}, arrays
    own, arrays = _of_learners(fleet)
    return {**note, "elder": True, "narrow": True, **own}, arrays


def _of_learners(fleet: Any) -> tuple[dict, dict]:
    """Streams of one kind tell much the same of themselves: each different tale is told once."""
    members, held = fleet._crew.members, fleet._crew.pools
    tales: list[dict] = []
    pools = []
    for size, pool in held.items():
        told = []
        for key in pool.row:
            tale = _learned(members[key])
            if tale not in tales[-16:]:
                tales.append(tale)
            told.append([plain(key), fleet._last[key], len(tales) - 1 - tales[::-1].index(tale)])
        pools.append({"size": list(size), "keys": told})
    memories = [np.stack([pool.get(key) for key in pool.row]) if pool.row else np.zeros((0, pool.kernels.fresh.size))
                for pool in held.values()]  # fmt: skip
    firsts = [[members[key]._first for key in pool.row] for pool in held.values()]
    young = [[first.rows for first in found if first is not None] for found in firsts]
    rows = _young([(list(size), sum(map(len, found))) for size, found in zip(held, young, strict=True)])
    for room, found in zip(rows.get("first", []), young, strict=False):
        room[:] = np.concatenate([room[:0], *found])
    return {"tales": tales, "pools": pools}, {"memories": memories, **rows}


def _to_fleet(note: dict, arrays: dict) -> Fleet:
    if note["estimator"] == "Segmenter":
        fleet: Any = Fleet(KINDS["Segmenter"](**note["params"]), capacity=note["capacity"])
        fleet._crew.members = dict(zip(note["order"], to_segmenters(note, arrays), strict=True))
        last = dict(zip(note["order"], note["last"], strict=True))
    else:
        given = _given(note["params"], note["tales"][0] if note["tales"] else note)
        fleet = Fleet(LEARNERS[note["estimator"]](**given), capacity=note["capacity"])
        last = _to_learners(fleet._crew, note, arrays)
    fleet._events = note["events"]
    fleet._last = {key: last[key] for key in note["order"]}
    return fleet


def _to_learners(crew: Any, note: dict, arrays: dict) -> dict:
    """Put the streams into their crew; returns when each learned last."""
    last = {}
    for at, (pool, memories) in enumerate(zip(note["pools"], arrays["memories"], strict=True)):
        row = 0
        for (key, event, tale), memory in zip(pool["keys"], memories, strict=True):
            start, row = row, row + (note["tales"][tale].get("first") or 0)
            first = arrays["first"][at][start:row] if row > start else None
            member = _revived(note["estimator"], note["params"], note["tales"][tale], first)
            crew.put(key, member, _now(note, pool["size"], memory))
            last[key] = event
    crew.members = {key: crew.members[key] for key in note["order"]}
    return last
