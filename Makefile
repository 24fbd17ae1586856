PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SECONDS ?= 600

.PHONY: demo test fuzz soak docs format bench pictures clean

demo: .venv/demo  ## the main job, end to end, on a log it makes
	$(BIN)/clickmix demo

test: .venv/dev  ## formatting, lint, strict types, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@# Tests start hundreds of commands: compile their modules once.
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadgroup -rs

fuzz: .venv/dev  ## damaged files for ten minutes: make fuzz SECONDS=3600; bad ones are kept in tests/fuzz/kept
	OMP_NUM_THREADS=1 PYTHONPATH=tests/helpers $(BIN)/python tests/fuzz/fuzz.py --seconds $(SECONDS)

soak: .venv/dev  ## all failing calls, many kills, and all commands again and again, with a look at memory
	OMP_NUM_THREADS=1 PYTHONPATH=tests/helpers:tests/fuzz $(BIN)/python tests/faults/soak.py

docs: .venv/dev  ## the docs as a site, in site/; look at it with: python -m http.server -d site
	$(BIN)/mkdocs build --strict --quiet

bench: .venv/dev  ## the benchmarks; figures go to benchmarks/results/
	$(BIN)/python benchmarks/run.py

pictures: .venv/dev  ## what README and docs show of the demo and of result files: pictures, tables, the notebook
	$(BIN)/python benchmarks/pictures.py
	$(BIN)/python benchmarks/shown.py

format: .venv/dev  ## write the formatting instead of checking it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv demo bench site

.venv/demo: pyproject.toml  # only what the demo needs
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[lightgbm]'
	touch $@

.venv/dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	touch $@
