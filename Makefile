# Two commands do everything on a fresh machine: `make quickstart` and `make test`.
# Each makes .venv and installs what it needs; delete .venv to start over.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

KILLS ?= 1000

.PHONY: quickstart test mutants soak soak-ray fuzz docs h200 lint format clean

quickstart: .venv/core
	$(BIN)/maskwalk bench experiments/quickstart.toml --out runs/quickstart --workers $(WORKERS)
	$(BIN)/maskwalk report runs/quickstart
	@echo "Open runs/quickstart/report.html in a browser."

# One thread for each worker: libraries that start one per core only wait for each other.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: .venv/dev lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# Small wrong edits of a copy of the source, each of which a test must catch; about a quarter of an hour.
mutants: .venv/dev
	$(BIN)/python -m tests.mutants.run --workers $(WORKERS)

# Kills every command at random moments, so many times in all; goes on where it was stopped.
soak: .venv/dev
	$(BIN)/python -m tests.faults.soak --kills $(KILLS) --out runs/soak

# Kills workers, nodes and the driver of one run on a Ray cluster of this machine.
soak-ray: KILLS = 200
soak-ray: .venv/dev
	$(BIN)/python -m tests.faults.soak_ray --kills $(KILLS) --out runs/soak-ray

# Files changed at random, thousands of them; FUZZ_EXAMPLES says how many for each test.
fuzz: .venv/dev
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest $(wildcard tests/abuse/test_fuzz_*.py)

# The site, without the network: a broken link or docstring is an error.
docs: .venv/docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs runs/site
	@echo "Open runs/site/index.html in a browser."

# Everything that needs an accelerator, within 600 s; benchmarks/h200.sh says what.
h200: export PYTHON = $(BIN)/python
h200: .venv/dev
	bash benchmarks/h200.sh

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

.venv/docs: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@

.venv/dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,bench,browser,libraries,harness]"
	touch $@
