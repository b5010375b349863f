# Two commands do everything on a fresh machine: `make quickstart` and `make test`.
# Each makes .venv and installs what it needs; delete .venv to start over.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

.PHONY: quickstart test mutants lint format clean

quickstart: .venv/core
	$(BIN)/maskwalk bench experiments/quickstart.toml --out runs/quickstart --workers $(WORKERS)
	$(BIN)/maskwalk report runs/quickstart
	@echo "Open runs/quickstart/report.html in a browser."

test: .venv/dev lint
	$(BIN)/python -m pytest -n $(WORKERS)

# Small wrong edits of a copy of the source, each of which a test must catch; about 15 minutes.
mutants: .venv/dev
	$(BIN)/python -m tests.mutants.run --workers $(WORKERS)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv runs

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/core: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,bench,browser,libraries]"
	touch $@
