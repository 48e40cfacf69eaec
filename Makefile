# The two to start with: make demo, make test. Each needs only Python 3.10+, Java 17+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check
JARS := $(BIN)/python python/build_hook.py jars
SBT := $(BIN)/python python/build_hook.py sbt
# Tests start Spark many times, in half the time with an archive of its classes and without the second compiler.
CLASSES := target/spark.jsa
QUICK_START := -Xlog:disable -XX:SharedArchiveFile=$(CURDIR)/$(CLASSES) -XX:TieredStopAtLevel=1

.DEFAULT_GOAL := help
.NOTPARALLEL:

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-25s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: jars ## Run TPC-H queries with Apportion and without, and compare
	@$(BIN)/apportion demo

.PHONY: test
test: check scala-test $(CLASSES) ## Check formats, lint and types; run the Scala and the Python tests, but not the slow ones
	@SPARK_SUBMIT_OPTS='$(QUICK_START)' SPARK_DAEMON_JAVA_OPTS='$(QUICK_START)' $(BIN)/pytest -n 2 --dist loadfile

.PHONY: test-all
test-all: check scala-test-all ## The same with the slow tests, and the Scala tests on every Spark version
	@$(BIN)/pytest -m ''

.PHONY: test-matrix
test-matrix: $(INSTALLED) ## Run the Scala tests and the core of the Python tests on every Spark, and write their table in docs/compatibility.md
	@$(BIN)/python python/matrix.py

.PHONY: smoke-test
smoke-test: jars ## Run one Scala suite on each Spark but the newest, and a few Python tests on those that only pip has
	@$(SBT) smokeTestOthers
	@$(BIN)/python python/matrix.py --smoke

.PHONY: bench
bench: $(INSTALLED) ## Measure what deciding and hints cost, and write it to docs/benchmarks.md
	@$(SBT) "benchmarks/Jmh/runMain org.apache.spark.apportion.BenchmarkReport"

# The scale factor of the tables for bench-sql: about that many GB as text.
SF ?= 1
.PHONY: bench-sql
bench-sql: jars ## Time TPC-H and TPC-DS with Apportion and without, at scale factor SF=1, into target/bench
	@mkdir -p target/bench
	@$(BIN)/apportion bench tpch --scale $(SF) --check -o target/bench/tpch.json --plot target/bench/tpch.png
	@$(BIN)/apportion bench tpcds --scale $(SF) --check -o target/bench/tpcds.json --plot target/bench/tpcds.png

.PHONY: bench-simulate
bench-simulate: jars ## Log TPC-H, predict it in other configurations, measure these, and write docs/simulator-accuracy.md
	@$(BIN)/python python/simulator_accuracy.py docs/simulator-accuracy.md --scale $(SF)

.PHONY: measure-plans
measure-plans: jars ## Compare the plans of TPC-H and TPC-DS with Apportion and without, and write docs/plan-safety.md
	@$(BIN)/python python/measurements/plans.py docs/plan-safety.md --scale $(SF)

.PHONY: measure-partition-counts
measure-partition-counts: jars ## Time queries with many numbers of shuffle partitions, and write docs/partition-counts.md
	@$(BIN)/python python/measurements/partition_counts.py docs/partition-counts.md

.PHONY: measure-largest-tasks
measure-largest-tasks: jars ## Compare the largest tasks of 200 generated queries, and write docs/largest-tasks.md
	@$(BIN)/python python/measurements/largest_tasks.py docs/largest-tasks.md

.PHONY: measure-memory
measure-memory: jars ## Compare spills with the memory that Apportion expects, and write docs/memory-accuracy.md
	@$(BIN)/python python/measurements/memory.py docs/memory-accuracy.md

.PHONY: measure-file-sizes
measure-file-sizes: jars ## Compare file sizes with their target, and write docs/file-size-accuracy.md
	@$(BIN)/python python/measurements/file_sizes.py docs/file-size-accuracy.md

.PHONY: measure-plain-logs
measure-plain-logs: jars ## Predict TPC-H and TPC-DS from logs without Apportion, measure them, and write docs/plain-log-accuracy.md
	@$(BIN)/python python/measurements/plain_logs.py docs/plain-log-accuracy.md --scale $(SF)

.PHONY: measure-deadlines
measure-deadlines: jars ## Simulate queries that must end within a time, and write docs/deadline-accuracy.md
	@$(BIN)/python python/measurements/deadlines.py docs/deadline-accuracy.md --scale $(SF)

.PHONY: measure-deadlines-on-cluster
measure-deadlines-on-cluster: jars ## Run queries that must end within a time on a cluster, and write docs/deadline-measurements.md
	@$(BIN)/python python/measurements/deadlines_on_cluster.py docs/deadline-measurements.md --scale $(SF)

.PHONY: measure-streams
measure-streams: jars ## Run streams under a changing load, and write docs/stream-measurements.md
	@$(BIN)/python python/measurements/streams.py docs/stream-measurements.md

.PHONY: measure-heap
measure-heap: jars ## Look for objects that a session keeps of each of 2,000 queries
	@$(BIN)/python python/measurements/heap_growth.py

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

.PHONY: clean
clean: ## Remove the virtual environment and all that was built
	rm -rf $(VENV) target project/target project/project dist

.PHONY: check
check: $(INSTALLED)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/mypy --no-error-summary

.PHONY: scala-test scala-test-all
scala-test: jars
	@$(SBT) formatCheck benchmarks/compile test
scala-test-all: jars
	@$(SBT) formatCheck benchmarks/compile testAll

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
