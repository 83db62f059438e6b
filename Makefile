# One entry point for people and for continuous integration. `make` lists the targets.
# Each target installs only what it needs into .venv, once; a change of pyproject.toml or constraints.txt installs again.

PYTHON ?= python3
# The newest jax needs a newer Python than filtax does.
PYTHON_NEWEST ?= python3.12
# A file stays on one worker, where its fixtures and compiled programs are shared; as they stand, so that the last are
# the many small ones of src, and no worker waits for the other.
PYTEST_ARGS ?= --numprocesses 2 --dist loadfile --no-loadscope-reorder

BIN := .venv/bin
# Without bytecode every worker, every child and the second pass would compile all of src and the tests again.
unexport PYTHONDONTWRITEBYTECODE
NEEDS := pyproject.toml constraints.txt

# The numeric core: everything that computes on arrays. It must also hold in float32 alone, with x64 off.
CORE := tests/test_conformance.py tests/test_numeric_bars.py tests/test_degenerate_inputs.py tests/test_linalg.py
# What another jax could break: the core, and what of filtax knows how jax calls LAPACK and XLA.
RANGE := $(CORE) tests/test_linalg_lapack.py tests/test_xla.py

.DEFAULT_GOAL := help
.PHONY: help demo test core check bench docs nightly soak jax-range constraints clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: .venv/base.done  ## forecast a generated hourly load: a table here, a figure and a report in out/
	@$(BIN)/filtax demo

test: .venv/dev.done  ## the test suite, then the numeric core again with x64 off
	@$(BIN)/python -m pytest $(PYTEST_ARGS)
	@FILTAX_X64=0 $(BIN)/python -m pytest $(PYTEST_ARGS) $(CORE)

core: .venv/dev.done  ## the numeric core alone
	@$(BIN)/python -m pytest $(PYTEST_ARGS) $(CORE)

check: .venv/dev.done  ## format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/pyright

bench: .venv/bench.done  ## speed, ours beside the peers'; JSON in out/
	@$(BIN)/python -m benchmarks

docs: .venv/docs.done  ## build the site into site/; any warning is an error
	@mkdir -p out && { $(BIN)/zensical build --strict --clean > out/docs.log 2>&1 || { cat out/docs.log; exit 1; }; }
	@cat out/docs.log && ! grep -qiE '^griffe:|warning' out/docs.log

nightly: .venv/dev.done  ## all tests, the long ones too, with large property budgets; jax-range; hangs; kills
	@FILTAX_OPTIMISED=1 $(BIN)/python -m pytest -m "" --hypothesis-profile=nightly $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory jax-range
	@$(BIN)/python tests/hangs.py 30
	@$(BIN)/python tests/kills.py 200

jax-range: .venv-oldest/done .venv-newest/done  ## the numeric core with the oldest and the newest jax of pyproject.toml
	@for age in oldest newest; do .venv-$$age/bin/python -m pytest $(PYTEST_ARGS) $(RANGE) || exit 1; done

soak: .venv/base.done  ## 1e7 rows through three methods, each in a process: memory, compilations, step time
	@for name in KF 'RL[50]' LoFi; do $(BIN)/python tests/soak.py 1e7 "$$name" || exit 1; done

constraints: .venv/dev.done  ## resolve constraints.txt again
	@$(BIN)/python -m pip install -qq --disable-pip-version-check uv
	@{ head -1 constraints.txt; $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --upgrade \
	  --no-annotate --no-header --no-emit-index-url pyproject.toml; } > constraints.new && mv constraints.new constraints.txt

clean:  ## remove what the commands wrote (the environment stays; remove .venv by hand)
	@rm -rf out site dist build .pytest_cache .ruff_cache .hypothesis .cache
	@find . -path './.venv*' -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf

# ----------------------------------------------------------------------------------------------------------------------

PIP_INSTALL = $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt --editable

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "filtax: $(PYTHON) is older than Python 3.11; run make again with PYTHON=/path/to/a/newer/python3"; exit 1; }
	@echo "filtax: making .venv"
	@$(PYTHON) -m venv .venv

.venv/base.done: $(NEEDS) | .venv/bin/python
	@echo "filtax: installing filtax into .venv (about a minute, once)"
	@$(PIP_INSTALL) '.[cli]'
	@touch $@

.venv/dev.done: .venv/base.done
	@echo "filtax: installing the test tools and oracles into .venv (a minute or two, once)"
	@$(PIP_INSTALL) '.[cli,dev,nets,tune]'
	@touch $@

.venv/docs.done: .venv/base.done
	@echo "filtax: installing the documentation tools into .venv (once)"
	@$(PIP_INSTALL) '.[cli,docs]'
	@touch $@

.venv/bench.done: .venv/base.done
	@echo "filtax: installing the peers to measure against into .venv (a minute or two, once)"
	@$(PIP_INSTALL) '.[bench,cli,nets]'
	@touch $@

# Every version but that of jax is the one of constraints.txt.
.venv-oldest/done: MAKE_VENV = $(PYTHON) -m venv
.venv-oldest/done: JAX = jax==0.10.0
.venv-newest/done: MAKE_VENV = $(PYTHON_NEWEST) -m venv
.venv-newest/done: JAX = jax
.venv-%/done: $(NEEDS)
	@echo "filtax: making .venv-$* with the $* jax (a minute or two, once)"
	@$(MAKE_VENV) --clear .venv-$*
	@grep -vE '^jax(lib)?==' constraints.txt > .venv-$*/constraints.txt
	@.venv-$*/bin/python -m pip install -qq --disable-pip-version-check --constraint .venv-$*/constraints.txt \
	  --editable '.[cli]' '$(JAX)' beartype hypothesis pytest pytest-xdist
	@touch $@
