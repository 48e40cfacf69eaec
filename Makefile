# The two to start with: make demo, make test. Each needs only Python 3.10+, Java 17+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
JARS := $(BIN)/python python/build_hook.py jars
SBT := $(BIN)/python python/build_hook.py sbt
# Tests start Spark many times, in half the time with an archive of its classes and without the second compiler. Tests that
# run queries took 13 to 19 % more CPU time with the collector G1 than with the serial one.
CLASSES := target/spark.jsa
QUICK_START := -Xlog:disable -XX:SharedArchiveFile=$(CURDIR)/$(CLASSES) -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC

.DEFAULT_GOAL := help
.NOTPARALLEL:

# Images of containers set it. Each Python that the tests start would compile pandas and pyspark again, in 2 seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-25s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(INSTALLED) ## Run TPC-H queries with Apportion and without, and compare
	@$(JARS) > /dev/null
	@$(BIN)/apportion demo

.PHONY: test
test: $(INSTALLED) ## Check formats, lint and types; run the Scala and the Python tests, but not the slow ones
	@$(MAKE) --no-print-directory $(CLASSES) & archived=$$!; \
	  $(MAKE) --no-print-directory check scala-test && wait $$archived
	@SPARK_SUBMIT_OPTS='$(QUICK_START)' SPARK_DAEMON_JAVA_OPTS='$(QUICK_START)' $(BIN)/pytest -n 2 --dist loadfile

.PHONY: test-all
test-all: check scala-test-all ## The same with the slow tests, and the Scala tests on every Spark version
	@$(BIN)/pytest -m ''

.PHONY: test-matrix
test-matrix: $(INSTALLED) ## Run the Scala tests and the core of the Python tests on every Spark, and write their table in docs/compatibility.md
	@$(BIN)/python python/matrix.py

.PHONY: smoke-test
smoke-test: jars ## Run one Scala suite on each Spark but the newest
	@$(SBT) smokeTestOthers

.PHONY: bench
bench: $(INSTALLED) ## Measure what deciding and hints cost, into docs/measurements/cost.csv
	@$(SBT) "benchmarks/Jmh/runMain org.apache.spark.apportion.BenchmarkReport"

# The scale factor of the tables for bench-sql: about that many GB as text.
SF ?= 1
.PHONY: bench-sql
bench-sql: jars ## Time TPC-H and TPC-DS with Apportion, Spark and fixed numbers at scale factor SF=1, into docs/measurements
	@$(BIN)/python -m measurements queries tpch --scale $(SF)
	@$(BIN)/python -m measurements queries tpcds --scale $(SF)

.PHONY: measure
measure: jars ## Run a program that measures, into docs/measurements: make measure WHAT=plans; without WHAT, list them
	@$(BIN)/python -m measurements $(WHAT)

.PHONY: results
results: $(INSTALLED) ## Write docs/results.md, its chart and the table of the README from docs/measurements
	@$(BIN)/python -m measurements results
	@$(BIN)/python docs/pictures/draw.py

.PHONY: generated
generated: $(INSTALLED) ## Write the files that are generated from code: docs/settings.md and others
	@$(SBT) generate
	@$(BIN)/python -m typer apportion.cli utils docs --name apportion --title "Command line" --output docs/command-line.md
	@$(BIN)/python docs/pictures/draw.py

.PHONY: docs
docs: $(INSTALLED) ## Build the documentation as a site into target/site
	@$(BIN)/mkdocs build --quiet --strict

.PHONY: format
format: $(INSTALLED) ## Format all sources
	@$(SBT) format
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

.PHONY: jars
jars: $(INSTALLED) ## Build the jars for every Spark version into target/jars, if they are not up to date
	@$(JARS)

.PHONY: dist
dist: jars ## Build the wheel and the sdist into dist/, and check them
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --sdist --wheel
	@$(BIN)/pytest --quiet python/tests/installing/test_wheel_and_sdist.py
	@du -h dist/*

# Pythons with their Spark. One that is not found by its name can be given by its path.
ENVIRONMENTS ?= python3.10=3.5,python3.13=4.3
.PHONY: release-check
release-check: jars ## Check all that a release publishes: versions, wheel, jars, SBOM, and the README in clean environments
	@$(BIN)/python python/release_check.py --environments $(ENVIRONMENTS)

.PHONY: clean
clean: ## Remove the virtual environment and all that was built
	rm -rf $(VENV) target project/target project/project dist

.PHONY: check
check: $(INSTALLED)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/mypy --no-error-summary

.PHONY: scala-test scala-test-all
# .ci/run adds a suite on each other Spark, in the same sbt.
SCALA_TESTS := test
scala-test: jars
	@$(SBT) check $(SCALA_TESTS)
scala-test-all: jars
	@$(SBT) check testAll

# The jars are built while packages are fetched, and not by the build hook of the package.
$(INSTALLED): pyproject.toml build.sbt
	@echo "Installing into $(VENV) and building the jars (minutes, the first time) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) hatchling 'jgo<4'
	@$(JARS) > /dev/null & jars=$$!; \
	  HATCH_BUILD_NO_HOOKS=true $(PIP_INSTALL) --editable '.[spark,demo,plot,docs,dev]'; installed=$$?; \
	  wait $$jars && exit $$installed
	@touch $@

$(CLASSES): $(INSTALLED)
	@mkdir -p $(@D)
	@PYSPARK_PYTHON=$(BIN)/python \
	  SPARK_SUBMIT_OPTS='-Xlog:disable -XX:ArchiveClassesAtExit=$@ -Dlog4j2.configurationFile=jvm/src/test/resources/log4j2.properties' \
	  $(BIN)/spark-submit python/train_class_archive.py
