"""A fleet of segmenters: each stream learns, bit for bit, what a segmenter of its own would."""

import copy
import math

import numpy as np
import pandas as pd
import pytest

from filtax.estimators import Classifier, Fleet, Regressor, Segmenter, load, save
from filtax.estimators.reading import WIDTHS, reader

SETTINGS = {"warmup": 20, "keep": 10, "least": 3}
LENGTH = 90


def known(model):
    """All that a segmenter has learned, to the bit."""
    held = {name: value for name, value in vars(model._vigil).items() if name != "settings"}
    unit = () if held["unit"] is None else held["unit"]
    before = (held["before"][0], *held["before"][1]) if held["doubted"] else ()
    arrays = [held["state"], *held["sums"], *unit, *before, *held["early"], *held["doubted"]]
    plain = {name: copy.deepcopy(held[name]) for name in ("t", "changes", "last", "calm", "share")}
    return model._names, plain, [array.tobytes() for array in arrays]


def readings(kind, seed):
    """A stream of one kind of trouble."""
    y = np.random.default_rng(seed).normal(size=LENGTH)
    if kind == "moved":
        y[60:] += 8.0
    if kind in ("one", "two", "three"):
        y[45 : 45 + ("one", "two", "three").index(kind) + 1] += 300.0
    if kind == "young":
        y[[10, 18, 19]] += 1000.0  # the last ones of the warm-up, of which the next reading tells what they are
    if kind == "moved while young":
        y[12:] += 1000.0
    if kind == "odd all the time":
        y[50:] *= 6.0
    if kind == "gaps":
        y[[3, 20, 40, 41]], y[[5, 50]] = math.nan, math.inf
        return [None if t == 41 else value for t, value in enumerate(y.tolist())]
    if kind == "several":
        other = np.where(np.arange(LENGTH) == 30, math.nan, y[::-1] + np.where(np.arange(LENGTH) < 55, 0.0, 9.0))
        rows = [{"volts": a, "amperes": b} for a, b in zip(y.tolist(), other.tolist(), strict=True)]
        return rows[:70] + [{"amperes": row["amperes"]} for row in rows[70:75]] + rows[75:]
    return y.tolist()


KINDS = ["still", "moved", "one", "two", "three", "young", "moved while young", "odd all the time", "gaps", "several"]
STREAMS = {f"{kind} {seed}": readings(kind, seed) for kind in KINDS for seed in (1, 2)}


def batches(seed=0):
    """Ragged arrivals: one key at first, some of them later, all that are left at the end."""
    rng = np.random.default_rng(seed)
    given = dict.fromkeys(STREAMS, 0)
    for turn in range(170):
        share = 0.05 if turn < 10 else 1.0 if turn % 9 == 0 else 0.5
        came = [key for key in STREAMS if rng.random() < share for _ in range(rng.integers(1, 3))]
        batch = []
        for key in rng.permutation(came).tolist():
            if given[key] < LENGTH:
                batch.append((key, STREAMS[key][given[key]]))
                given[key] += 1
        yield batch
    assert all(count == LENGTH for count in given.values())


@pytest.fixture(scope="module")
def alone():
    """What separate segmenters know in the end, and what each reading showed on the way."""
    models, told = {}, {}
    for key, stream in STREAMS.items():
        model = models[key] = Segmenter(**SETTINGS)
        for x in stream:
            model.learn_one(x)
            told.setdefault(key, []).append((model.alarm_, model.trust_, model.change_probability_, model.runlength_))
    return models, told


def test_a_fleet_learns_what_separate_segmenters_do(alone):
    models, told = alone
    fleet = Fleet(Segmenter(**SETTINGS))
    for batch in batches():
        fleet.learn_many([key for key, _ in batch], [x for _, x in batch])
        for key in dict(batch):
            now = fleet.member(key)
            assert (now.alarm_, now.trust_, now.change_probability_, now.runlength_) == told[key][now.t_ - 1]
    assert set(fleet.keys()) == set(STREAMS)
    for key, model in models.items():
        assert known(fleet.member(key)) == known(model)
        assert fleet.predict_one(key) == model.predict_one()
        assert fleet.predict_one(key, with_dist=True).probabilities == model.predict_proba_one()
        assert fleet.predict_proba_one(key) == model.predict_proba_one()
    for outputs in (1, 2):  # one program for each room there is
        assert reader(models["several 1"]._vigil.settings, outputs)._loop._cache_size() <= len(WIDTHS)


def test_the_streams_do_what_they_are_there_for(alone):
    """Each trouble is met: what is compared above is no row of quiet readings."""
    models, told = alone
    alarms = {key: [alarm for alarm, *_ in rows] for key, rows in told.items()}
    for seed in (1, 2):
        assert models[f"moved {seed}"].changes_ == [60]
        assert models[f"several {seed}"].changes_[:1] == [55]
        assert models[f"moved while young {seed}"].changes_ == [12]
        assert alarms[f"one {seed}"][45:47] == ["outlier", None]
        assert alarms[f"two {seed}"][45:48] == ["outlier", "outlier", None]
        assert [trust for _, trust, *_ in told[f"three {seed}"][45:48]] == [0.0, 0.0, 1.0]  # back to 45, and believed
        assert 48 in models[f"three {seed}"].changes_
        assert {alarms[f"young {seed}"][t] for t in (10, 18, 19)} == {"outlier"}
        assert {alarms[f"gaps {seed}"][t] for t in (3, 20, 40, 41)} == {"missing"}
        assert {alarms[f"gaps {seed}"][t] for t in (5, 50)} == {"outlier"}


@pytest.mark.parametrize("turn", [8, 34, 72])
def test_a_fleet_on_disk_goes_on_bit_for_bit(turn, alone, tmp_path):
    fleet = Fleet(Segmenter(**SETTINGS), capacity=50)
    for at, batch in enumerate(batches()):
        if at == turn:
            save(tmp_path, fleet, source={"turn": turn})
            whole, (fleet, manifest) = fleet, load(tmp_path)
            assert manifest["source"] == {"turn": turn}
            assert fleet.keys() == whole.keys()
            assert fleet.idle(0) == whole.idle(0)
            assert [known(fleet.member(key)) for key in fleet.keys()] == [
                known(whole.member(key)) for key in whole.keys()
            ]
        fleet.learn_many([key for key, _ in batch], [x for _, x in batch])
    assert (fleet.capacity, len(fleet), fleet.estimator.get_params()["keep"]) == (50, len(STREAMS), 10)
    for key, model in alone[0].items():
        assert known(fleet.member(key)) == known(model)


@pytest.mark.parametrize(("cut", "doubted", "calm"), [(47, 2, 0), (48, 0, 3)])
def test_a_fleet_is_kept_in_the_middle_of_a_doubt(cut, doubted, calm, alone, tmp_path):
    """Two odd readings were not learned; the third one takes the stream back to before them, and calms it."""
    fleet = Fleet(Segmenter(**SETTINGS))
    for x in STREAMS["three 2"][:cut]:
        fleet.learn_one("three 2", x)
    vigil = fleet.member("three 2")._vigil
    assert (len(vigil.doubted), vigil.calm) == (doubted, calm)
    save(tmp_path, fleet)
    before, (fleet, _) = known(fleet.member("three 2")), load(tmp_path)
    assert known(fleet.member("three 2")) == before
    for x in STREAMS["three 2"][cut:]:
        fleet.learn_one("three 2", x)
    assert known(fleet.member("three 2")) == known(alone[0]["three 2"])


def test_names_that_streams_share_are_told_of_once(tmp_path):
    sizes = []
    for name in ("x", "x" * 1000):
        fleet = Fleet(Segmenter())
        fleet.learn_many(range(20), [{name: 1.0}] * 20)
        save(tmp_path / name[:9], fleet)
        sizes.append((tmp_path / name[:9] / "000001.json").stat().st_size)
        assert load(tmp_path / name[:9])[0].keys() == list(range(20))
    assert sizes[1] - sizes[0] < 1100


def test_keys_come_rest_and_go():
    fleet = Fleet(Segmenter(**SETTINGS), capacity=3)
    assert fleet.predict_one("never met") == 0
    assert fleet.predict_proba_one("never met") == {0: 1.0}
    fleet.learn_many(["a", "b", "a", "c"], [1.0, 2.0, 3.0, {"volts": 4.0}])
    assert (fleet.keys(), len(fleet), "a" in fleet, "d" in fleet) == (["a", "b", "c"], 3, True, False)
    assert fleet.idle(0) == ["b", "c", "a"]  # rounds: a, b, c, then a once more
    assert fleet.idle(2) == ["b"]
    with pytest.raises(ValueError, match=r"no room for the key 'd'"):
        fleet.learn_one("d", 1.0)
    gone = fleet.drop("a")
    assert (gone.t_, "a" in fleet, fleet.idle(0)) == (2, False, ["b", "c"])
    fleet.learn_one("d", 1.0)
    fleet.learn_one("d", None, 7.0)  # y is the reading where there is no x
    assert fleet.drop("d")._vigil.early[1].tolist() == [7.0]
    with pytest.raises(ValueError, match=r"Fleet.drop\('a'\): there is no such key"):
        fleet.drop("a")


@pytest.mark.parametrize("cut", [10, 40, 46])
def test_a_member_is_a_copy(cut):
    """Among its first readings, before a change, and in doubt."""
    fleet, stream = Fleet(Segmenter(**SETTINGS)), STREAMS["three 2"]
    fleet.learn_many(["a"] * cut, stream[:cut])
    member, before = fleet.member("a"), known(fleet.member("a"))
    member.learn_many(stream[cut:])
    assert (member.t_, member.changes_) == (LENGTH, [45, 48])
    assert known(fleet.member("a")) == before


def test_a_data_frame_holds_a_reading_in_each_row():
    fleet, alone = Fleet(Segmenter(**SETTINGS)), Segmenter(**SETTINGS)
    frame = pd.DataFrame(STREAMS["several 1"][:40])
    fleet.learn_many(["a"] * 40, frame)
    alone.learn_many(frame)
    assert known(fleet.member("a")) == known(alone)


def test_a_reading_that_is_refused_leaves_the_fleet_as_it_was():
    fleet = Fleet(Segmenter(**SETTINGS))
    fleet.learn_many(["a", "b"], [1.0, 2.0])
    before = known(fleet.member("a"))
    with pytest.raises(ValueError, match=r"the reading 'reading' is 'three', which is no number; give a number"):
        fleet.learn_many(["a", "b", "c"], [1.0, "three", 3.0])
    assert (fleet.keys(), fleet.idle(0), known(fleet.member("a"))) == (["a", "b"], ["a", "b"], before)
    with pytest.raises(ValueError, match=r"threshold"):
        Fleet(Segmenter(threshold=7.0)).learn_one("a", 1.0)


def test_what_is_mixed_up_is_said_in_a_sentence():
    fleet = Fleet(Segmenter(**SETTINGS))
    with pytest.raises(ValueError, match=r"must be a Regressor, Classifier or Segmenter, got str"):
        Fleet("Segmenter")
    with pytest.raises(ValueError, match=r"predict_interval_one: these are streams of a Segmenter"):
        fleet.predict_interval_one("a", {})
    with pytest.raises(ValueError, match=r"predict_one\(id=7\): a Segmenter waits for no label; leave id out"):
        fleet.predict_one("a", id=7)
    with pytest.raises(ValueError, match=r"2 keys, 1 rows and 2 targets must belong together"):
        fleet.learn_many(["a", "b"], [1.0])
    with pytest.raises(ValueError, match=r"\{'volts': 3.0\} cannot be a key; keys come first"):
        fleet.learn_many([{"volts": 3.0}], ["a"])
    with pytest.raises(ValueError, match=r"x is \{\} and there is no y"):
        fleet.learn_one("a", {})
    assert len(fleet) == 0


@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_who_learns_a_target_needs_one(kind):
    fleet = Fleet(kind())
    with pytest.raises(ValueError, match=rf"a {kind.__name__} learns from y; give a target with each x, None where"):
        fleet.learn_one("a", {"x": 1.0})
    with pytest.raises(ValueError, match=r"give a target with each x"):
        fleet.learn_many(["a"], [{"x": 1.0}])
    with pytest.raises(ValueError, match=rf"predict_one: a {kind.__name__} forecasts from features; give x as"):
        fleet.predict_one("a")
    assert fleet.keys() == []


def test_an_event_that_is_refused_brings_no_key():
    """It once did, with no memory: `drop` failed, and `save` too."""
    fleet = Fleet(Regressor("NIG(shape=2)+C-Static", capacity=4))
    with pytest.raises(ValueError, match="y"):
        fleet.learn_many(["a", "b"], [{"x": 1.0}] * 2, [1.0, "text"])
    assert (fleet.keys(), fleet.idle(0)) == ([], [])
