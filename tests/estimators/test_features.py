"""Names to slots, and data that wait."""

import numpy as np
import pytest

from filtax.estimators.features import SlotTable
from filtax.estimators.pending import Pending


def test_the_order_of_a_dict_does_not_matter():
    one, two = SlotTable(), SlotTable()
    one.row({"b": 1.0, "a": 2.0})
    two.row({"a": 2.0, "b": 1.0})
    assert one.slot == two.slot
    one.row({"b": 1.0, "0": 2.0})
    assert list(one.slot) == [("number", "a"), ("number", "b"), ("number", "0")]


def test_numbers_texts_and_gaps():
    table = SlotTable()
    row = table.row({"n": 3, "yes": True, "none": None, "nan": float("nan"), "inf": float("inf"), "c": "red"})
    assert set(table.slot) == {("number", "n"), ("number", "yes"), ("category", "c", "red")}
    assert row[table.slot["number", "n"]] == 3.0
    assert row[table.slot["category", "c", "red"]] == np.inf
    again = table.row({"c": "blue", "n": np.float32(0.5)}, learn=False)
    assert np.isnan(again[table.slot["category", "c", "red"]])
    assert ("category", "c", "blue") not in table.slot


@pytest.mark.parametrize("odd", [[1.0], object(), 1 + 2j, 10**400])
def test_what_is_no_feature_is_refused(odd):
    with pytest.raises(ValueError, match=r"feature 'a' is .*; give a number"):
        SlotTable().row({"a": odd})


@pytest.mark.parametrize("odd", ["x", None, 3.0, [1.0, 2.0]])
def test_what_is_no_dict_is_refused(odd):
    with pytest.raises(TypeError, match="give a dict of names to values"):
        SlotTable().row(odd)


def test_a_full_table_shares_its_last_slots_and_grows_no_more():
    table = SlotTable(capacity=31)
    for name in range(28):
        table.row({str(name): 1.0})
    said = r"capacity=31: 28 names have a slot of their own; .28. and all further ones share the last 3"
    with pytest.warns(UserWarning, match=said):
        table.row({"28": 1.0})  # said once: a warning is an error here
    for name in range(1000):
        row = table.row({str(name): 1.0})
        assert np.isfinite(row).sum() == 1
    assert len(table.slot) == table.own == 28
    assert table.room == 31
    assert np.flatnonzero(np.isfinite(table.row({"999": 1.0})))[0] >= 28
    assert np.flatnonzero(np.isfinite(table.row({"3": 1.0})))[0] == table.slot["number", "3"]


@pytest.mark.parametrize(
    ("capacity", "names", "slots"), [(None, 0, 31), (None, 28, 31), (None, 29, 63), (None, 224, 255), (9, 2, 9)]
)
def test_the_first_datum_finds_all_slots_that_there_will_be(capacity, names, slots):
    table = SlotTable(capacity)
    assert len(table.row({str(name): 1.0 for name in range(names)})) == slots
    assert len(table.row({"another": 1.0, "text": "one"}, learn=False)) == slots


@pytest.mark.filterwarnings("ignore:capacity=255")
def test_more_names_than_any_size_holds_share_the_last_slots_of_the_largest():
    assert len(SlotTable().row({str(name): 1.0 for name in range(1000)})) == 255


def test_a_table_that_was_kept_when_slots_doubled_goes_on_doubling():
    table, rooms = SlotTable(255), []
    table.room = 3
    for name in range(100):
        rooms.append(len(table.row({str(name): 1.0})))
    assert sorted(set(rooms)) == [3, 7, 15, 31, 63, 127]


def test_waiting_is_bounded_and_counted():
    wait = Pending(2)
    x = {"a": 1.0}
    for id in "abc":
        wait.put(id, x)
    x["a"] = 5.0
    assert (len(wait), wait.given_up, wait.take("a"), wait.unknown) == (2, 1, None, 1)
    assert wait.take("c") == {"a": 1.0}
    assert wait.take("c") is None
    assert wait.unknown == 2
