# `make quickstart` and `make test` do all set-up on a machine with Python 3.11 and Node.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
UV := $(BIN)/uv
PYTHON ?= $(shell for p in python3.11 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
PYTEST := $(BIN)/python -m pytest
# More than cores: many tests wait for an engine.
WORKERS ?= 3

# pip's own mirror setting, where there is one, holds for uv too; its extra places to look do not.
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
ifeq ($(UV_DEFAULT_INDEX),)
unexport UV_DEFAULT_INDEX
endif
unexport PIP_FIND_LINKS
export UV_NO_CONFIG := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

INSTALL := $(UV) pip install --quiet --python $(BIN)/python
EDITABLE := $(INSTALL) --no-deps --no-build-isolation --editable .

.PHONY: help env quickstart-env quickstart test test-long unit check format bench bench-env lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.uv: requirements/bootstrap.txt
	@if [ -z "$(PYTHON)" ]; then echo "error: no Python >= 3.11 with venv and pip was found;" \
		"install Python 3.11 (Debian: python3.11 and python3.11-venv) or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; fi
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/bootstrap.txt
	@touch $@

$(VENV)/.quickstart: $(VENV)/.uv requirements/quickstart.txt pyproject.toml
	@echo "installing what the quickstart needs"
	$(INSTALL) --require-hashes -r requirements/quickstart.txt
	$(EDITABLE)
	@touch $@

$(VENV)/.dev: $(VENV)/.uv requirements/dev.txt pyproject.toml
	@echo "installing what development needs"
	$(INSTALL) --require-hashes -r requirements/dev.txt
	$(EDITABLE)
	@touch $@ $(VENV)/.quickstart

# Apart, so that what is measured against never enters the development environment.
$(BENCH)/.bench: $(VENV)/.uv requirements/bench.txt pyproject.toml
	@echo "making $(BENCH) with what is measured against"
	$(UV) venv --quiet --allow-existing --python $(BIN)/python $(BENCH)
	$(UV) pip install --quiet --python $(BENCH)/bin/python --require-hashes -r requirements/bench.txt
	$(UV) pip install --quiet --python $(BENCH)/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

env: $(VENV)/.dev ## .venv with everything for development

quickstart-env: $(VENV)/.quickstart ## .venv with what the quickstart needs, no more

bench-env: $(BENCH)/.bench

quickstart: quickstart-env ## run notebooks/quickstart.ipynb on the default pool
	$(BIN)/python notebooks/run_quickstart.py

test: env ## every test that can run here; a skip says what is missing
	$(PYTEST) -n $(WORKERS) --dist loadfile $(ARGS)

test-long: env ## the SIGKILL, soak and timing runs
	$(PYTEST) -m long --timeout 3600 $(ARGS)

unit: env ## the tests that need no engine
	$(PYTEST) -m "not long and not docker and not embedded" $(ARGS)

check: env ## ruff, format, mypy, import-linter, hadolint
	@failed=; for tool in "ruff check ." "ruff format --check ." mypy lint-imports "hadolint yaosb_jupyter/images/*/Dockerfile"; do \
		echo "== $$tool"; $(BIN)/$$tool || failed+=" $${tool%% .}"; done; \
	[ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

format: env ## let ruff repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: bench-env ## one table against what one would pick instead (ARGS="--quick --only true")
	$(BENCH)/bin/python -m benchmarks $(ARGS)

# Hashed requirements for every platform and Python >= 3.11, without naming a host.
COMPILE_WITH := --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(LOCK_ARGS)
COMPILE := $(UV) pip compile --quiet --universal $(COMPILE_WITH)
# Images have Debian bookworm's Python.
COMPILE_FOR_IMAGES := $(UV) pip compile --quiet --python-platform x86_64-manylinux_2_28 $(COMPILE_WITH)
IMAGES_WITH_PACKAGES := $(patsubst %/requirements.in,%,$(wildcard yaosb_jupyter/images/*/requirements.in))

lock: $(VENV)/.uv ## renew requirements/*.txt (LOCK_ARGS=--upgrade for newer versions)
	$(COMPILE) requirements/bootstrap.in -o requirements/bootstrap.txt
	$(COMPILE) --extra dev pyproject.toml requirements/build.in -o requirements/dev.txt
	$(COMPILE) --extra quickstart pyproject.toml requirements/build.in -c requirements/dev.txt -o requirements/quickstart.txt
	for image in $(IMAGES_WITH_PACKAGES); do $(COMPILE_FOR_IMAGES) $$image/requirements.in -c requirements/dev.txt -o $$image/requirements.txt; done
	$(COMPILE) --extra docker pyproject.toml requirements/build.in requirements/bench.in -c requirements/dev.txt -o requirements/bench.txt

clean: ## remove .venv and what tools leave behind
	rm -rf $(VENV) $(BENCH) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
