# `make demo` and `make test` start from nothing but python3 (3.11 or later) with venv and pip.

PYTHON ?= python3
TORCH ?= torch==2.13.0
WORKERS ?= 2

BIN := .venv/bin
PIP := $(BIN)/pip install -qq --disable-pip-version-check
# Small batches: one thread a process is faster than several that wait for each other.
ONE := OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu MPLBACKEND=agg

.PHONY: demo picture test test-slow bench bench-posteriors bench-scales bench-evidence lint clean

demo: .venv/core
	@$(ONE) $(BIN)/schuss demo --out out/demo.png

picture: .venv/core
	@$(ONE) $(BIN)/schuss demo --out docs/demo.png

test: lint
	@$(ONE) $(BIN)/pytest -m "not slow" -n $(WORKERS)

test-slow: .venv/dev
	@$(ONE) $(BIN)/pytest -m slow -n $(WORKERS)

bench: .venv/dev
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py

bench-posteriors: .venv/peers
	@$(ONE) $(BIN)/python benchmarks/posteriors.py

bench-scales: .venv/dev
	@$(ONE) $(BIN)/python benchmarks/scales.py

bench-evidence: .venv/peers
	@$(ONE) $(BIN)/python benchmarks/evidence.py

lint: .venv/dev
	@$(BIN)/ruff check -q
	@$(BIN)/ruff format -q --check
	@$(BIN)/pyright

clean:
	rm -rf .venv out build src/*.egg-info .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -r {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "schuss needs Python 3.11 or later; pass one, e.g. make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/core: pyproject.toml | .venv/bin/python
	@echo "installing schuss into .venv, once"
	@$(PIP) -e .
	@touch $@

.venv/dev: .venv/core
	@echo "installing what the tests need, PyTorch included, once"
	@$(PIP) -e ".[dev,paper]" $(TORCH)
	@touch $@

.venv/peers: .venv/dev
	@echo "installing the peers of the benchmarks, once"
	@$(PIP) -e ".[peers]"
	@touch $@
