# `make demo` and `make test` start from nothing but python3 (3.11 or later) with venv and pip.

PYTHON ?= python3
# The Python of `make test-newer`.
NEWER ?= $(shell .ci/newer-python)
WORKERS ?= 2
SEEDS ?= 1000 2000 3000
VENV ?= .venv
TESTS ?= not slow

BIN := $(VENV)/bin
PRINT_VERSION := import sys; print("%d.%d" % sys.version_info[:2])
VERSION := $(shell $(firstword $(wildcard $(BIN)/python) $(PYTHON)) -c '$(PRINT_VERSION)')
# The releases that are installed; empty, those that are the newest.
CONSTRAINTS ?= $(wildcard constraints/$(VERSION).txt)
PIP := PIP_CONSTRAINT=$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CONSTRAINTS) \
	$(BIN)/pip install -qq --no-compile --disable-pip-version-check
# Small batches: one thread a process is faster than several that wait for each other.
ONE := OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu MPLBACKEND=agg
# Workers begin at different places of the list, so that most files have one worker, and what a file
# has made and compiled is used again.
PYTEST = $(ONE) $(BIN)/pytest -m "$(TESTS)" -n $(WORKERS) --dist worksteal
OLDEST := .venv-oldest
OLDEST_DAY := 2025-11-19
NEWEST := .venv-newest
UNPINNED = $(MAKE) --no-print-directory suite CONSTRAINTS=
ON_NEWER = $(MAKE) --no-print-directory VENV=.venv-newer PYTHON="$(or $(NEWER),false)"

.PHONY: demo picture test test-newer test-oldest test-slow test-seeds suite newest versions \
	environments newer-environment bench bench-posteriors bench-scales bench-evidence bench-loop \
	bench-coverage bench-training lint clean

demo: $(VENV)/core
	@$(ONE) $(BIN)/schuss demo --out out/demo.png

picture: $(VENV)/core
	@$(ONE) $(BIN)/schuss demo --out docs/demo.png

test: lint suite

# On Python 3.13, or 3.12, in an environment of its own; without the statistics that no release of
# another library changes.
test-newer:
	@$(ON_NEWER) suite TESTS="not slow and not statistics"

test-slow: TESTS = slow
test-slow: suite

# Statistical checks with other seeds: a check that fails here fails by chance, as often as here.
test-seeds: TESTS = slow or statistics
test-seeds: $(VENV)/dev
	@failed=0; for seed in $(SEEDS); do echo "SCHUSS_TEST_SEED=$$seed"; \
		SCHUSS_TEST_SEED=$$seed $(PYTEST) || failed=1; done; exit $$failed

# With the lowest releases that pyproject.toml allows, and what these need as it was on that day.
test-oldest:
	@rm -rf $(OLDEST)
	@$(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/pip install -qq --disable-pip-version-check uv
	@$(OLDEST)/bin/uv pip compile -q --resolution lowest-direct --exclude-newer $(OLDEST_DAY) \
		--python $(OLDEST)/bin/python --extra dev --extra paper --extra torch pyproject.toml \
		-o $(OLDEST)/constraints.txt
	@$(MAKE) --no-print-directory suite VENV=$(OLDEST) CONSTRAINTS=$(OLDEST)/constraints.txt

suite: $(VENV)/dev
	@$(PYTEST)

versions: environments
	@$(BIN)/python .ci/versions.py
	@.venv-newer/bin/python .ci/versions.py

environments: $(VENV)/dev newer-environment

newer-environment:
	@$(ON_NEWER) .venv-newer/dev

# Today's releases of everything, on both Pythons; where all passes, they are installed from now on.
newest:
	@rm -rf $(NEWEST) $(NEWEST)-newer
	@failed=0; $(UNPINNED) VENV=$(NEWEST) || failed=1; \
		$(UNPINNED) VENV=$(NEWEST)-newer PYTHON="$(or $(NEWER),false)" || failed=1; exit $$failed
	@for venv in $(NEWEST) $(NEWEST)-newer; do \
		version=$$($$venv/bin/python -c '$(PRINT_VERSION)'); $$venv/bin/pip freeze --all \
		--exclude-editable | sed -n 's/+cpu$$//; /^pip==/!p' > constraints/$$version.txt; done

bench: $(VENV)/dev
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py

bench-posteriors: $(VENV)/peers
	@$(ONE) $(BIN)/python benchmarks/posteriors.py

bench-scales: $(VENV)/dev
	@$(ONE) $(BIN)/python benchmarks/scales.py

bench-evidence: $(VENV)/peers
	@$(ONE) $(BIN)/python benchmarks/evidence.py

bench-loop: $(VENV)/dev
	@$(ONE) $(BIN)/python benchmarks/loop.py run

bench-training: $(VENV)/dev
	@$(ONE) $(BIN)/python benchmarks/training.py

bench-dimensions: $(VENV)/dev
	@$(ONE) $(BIN)/python benchmarks/dimensions.py

bench-coverage: $(VENV)/dev
	@$(ONE) $(BIN)/python benchmarks/coverage_at_stop.py

lint: $(VENV)/dev
	@$(BIN)/ruff check -q
	@$(BIN)/ruff format -q --check
	@$(BIN)/pyright --pythonpath $(BIN)/python

clean:
	rm -rf .venv* out build src/*.egg-info .pytest_cache .ruff_cache .hypothesis .jax_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -r {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "schuss needs Python 3.11 or later; pass one, e.g. make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/core: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "installing schuss into $(VENV), once"
	@$(PIP) --upgrade setuptools
	@$(PIP) -e .
	@touch $@

$(VENV)/dev: $(VENV)/core
	@echo "installing what the tests need into $(VENV), PyTorch included, once"
	@$(PIP) -e ".[dev,paper,torch]"
	@touch $@

$(VENV)/peers: $(VENV)/dev
	@echo "installing the peers of the benchmarks, once"
	@$(PIP) -e ".[peers]"
	@touch $@
