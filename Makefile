# The front door. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements.lock
SETUP := $(VENV)/.set-up-from
RUN_ARGUMENTS ?=

# A run starts brokers and clients many times: compiled once, brokers load in two thirds of the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run quick paper full test test-hidden check bench kafka bench-coordination bench-analysis fuzz kills sim mutants bare clean lock proto

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 28

setup: $(SETUP)  ## make .venv (every target that needs it does this first)

# Rebuilt when the lock or the Python behind it changes, not otherwise: the stamp names both.
$(SETUP): $(LOCK)
	@sh .ci/set-up "$(PYTHON)" "$(VENV)" "$(LOCK)" "$@"

run: $(SETUP)  ## run the steady profile and write tables, figures and report
	@$(BIN)/brokerlab run --profile steady $(RUN_ARGUMENTS)

quick: $(SETUP)  ## a first look, in a minute
	@$(BIN)/brokerlab run --profile quick $(RUN_ARGUMENTS)

paper: $(SETUP)  ## the 2017 paper's cells: 30,000 messages, four tries
	@$(BIN)/brokerlab run --profile paper $(RUN_ARGUMENTS)

full: $(SETUP)  ## 8 B to 128 KB, all cells
	@$(BIN)/brokerlab run --profile full $(RUN_ARGUMENTS)

test: $(SETUP)  ## all tests, in three processes
	@$(BIN)/python -m pytest --numprocesses 3 --dist loadfile

test-hidden: $(SETUP)  ## the tests that use Java, ssh or kcat, as on a machine that has none of them
	@$(BIN)/python -m pytest --numprocesses 3 --dist loadfile -m "java or machine" --hide-programs

check: $(SETUP)  ## ruff, mypy --strict, import contracts, generated code up to date
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m brokers.rpc.generate --check

# A cluster that somebody else runs is named by its address in the file, so the run gets a file of its own.
ADDRESS := $(if $(findstring :,$(PEER)),$(PEER))
bench: $(SETUP)  ## speed of the data plane; PEER=kafka-kraft beside Apache Kafka, PEER=host:port beside any cluster
	@$(if $(ADDRESS),mkdir -p results && sed 's/127\.0\.0\.1:9092/$(ADDRESS)/' experiments.yaml > results/experiments.yaml)
	@$(BIN)/brokerlab run $(if $(ADDRESS),results/experiments.yaml) --profile bench --only architecture=static \
	  $(if $(PEER),architecture=$(if $(ADDRESS),external,$(PEER))) $(RUN_ARGUMENTS)

kafka: $(SETUP)  ## fetch Apache Kafka, for the profiles reference and bench
	@$(BIN)/python -m workloads.systems.kafka_jars

bench-coordination: $(SETUP)  ## time to agreement, messages and bytes of a change, for each architecture
	@$(BIN)/python -m tests.benchmarks.coordination $(RUN_ARGUMENTS)

bench-analysis: $(SETUP)  ## 10 and 100 million request rows through the analysis
	@$(BIN)/python -m tests.benchmarks.analysis $(RUN_ARGUMENTS)

fuzz: $(SETUP)  ## a million mutated frames against a broker
	@$(BIN)/python -m tests.campaigns.wire_fuzz --frames 1000000 $(RUN_ARGUMENTS)

kills: $(SETUP)  ## 1,000 kills of a log that acknowledges after the sync; 10,000 corruptions
	@$(BIN)/python -m tests.campaigns.log_kills --kills 1000
	@$(BIN)/python -m tests.campaigns.log_corruptions --count 10000

sim: $(SETUP)  ## 10,000 simulated DSBS clusters on a faulty network
	@$(BIN)/python -m tests.campaigns.sim --runs 10000 $(RUN_ARGUMENTS)

mutants: $(SETUP)  ## break each promise in a copy, and print the mutants that no test finds
	@$(BIN)/python -m tests.campaigns.mutants $(RUN_ARGUMENTS)

bare:  ## README's first commands on a bare Debian (needs root and debootstrap); TARGETS="run quick test"
	@$(PYTHON) -m tests.campaigns.bare $(TARGETS) $(RUN_ARGUMENTS)

clean:  ## remove .venv, results and caches
	rm -rf $(VENV) results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

proto: $(SETUP)  ## generate the protobuf modules again
	@$(BIN)/python -m brokers.rpc.generate

lock:  ## resolve pyproject.toml into the lock file again (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet --output-file $(LOCK)
