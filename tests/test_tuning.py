"""A search finds the best setting, goes on wherever it was interrupted, and says how far it is."""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.tuning import Log, Uniform, Whole, tune

SPACE = {"q": Log(1e-6, 1.0), "shift": Uniform(-1.0, 1.0), "inner": Whole(1, 5)}


def bowl(at):
    return np.log10(at["q"] / 1e-3) ** 2 + at["shift"] ** 2 + 0.1 * (at["inner"] - 2) ** 2


def test_finds_the_bottom_of_a_bowl_better_than_chance():
    found = tune(bowl, SPACE, budget=160)
    chance = np.random.default_rng(0)
    drawn = {
        "q": 10 ** chance.uniform(-6, 0, 160),
        "shift": chance.uniform(-1, 1, 160),
        "inner": chance.integers(1, 6, 160),
    }
    assert found.loss < bowl(drawn).min()
    assert found.loss == bowl({name: np.array([value]) for name, value in found.best.items()})[0]
    assert found.losses.shape == found.settings["q"].shape == (160,)
    assert found.settings["inner"].dtype.kind == "i"


def test_batches_are_evaluated_at_once_and_the_budget_is_kept():
    sizes, told = [], []
    tune(lambda at: sizes.append(at["q"].size) or bowl(at), SPACE, budget=20, told=lambda n, best: told.append(n))
    assert sizes == [8, 8, 4]
    assert told == [8, 16, 20]


def test_equal_seeds_search_alike():
    first, second, other = (tune(bowl, SPACE, budget=24, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.losses, second.losses)
    assert (first.losses != other.losses).any()


@pytest.mark.parametrize("lines", [0, 1, 9, 14])
def test_a_search_that_was_interrupted_finds_what_one_in_one_go_finds(tmp_path, lines):
    """After the third batch, or killed while a batch was being told: so many lines of the journal are missing."""
    journal, tried = tmp_path / "search.log", []
    whole = tune(bowl, SPACE, budget=44, seed=3)
    tune(bowl, SPACE, budget=24, seed=3, journal=journal)
    text = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(text[: len(text) - lines]))
    with pytest.warns(UserWarning, match="goes on to 44"):
        again = tune(lambda at: tried.append(at["q"].size) or bowl(at), SPACE, budget=44, seed=3, journal=journal)
    for name in SPACE:
        np.testing.assert_array_equal(again.settings[name], whole.settings[name])
    np.testing.assert_array_equal(again.losses, whole.losses)
    assert again.best == whole.best
    assert 20 <= sum(tried) <= 20 + lines


def test_a_journal_that_drew_otherwise_is_gone_on_from(tmp_path):
    """As earlier ones did once they were interrupted."""
    journal = tmp_path / "search.log"
    tune(bowl, SPACE, budget=16, seed=3, journal=journal)
    with journal.open("a") as file:
        print(json.dumps({"setting": {"q": 0.5, "shift": 0.0, "inner": 2}, "loss": -7.0}), file=file)
    with pytest.warns(UserWarning, match="has tried 17 settings; with 24 it goes on to 24"):
        found = tune(bowl, SPACE, budget=24, seed=3, journal=journal)
    assert (found.losses.size, found.loss, found.best["q"]) == (24, -7.0, 0.5)


def test_what_gives_no_number_is_never_the_best():
    found = tune(lambda at: np.where(at["shift"] < 0, np.nan, at["shift"]), {"shift": Uniform(-1.0, 1.0)}, budget=32)
    assert found.best["shift"] >= 0
    with pytest.raises(ValueError, match="none of the 8 settings gave a finite loss"):
        tune(lambda at: np.full(at["shift"].size, np.nan), {"shift": Uniform(-1.0, 1.0)}, budget=8)


def test_tunes_a_filter_by_one_vmap():
    rng = np.random.default_rng(0)
    theta = np.cumsum(0.3 * rng.standard_normal(200))
    y = theta + rng.standard_normal(200)
    X = np.ones((200, 1))

    @jax.vmap
    def loss(q):
        kf = fx.method("LG+C-ACI", model=fx.models.linear(noise=1.0), prior=fx.priors.additive_inflation(q))
        _, infos = kf.scan(kf.init(mean=jnp.zeros(1), cov=1.0), X, y, keep=("log_evidence",))
        return -infos.log_evidence.sum()

    found = tune(lambda at: loss(at["q"]), {"q": Log(1e-6, 1e2)}, budget=32)
    assert 0.02 < found.best["q"] < 0.4  # the truth is 0.09


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tune(bowl, {}), "nothing to choose"),
        (lambda: tune(bowl, SPACE, budget=0), r"budget=\.\.\."),
        (lambda: tune(bowl, SPACE, batch=0), r"batch=\.\.\."),
        (lambda: tune(lambda at: 1.0, SPACE), r"losses of shape \(\) for 8 settings"),
        (lambda: Uniform(1.0, 1.0), "low < high"),
        (lambda: Whole(2, 1), "low < high"),
        (lambda: Log(-1.0, 1.0), "above 0"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_a_journal_keeps_its_seed_and_budget_and_says_what_another_does(tmp_path):
    journal = tmp_path / "search.log"
    first = tune(bowl, SPACE, budget=8, seed=4, journal=journal)
    assert (first.seed, first.budget) == (4, 8)
    assert '"seed": 4, "budget": 8' in journal.read_text().splitlines()[0]
    tune(bowl, SPACE, budget=8, seed=4, journal=journal)  # the same again: nothing to say
    with pytest.warns(UserWarning, match=r"had a budget of 8 and has tried 8 settings; with 16 it goes on to 16\."):
        assert tune(bowl, SPACE, budget=16, seed=4, journal=journal).losses.size == 16
    with pytest.warns(UserWarning, match=r"with 8 it tries no more, and the best of all 16 is given\."):
        assert tune(bowl, SPACE, budget=8, seed=4, journal=journal).losses.size == 16
    with pytest.raises(ValueError, match=r"was begun with seed=4, not 5; give that"):
        tune(bowl, SPACE, budget=24, seed=5, journal=journal)
    with pytest.raises(ValueError, match="holds another search"):
        tune(bowl, {"q": Log(1e-6, 1.0)}, journal=journal)


SHIFT = {"shift": Uniform(-1.0, 1.0)}


def square(at):
    return at["shift"] ** 2


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A journal of four settings."""
    journal = tmp_path_factory.mktemp("search") / "search.log"
    tune(square, SHIFT, budget=4, batch=2, journal=journal)
    return journal.read_bytes()


def test_goes_on_from_a_last_line_cut_at_any_byte(content, tmp_path):
    journal, lines = tmp_path / "search.log", content.splitlines(keepends=True)
    start, before = len(content) - len(lines[-1]), None
    for end in range(start, len(content)):
        journal.write_bytes(content[:end])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = tune(square, SHIFT, budget=4, batch=2, journal=journal)
        assert found.losses.size == 4
        assert [str(one.message).partition(": ")[2] for one in said] == (end > start) * [
            f"line {len(lines)}, the last, was cut off and is dropped; the search goes on from the one before."
        ]
        before = found.losses if before is None else before
        np.testing.assert_array_equal(found.losses, before)  # as if the line had never been begun
        assert journal.read_bytes().startswith(content[:start])


@pytest.mark.parametrize(
    "line", [b'{"setting": {"shift": 0.1}, "lo', b"\x00\xff", b"", b"7", b'{"loss": 4}', b'{"setting": {"shift": 0.1}}']
)
def test_other_damage_is_refused_with_the_number_of_the_line(content, tmp_path, line):
    journal, lines = tmp_path / "search.log", content.splitlines()
    for number in (1, 5, len(lines)):
        journal.write_bytes(b"\n".join([*lines[: number - 1], line, *lines[number:]]) + b"\n")
        before = journal.read_bytes()
        with pytest.raises(ValueError, match=rf"search\.log'\) is damaged: line {number} is no step of a search; "):
            tune(square, SHIFT, budget=4, journal=journal)
        assert journal.read_bytes() == before
