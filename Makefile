# Everything runs in .venv, made on first use; nothing else has to be installed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Made again only when the declared dependencies change.
READY := $(VENV)/.ready

.PHONY: demo test lint docs bench bench-large clean

demo: $(READY)
	$(BIN)/python examples/pose.py

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell README.md CONTRIBUTING.md CHANGELOG.md docs src tests benchmarks \
		examples experiments

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# The site, in docs/_build/html. A warning is an error; nothing is fetched.
docs: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# The published numbers and the pages that show them, from one commit: 35 to 45 minutes on
# two quiet cores. `make bench-large` has what takes hours; its tables may be older.
bench bench-large: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python benchmarks/everything.py $(if $(filter bench-large,$@),--large)
	$(BIN)/python benchmarks/publish.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache demo \
		docs/_build docs/auto_examples docs/generated
