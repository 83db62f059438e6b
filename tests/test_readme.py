"""What the pages show is what a reader gets: Python runs, methods are built, links and labels exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import filtax as fx
from filtax.methods._parse import POSTERIORS, PRIORS, TRUSTS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FRAMEWORK = (ROOT / "docs" / "framework.md").read_text()
PART = r"[A-Za-z]+(?:\([^)`]*\))?"
NAMED = sorted(set(re.findall(rf"`((?:WoLF-{PART}\+)?(?:{PART}\+)?C-{PART})`", README + FRAMEWORK)))
EXAMPLES = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", README, flags=re.DOTALL)


def test_there_is_an_example_of_ten_lines():
    code, _ = EXAMPLES[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    assert README.count("```python") == len(EXAMPLES), "each block of Python is followed by what it prints"


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_example_prints_what_is_shown(code, printed):
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.stdout == printed


def test_commands_exist():
    pages = README + (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", pages, flags=re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert {"check", "demo", "test"} <= named <= targets


def test_links_to_files_work():
    links = re.findall(r"\]\(([^)#=]+)\)", README)
    local = [link for link in links if "://" not in link]
    assert local
    assert not [link for link in local if not (ROOT / link).exists()]


@pytest.mark.parametrize("name", NAMED)
def test_methods_that_are_named_can_be_built(name):
    model = fx.models.bernoulli() if name.startswith("Cj") else fx.models.linear(noise=1.0)
    prior = fx.priors.linear_dynamics(F=0.9, Q=0.1) if name.endswith("LSSM") else None
    built = fx.method(name, model=model, prior=prior)
    assert fx.method(built.name, model=model, prior=prior).name == built.name


@pytest.mark.parametrize("part", [*TRUSTS, *POSTERIORS, *PRIORS])
def test_the_table_shows_every_part_of_the_catalogue(part):
    rows = [line.split("|")[1] for line in FRAMEWORK.splitlines() if line.startswith("| `")]
    assert any(part in re.findall(r"WoLF-[A-Za-z]+|[A-Za-z]+", row) for row in rows)


def test_labels_cited_in_the_docs_exist():
    known = set((ROOT / "docs" / "thesis-labels.txt").read_text().split())
    text = "".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))
    cited = set(re.findall(r"`((?:eq|prop|algo|sec|tab|theorem|lemma):[^`]+)`", text))
    assert len(cited) > 20
    assert cited <= known


def test_the_errata_are_numbered_without_a_gap():
    text = (ROOT / "docs" / "errata.md").read_text()
    rows = re.findall(r"^(?:### |\| )E(\d+)\b", text, flags=re.MULTILINE)
    assert [int(row) for row in rows] == list(range(1, 39))


def test_the_family_that_the_docs_build_learns():
    block = next(
        code for code in re.findall(r"```python\n(.*?)```", FRAMEWORK, re.DOTALL) if "models.Likelihood" in code
    )
    assert "assert" in block  # the block itself says what it must find
    exec(block, {})
