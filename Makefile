PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test format bench pictures clean

test: .venv/ready  ## formatting, lint, strict types, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadgroup -rs

demo: .venv/ready  ## the main job, end to end, on a log it makes
	$(BIN)/clickmix demo

bench: .venv/ready  ## the benchmarks; figures go to benchmarks/results/
	$(BIN)/python benchmarks/run.py

pictures: .venv/ready  ## the pictures of README and docs, from the demo's log
	$(BIN)/python benchmarks/pictures.py

format: .venv/ready  ## write the formatting instead of checking it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv demo bench

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@
