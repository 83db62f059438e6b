"""Words that belong to no field stay out of code, tests, docs and messages; a commit hook runs this as a script."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "conftest.py")
PLACES = ("src", "thesis", "tests", "docs", "benchmarks", "tools", ".github", *FILES)
KINDS = {".py", ".md", ".toml", ".c", ".h", ".cu", ".html", ".yml", ""}
# An old word, as a pattern in lower case, and what to write instead; a name is read as words: `told_of`, `ToldOf`.
WORDS = {
    "told of": "reported, logged",
    "elders?": "reference",
    "vigils?": "monitor",
    "sideways": "batch_last",
    "gatherings?": "lazy loader",
    "partings?|parted": "partition",
    "passages?": "(nothing: JAX flattens states)",
    "ticks?": "step, time step",
    "newborns?": "new, is_new",
    "furnish(?:ed|es)?": "allocate",
    "laid by": "compressed",
    "laid open": "close_jaxpr",
    "left out": "rejected, omitted, by default",
    "not trusted|distrust(?:ed)?": "outlier",
    "anew": "again; a method resets",
    "of before": "earlier",
    "take apart|taken apart": "flatten",
    "made once": "materialize",
    "roomy": "ensure_capacity",
    "outdone|challengers?|champions?": "likelihood-ratio test",
    "foresight|hindsight": "forecast; looking back",
}
OLD = re.compile(rf"\b(?:{'|'.join(WORDS)})\b")
# What is not renamed yet, or shows marks on the axes of a figure.
EXCEPT = ("tests/test_words.py",)
AXES = re.compile(r"ticks?\b.*(?:label|axis|axes)|axis.*ticks|tick_params|tick for tick|ticks\(|ticks = \[")


def found(text: str) -> list[tuple[int, str]]:
    """The old words of a text with their lines, names split into the words that they are made of."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", text).lower()
    lines = text.splitlines()
    hits = [(words.count("\n", 0, hit.start()), hit.group()) for hit in OLD.finditer(words)]
    return [(row + 1, word) for row, word in hits if not AXES.search(lines[row])]


def everywhere() -> list[str]:
    """Each old word of the repository, with its place."""
    files = [ROOT / place for place in PLACES if (ROOT / place).is_file()]
    files += [path for place in PLACES for path in sorted((ROOT / place).rglob("*")) if path.is_file()]
    hits = []
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in KINDS and not name.startswith(EXCEPT) and "__pycache__" not in name:
            hits += [f"{name}:{line}: {word}" for line, word in found(path.read_text(encoding="utf-8"))]
    return hits


def test_words_of_the_field_only():
    assert everywhere() == []


def test_a_word_is_found_in_prose_and_in_names():
    text = "It was told of.\nclass ToldOf: newborn_mass = 1\nat every tick\naxis.set_ticks([1])\nretold offers"
    assert found(text) == [(1, "told of"), (2, "told of"), (2, "newborn"), (3, "tick")]


if __name__ == "__main__":
    sys.exit("\n".join(everywhere()) or None)
