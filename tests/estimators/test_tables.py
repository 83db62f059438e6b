"""Names to columns, and tables of any library."""

import math
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from filtax.estimators import Classifier, Regressor
from filtax.estimators._frames import Features, Frame

ROWS = 90
A = np.random.default_rng(0).normal(size=ROWS)
B = np.where(np.arange(ROWS) % 5 == 0, np.nan, np.arange(ROWS) % 7)
DAY = [("mon", "tue", None)[t % 3] for t in range(ROWS)]
Y = 2.0 * A + np.nan_to_num(B)


class Stream:
    """A table of a library that is not installed here: all it has is the Arrow interface."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def tables():
    columns = {"a": A, "b": B, "day": DAY}
    arrow = pa.table({"a": A, "b": pa.array(B, from_pandas=True), "day": DAY})
    whole = pd.array([None if math.isnan(b) else int(b) for b in B], "Int64")
    return [
        [dict(zip(columns, row, strict=True)) for row in zip(A.tolist(), B.tolist(), DAY, strict=True)],
        columns,
        pd.DataFrame(columns),
        pd.DataFrame({**columns, "b": whole, "day": pd.array(DAY, "string")}, index=np.arange(ROWS)[::-1]),
        arrow,
        Stream(arrow),
    ]


@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_tables_of_all_libraries_give_the_same_numbers(kind):
    y = Y if kind is Regressor else np.where(Y > 2.0, "high", "low")
    want = None
    for table, target in zip(tables(), [y, y.tolist(), pd.Series(y), y, pa.array(y), y], strict=True):
        learned, fitted = kind(), kind().fit(table, target)
        learned.learn_many(table, target)
        seen = fitted.predict(table).tolist()
        want = want or seen
        assert seen == want
        assert list(learned.predict_many(table)) == want


def test_arrays_of_objects_and_masked_ones():
    table = np.array([A, B, DAY], object).T
    rows = [dict(enumerate(row)) for row in table.tolist()]
    want = Regressor().fit(rows, Y).predict(rows).tolist()
    assert Regressor().fit(table, Y).predict(table).tolist() == want
    assert Regressor().fit(table.tolist(), Y.tolist()).predict(table.tolist()).tolist() == want
    hole = np.isnan(B)
    masked = np.ma.array(np.stack([A, np.where(hole, 1e9, B)], 1), mask=np.stack([hole & False, hole], 1))
    plain = Regressor().fit(np.stack([A, B], 1), np.where(hole, np.nan, Y))
    assert Regressor().fit(masked, np.ma.array(Y, mask=hole)).predict(masked).tolist() == plain.predict(masked).tolist()
    long = Regressor().fit(np.stack([A, B], 1).astype(np.longdouble), np.where(hole, np.nan, Y).astype(np.longdouble))
    assert long.predict(masked).tolist() == plain.predict(masked).tolist()


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (A, Y, "Expected 2D array, got 1D"),
        (A[:, None], Y[:5], "inconsistent numbers of samples"),
        (A[:, None], np.stack([Y, Y], 1), "y should be a 1d array"),
        (A[:, None], np.full(ROWS, np.inf), "Input y contains infinity"),
        (A[:, None], np.full(ROWS, np.nan), "at least one target"),
        (np.full((ROWS, 1), np.inf), Y, "Input X contains infinity"),
        (A[:, None] * 1j, Y, "Complex data not supported"),
        (pd.DataFrame({"t": pd.date_range("2020", periods=ROWS)}), Y, "give numbers or texts"),
        (pd.DataFrame(np.stack([A, A], 1), columns=["a", "a"]), Y, "two columns of one name|unique column names"),
        (A[:, None], ["high"] * ROWS, "y is 'high'; give a number"),
    ],
)
def test_what_is_no_table_or_target_is_refused_in_a_sentence(X, y, match):
    with pytest.raises((TypeError, ValueError), match=match):
        Regressor().fit(X, y)


def test_the_order_of_a_dict_does_not_matter():
    one, two = Features(), Features()
    assert one.row({"b": 1.0, "a": 2.0}) == two.row({"a": 2.0, "b": 1.0})
    assert one.column == two.column


def test_numbers_texts_and_gaps():
    features = Features(capacity=7)
    row = features.row({"n": 3, "yes": True, "none": None, "nan": math.nan, "na": pd.NA, "c": "red"})
    assert [key for key in features.column] == [("c", "red"), ("n", None), ("yes", None)]
    np.testing.assert_array_equal(row, [1.0, 3.0, 1.0] + [np.nan] * 4)
    again = features.row({"c": "blue", "n": np.float32(0.5)}, learn=False)
    np.testing.assert_array_equal(again, [0.0, 0.5] + [np.nan] * 5)


def test_the_first_rows_decide_the_width():
    features = Features()
    widths = []
    for count in (0, 2, 7, 15, 29, 1000):
        with pytest.warns(UserWarning, match="capacity=255") if count == 1000 else nullcontext():
            features.row({str(name): 1.0 for name in range(count)})
        widths.append(features.width)
    assert widths == [0, 3, 9, 31, 63, 255]


def test_names_share_the_last_columns_when_all_are_taken():
    features = Features(capacity=31)
    features.row({str(name): 1.0 for name in range(28)})
    with pytest.warns(UserWarning, match="capacity=31: the feature '28' and all further ones share 3 columns"):
        features.row({"28": 1.0})
    for name in range(1000):
        row = np.array(features.row({str(name): 2.0}))
        assert np.sum(row == 2.0) == 1
        assert (np.argmax(row == 2.0) >= 28) == (name >= 28)
    assert len(features.column) == 28
    table = features.table(Frame(["3", "999"], [np.array([5.0, np.nan]), np.array([np.nan, 6.0])]))
    np.testing.assert_array_equal(table, [features.row({"3": 5.0}), features.row({"999": 6.0})])


def test_features_that_come_when_none_were_expected_are_not_used():
    model = Regressor()
    for t in range(70):
        model.learn_one({}, float(t % 3))
    with pytest.warns(UserWarning, match="capacity=0: the feature 'a' and all further ones are not used"):
        model.learn_one({"a": 1.0}, 1.0)
    assert model.predict_one({"a": 5.0}) == model.predict_one({})
