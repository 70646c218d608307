# Two commands on a fresh machine:  make demo  needs Python 3.11+,  make test  Java 17 or 21, too
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
DEMO ?= demo
# Airflow must not share an environment with Spark: its provider brings a client in Spark's name.
AIRFLOW ?= .venv-airflow
# Each has a Spark session of its own, of about 2 GB with its Python workers; three keep two cores at work.
TEST_WORKERS ?= 3
EXAMPLES ?= some
CASES ?= not thorough and not reproduce
PYTEST = $(BIN)/python -m pytest -q -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder --examples=$(EXAMPLES)

.PHONY: demo test test-all test-thorough test-fast java machine-code check lint wheel bench site lock clean

demo: $(VENV)/ready
	@test -f $(DEMO)/data/SYNTHETIC.md || $(BIN)/privrisk synthesize $(DEMO)/data --rows 20000
	DEMO=$(DEMO) $(BIN)/privrisk release conf/demo.yaml --explain
	@echo
	@echo "The data are SYNTHETIC. Look at:"
	@echo "  $(DEMO)/vault/report.html      the officer's report: risk before and after, what was done, checks"
	@echo "  $(DEMO)/release/manifest.json  what a consumer gets: guarantee, columns, files"
	@echo "  conf/demo.yaml                 the policy; copy it, or run it with --set decision.utility_at_least=4"

# What CI runs: lint, types, and the tests on the embedded engine; on Spark those that need it. Those of dags/ are skipped
# where Airflow is not: make $(AIRFLOW)/ready; those of Spark's connectors where these are not: make $(VENV)/connectors;
# those of Azure likewise: make $(VENV)/azurite; and the check of pages for accessibility: make $(VENV)/axe.
test: lint machine-code java $(VENV)/client $(TEST_NEEDS)
	$(PYTEST) --engine embedded -m "$(CASES)"
	$(PYTEST) --engine spark -m "on_spark and ($(CASES))"

# Every test on both engines, with those of the papers' experiments.
test-all: CASES = not thorough
test-all: lint machine-code java $(VENV)/client $(TEST_NEEDS)
	$(PYTEST) --engine embedded -m "$(CASES)"
	$(PYTEST) --engine spark -m "spark and ($(CASES))"

# Before a release: also the cases marked thorough, each of which says what covers it in the usual run, and every random
# example that a property asks for, where `make test` takes the first eighth of them.
test-thorough:
	$(MAKE) test-all EXAMPLES=all CASES="spark or not spark"

# Everything that needs no engine, with few random examples of each property: while you work.
test-fast: machine-code
	$(BIN)/python -m pytest -q -n $(TEST_WORKERS) --dist worksteal -m "not spark and not thorough and not reproduce" --examples=few

java:
	@java -version >/dev/null 2>&1 || { echo "Java 17 or 21 is needed on the PATH for tests on Spark."; exit 1; }

# The tests and what they run compiled: once for each state of the sources, so that no two processes compile the same.
machine-code: $(VENV)/ready
	PYTHONPATH=. $(BIN)/python tests/machine_code.py
	$(BIN)/python -m pytest -qq --collect-only >/dev/null

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: test

# Spark's own package of a Spark Connect client, without Java, for its test.
$(VENV)/client: $(VENV)/ready
	rm -rf $@
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --target $@ "pyspark-client==$$($(BIN)/python -c 'import pyspark; print(pyspark.__version__)')"

# Spark's connectors for Delta and Iceberg tables, by Maven, and the Spark that Iceberg's fits, for their tests.
$(VENV)/connectors: tests/connector_packages.py $(VENV)/ready
	$(BIN)/python tests/connector_packages.py $@
	@touch $@

# A server of Azure's blob storage, by npm, for the tests of stores.
$(VENV)/azurite: tests/azurite/package-lock.json $(VENV)/ready
	rm -rf $@.part
	mkdir -p $@.part
	cp tests/azurite/package.json tests/azurite/package-lock.json $@.part
	npm ci --silent --no-audit --no-fund --prefix $@.part
	rm -rf $@
	mv $@.part $@
	@touch $@

# Rules of accessibility and what drives the browser they are run in, by npm, for the tests of pages.
$(VENV)/axe: tests/axe/package-lock.json $(VENV)/ready
	rm -rf $@.part
	mkdir -p $@.part
	cp tests/axe/package.json tests/axe/package-lock.json $@.part
	npm ci --silent --no-audit --no-fund --ignore-scripts --prefix $@.part
	rm -rf $@
	mv $@.part $@
	@touch $@

# The wheel with the embedded engine, alone in an environment without Java: the seven rows of README.
wheel: $(VENV)/ready
	$(BIN)/python tests/wheel_program.py build/wheel

bench: $(VENV)/ready
	timeout 3600 $(BIN)/python -m benchmarks case-study-both

# The site of docs/, with the notebook as it runs, in build/site-of-docs/site.
site: $(VENV)/ready
	mkdir -p build
	$(BIN)/python docs/notebook.py build/quickstart.ipynb
	$(BIN)/python docs/site.py build/site-of-docs --notebook build/quickstart.ipynb

# The environment, from the lock; made again when the lock changes.
$(VENV)/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=…"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check uv
	$(BIN)/uv pip install -q --compile-bytecode --python $(BIN)/python -r requirements.lock
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps -e .
	$(BIN)/python -m compileall -q privrisk_spark
	@touch $@

# Airflow, in an environment of its own, from its own lock.
$(AIRFLOW)/ready: dags/requirements.lock | $(VENV)/ready
	$(PYTHON) -m venv --without-pip $(AIRFLOW)
	$(BIN)/uv pip install -q --compile-bytecode --python $(AIRFLOW)/bin/python -r dags/requirements.lock
	@touch $@

lock: $(VENV)/ready
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --extra all --extra connect --group dev --no-emit-index-url --no-annotate --generate-hashes --constraint constraints.txt pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --no-emit-index-url --no-annotate --generate-hashes dags/requirements.in -o dags/requirements.lock

clean:
	rm -rf $(VENV) $(AIRFLOW) demo out vault build dist
