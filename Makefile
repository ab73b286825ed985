# Two commands for users: `make run` and `make test`. `make help` lists the rest.
# Nothing is installed again unless a lock file or pyproject.toml changed.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# PYTEST_ARGS="-k chaos -x" make test
PYTEST_ARGS ?=

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

.PHONY: help run extras test test-cluster cluster cluster-down check format bench lock clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

run: $(VENV)/.run ## set up, then run the sample benchmark to its results
	@$(BIN)/anubis run samples/hello-world/descriptor.toml

extras: $(VENV)/.extras ## install what Docker, Kubernetes, object stores and NVIDIA's GPUs need

test: $(VENV)/.dev ## run all tests
	@$(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 --dist worksteal $(PYTEST_ARGS)

test-cluster: $(VENV)/.dev ## run the tests that need Kubernetes; starts a cluster if none answers
	@$(BIN)/python -m tests.cluster run -- \
	  $(BIN)/python -m pytest -q --numprocesses 2 --dist worksteal -m cluster $(PYTEST_ARGS)

cluster: $(VENV)/.dev ## start a Kubernetes for tests on this machine (once: builds it, about ten minutes)
	@$(BIN)/python -m tests.cluster up
	@$(BIN)/python -m tests.cluster load

cluster-down: ## end it, and give the machine back
	@$(PYTHON) -m tests.cluster down

check: $(VENV)/.dev ## format, lint, types, contracts, tests: what CI runs
	@echo '» format'    && $(BIN)/ruff format --check --quiet .
	@echo '» lint'      && $(BIN)/ruff check --quiet .
	@echo '» types'     && $(BIN)/mypy --no-error-summary
	@echo '» contracts' && $(BIN)/lint-imports --no-cache --config pyproject.toml > $(VENV)/contracts.log || { cat $(VENV)/contracts.log; exit 1; }
	@echo '» tests'     && $(MAKE) --no-print-directory test

format: $(VENV)/.dev ## put the code into our format
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --fix --quiet .

bench: $(VENV)/.dev ## measure every goal beside its peer
	@$(BIN)/python -m bench

lock: $(VENV)/.dev ## resolve the dependencies again
	@$(BIN)/pip-compile $(LOCK) --output-file requirements/run.lock pyproject.toml
	@$(BIN)/pip-compile $(LOCK) $(EXTRAS) -c requirements/run.lock --output-file requirements/extras.lock pyproject.toml
	@$(BIN)/pip-compile $(LOCK) --extra dev -c requirements/extras.lock --output-file requirements/dev.lock pyproject.toml

LOCK := --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links \
        --no-header --no-annotate --allow-unsafe --build-deps-for=editable

EXTRAS := --extra azure --extra docker --extra gs --extra kubernetes --extra nvidia --extra s3

clean: ## remove what was installed and built here; runs under ~/.anubis stay
	@rm -rf $(VENV) build dist *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.run: requirements/run.lock pyproject.toml
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo 'Anubis needs Python 3.11 or newer; `$(PYTHON)` is' \
	  "$$($(PYTHON) --version 2>&1). Name another one: make run PYTHON=python3.12"; exit 1; }
	@echo '» setting up $(VENV) (once, about a minute)'
	@$(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes -r requirements/run.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.extras: $(VENV)/.run requirements/extras.lock
	@echo '» installing what Docker, Kubernetes, object stores and GPUs need (once)'
	@$(PIP) install --require-hashes -r requirements/extras.lock
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.lock
	@echo '» installing the tools for tests (once)'
	@$(PIP) install --require-hashes -r requirements/dev.lock
	@touch $@
