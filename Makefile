# make run    set up, run the quick study, say where to look
# make test   set up, lint, types, import rules and the whole test suite
.DEFAULT_GOAL := help
.PHONY: help run test lint statistical paper ui clean lock

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# the pipeline's stages call `roshap`: the environment comes first on the path
export PATH := $(CURDIR)/$(BIN):$(PATH)
export DVC_NO_ANALYTICS := 1
export DO_NOT_TRACK := 1

help:
	@sed -n '1,2s/^# //p' Makefile
	@echo "make paper  the study of the paper: needs the network, or a mirror in ROSHAP_MIRROR"
	@echo "make ui     MLflow's pages on http://127.0.0.1:5000"
	@echo "make lock   renew the pinned versions"
	@echo "make clean  remove the environment and local state (never results)"

# one environment; each mark says which extras are in it
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("roshap needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,dask,ray,slurm]'
	@touch $@ $(VENV)/.run

run: $(VENV)/.run
	dvc repro --quiet
	@roshap where

test: $(VENV)/.test lint
	OMP_NUM_THREADS=1 pytest -n 2 --dist loadgroup

lint: $(VENV)/.test
	ruff check .
	ruff format --check .
	mypy
	lint-imports

statistical: $(VENV)/.test
	OMP_NUM_THREADS=1 pytest -n 2 -m statistical

paper: $(VENV)/.run
	roshap study paper
	dvc repro

ui: $(VENV)/.run
	roshap ui

lock: $(VENV)/.test
	uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --extra dev --extra vision --extra dask --extra ray --extra slurm --extra sweep pyproject.toml -o constraints.txt --upgrade

clean:
	rm -rf $(VENV) .roshap outputs multirun .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
