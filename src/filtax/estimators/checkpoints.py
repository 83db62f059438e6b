"""Estimators on disk: what they learned as arrays, and names, classes and waiting data as JSON beside them.

An estimator is looked up in a table of a few lines, never by an import; nothing that is read is run.
"""

from collections import OrderedDict
from typing import Any

import jax
import numpy as np

from filtax import store
from filtax.estimators.beginning import EXTRA, Beginning
from filtax.estimators.classifier import Classifier
from filtax.estimators.engine import engine
from filtax.estimators.fleet import Fleet
from filtax.estimators.regressor import Regressor
from filtax.estimators.segmenter import Segmenter

__all__ = ["load", "save"]

LEARNERS: dict[str, Any] = {"Classifier": Classifier, "Regressor": Regressor}
KINDS: dict[str, Any] = {**LEARNERS, "Fleet": Fleet, "Segmenter": Segmenter}
PLAIN = (str, int, float, bool)


def save(folder: Any, model: Any, *, source: Any = None, held: bool = False) -> int:
    """Write an estimator as the next generation of a folder of checkpoints.

    Args:
        folder: As for `filtax.store.save`.
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
    note, arrays = {"Fleet": _of_fleet, "Segmenter": _of_segmenter}.get(kind, _of_learner)(model)
    return store.save(folder, arrays, note={"kind": kind, **note}, source=source, held=held)


def load(folder: Any) -> tuple[Any, dict]:
    """Read the newest sound generation that `save` wrote.

    Returns:
        The estimator, which goes on bit for bit as the one that was saved, and the manifest with `source`.

    >>> load("no/such/folder")
    Traceback (most recent call last):
    filtax.store.errors.Missing: no/such/folder holds no checkpoint; ...
    """
    with jax.enable_x64(True):
        arrays, manifest = store.load(folder, _like)
    note = manifest["note"]
    make = {"Fleet": _to_fleet, "Segmenter": _to_segmenter}.get(note["kind"], _to_learner)
    return make(note, arrays), manifest


def _like(manifest: dict) -> dict:
    """The shapes that the arrays must have, by what the note says they are for."""
    note = manifest["note"]
    if not isinstance(note, dict) or note.get("kind") not in KINDS:
        raise store.Foreign("it holds no estimator")
    if note["kind"] == "Segmenter":
        return _arrays_of_segmenter(note)
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
    note = {"params": _params(model), "elder": True, "narrow": True, **_learned(model)}
    return note, {"memory": np.asarray(memory), **({"first": [model._first.rows]} if note["first"] else {})}


def _to_learner(note: dict, arrays: dict) -> Any:
    model = _revived(note["kind"], note["params"], note, arrays["first"][0] if note.get("first") else None)
    if arrays["memory"].size:
        model._vector = _now(note, note["size"], arrays["memory"])
    return model


def _params(model: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in model.get_params().items()}


def _learned(model: Any) -> dict[str, Any]:
    """What a learner knows beside its memory."""
    waiting = [[_plain(id), {_plain(name): _plain(x) for name, x in row.items()}] for id, row in model._pending.items()]
    return {
        "slots": [[_plain(part) for part in key] for key in model._table.slot],  # in the order of the slots
        "room": model._table.room,
        "capacity": model._table.capacity,
        "size": list(model._size),
        "labels": [_plain(label) for label in vars(model).get("_labels", [])],
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
    _name_features(model, note)
    return model


def _given(params: dict, note: dict) -> dict:
    """Parameters as they are given now: 255 slots were the default when slots doubled as names appeared."""
    doubled = "capacity" not in note and params["capacity"] == 255
    return {**params, "capacity": None} if doubled else params


def _name_features(model: Any, note: dict) -> None:
    if note["columns"] is not None:
        model.n_features_in_ = note["columns"]
    if note["names"]:
        model.feature_names_in_ = np.asarray(note["names"], dtype=object)


def _of_fleet(fleet: Fleet) -> tuple[dict, dict]:
    """Streams of one kind tell much the same of themselves: each different tale is told once."""
    tales: list[dict] = []
    pools = []
    for size, pool in fleet._pools.items():
        told = []
        for key in pool.row:
            tale = _learned(fleet._members[key])
            if tale not in tales[-16:]:
                tales.append(tale)
            told.append([_plain(key), fleet._last[key], len(tales) - 1 - tales[::-1].index(tale)])
        pools.append({"size": list(size), "keys": told})
    note = {
        "estimator": type(fleet.estimator).__name__,
        "params": _params(fleet.estimator),
        "elder": True,
        "narrow": True,
        "capacity": fleet.capacity,
        "events": fleet._events,
        "order": [_plain(key) for key in fleet._members],
        "tales": tales,
        "pools": pools,
    }
    memories = [np.stack([pool.get(key) for key in pool.row]) if pool.row else np.zeros((0, pool.kernels.fresh.size))
                for pool in fleet._pools.values()]  # fmt: skip
    firsts = [[fleet._members[key]._first for key in pool.row] for pool in fleet._pools.values()]
    young = [[first.rows for first in found if first is not None] for found in firsts]
    rows = _young([(list(size), sum(map(len, found))) for size, found in zip(fleet._pools, young, strict=True)])
    for room, found in zip(rows.get("first", []), young, strict=False):
        room[:] = np.concatenate([room[:0], *found])
    return note, {"memories": memories, **rows}


def _to_fleet(note: dict, arrays: dict) -> Fleet:
    given = _given(note["params"], note["tales"][0] if note["tales"] else note)
    fleet: Any = Fleet(LEARNERS[note["estimator"]](**given), capacity=note["capacity"])
    fleet._events = note["events"]
    members, last = {}, {}
    for at, (pool, memories) in enumerate(zip(note["pools"], arrays["memories"], strict=True)):
        row = 0
        for (key, event, tale), memory in zip(pool["keys"], memories, strict=True):
            start, row = row, row + (note["tales"][tale].get("first") or 0)
            first = arrays["first"][at][start:row] if row > start else None
            members[key] = _revived(note["estimator"], note["params"], note["tales"][tale], first)
            last[key] = event
            fleet._put(key, members[key], _now(note, pool["size"], memory))
    fleet._members = {key: members[key] for key in note["order"]}
    fleet._last = {key: last[key] for key in note["order"]}
    return fleet


def _of_segmenter(model: Any) -> tuple[dict, dict]:
    held = vars(model)
    note = {
        "params": _params(model),
        "readings": None if "_names" not in held else [_plain(name) for name in model._names],
        "early": len(held.get("_early", [])),
        "watching": "_state" in held,
        "changes": [int(at) for at in held.get("changes_", [])],
        "t": held.get("t_", 0),
        "alarm": held.get("_last", {}).get("alarm"),
        "trust": held.get("_last", {}).get("trust", 1.0),
        "start": held.get("_last", {}).get("start", 0),
        "doubted": len(held.get("_doubted", [])),
        "calm": held.get("_calm", 0),
        "share": held.get("_share", 0.0),
        "columns": held.get("n_features_in_"),
        "names": [str(name) for name in held.get("feature_names_in_", [])],
    }
    if note["readings"] is None:
        return note, {}
    arrays: dict[str, Any] = {"odds": np.array(model._last["odds"])}
    if model._early:
        arrays["early"] = np.concatenate(model._early)
    if note["watching"]:
        arrays |= {"state": model._state, "unit": np.stack(model._unit), "sums": np.stack(model._sums)}
    if note["doubted"]:
        state, sums = model._before
        arrays |= {"doubted": np.concatenate(model._doubted), "before": state, "sums before": np.stack(sums)}
    return note, arrays


def _arrays_of_segmenter(note: dict) -> dict:
    if note["readings"] is None:
        return {}
    width = len(note["readings"])
    arrays: dict[str, Any] = {"odds": np.zeros(())}
    if note["early"]:
        arrays["early"] = np.zeros((note["early"], width))
    if note["watching"]:
        fresh: Any = Segmenter(**note["params"])
        state = fresh._start(width)
        arrays |= {"state": state, "unit": np.zeros((2, width)), "sums": np.zeros((3, width))}
        if note.get("doubted"):  # those of before doubted nothing
            doubted = np.zeros((note["doubted"], width))
            arrays |= {"doubted": doubted, "before": state, "sums before": np.zeros((3, width))}
    return arrays


def _to_segmenter(note: dict, arrays: dict) -> Any:
    model: Any = Segmenter(**note["params"])
    if note["readings"] is None:
        return model
    model._begin(list(note["readings"]))
    model.changes_, model.t_ = list(note["changes"]), note["t"]
    trust = note.get("trust", 0.0 if note["alarm"] in ("missing", "outlier") else 1.0)  # once the alarm said it
    model._last = {"alarm": note["alarm"], "trust": trust, "odds": float(arrays["odds"]), "start": note["start"]}
    model._early = [row[None] for row in arrays["early"]] if note["early"] else []
    if note["watching"]:
        model._state, model._unit, model._sums = arrays["state"], tuple(arrays["unit"]), list(arrays["sums"])
    model._calm, model._share = note.get("calm", 0), note.get("share", 0.0)
    if note.get("doubted"):
        model._doubted = [row[None] for row in arrays["doubted"]]
        model._before = (arrays["before"], list(arrays["sums before"]))
    _name_features(model, note)
    return model


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, PLAIN):
        return value
    raise ValueError(f"{value!r:.40} cannot be stored: give names, classes and ids as texts, numbers or truth values.")
