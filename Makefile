# Seedbed: `make demo` installs the environment and runs the embedded experiment; `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

VENV ?= .venv
BIN := $(VENV)/bin
# the cores available to this process; with OMP_NUM_THREADS set, nproc would return that
CORES ?= $(shell env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2> /dev/null || getconf _NPROCESSORS_ONLN)
CONFIG ?= config.yaml
# two workers at most: each imports torch, and tests of whole workflows use several processes themselves
TEST_WORKERS ?= $(shell [[ "$(CORES)" -ge 2 ]] && echo 2 || echo 0)

# Runs share the cores; with more threads than cores they slow each other down.
export OMP_NUM_THREADS := 1
# Nothing is fetched from a model hub: all files come from the sources of the config.
export HF_HUB_OFFLINE := 1
export TRANSFORMERS_OFFLINE := 1
# Read by envs/install.sh, which has defaults.
export PYTHON TORCH

.PHONY: help install demo demo-lora demo-sizes run status watch plan compare plan-labels predict export push merge bundle test test-slow test-all test-slurm test-gpu bench bench-scale browser golden golden-approve reference docs lint format lock docs-lock dag clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "Variables: CORES=$(CORES), CONFIG=$(CONFIG), VENV=$(VENV); for the installation TORCH=cpu|cuda, PYTHON=python3.11"

install: ## install the environment into .venv, if it is not up to date
	@envs/install.sh $(VENV)

# three runs a process share its start-up: 87 s instead of 99 on two cores
demo: CONFIG = config.yaml
demo: OPTIONS = --config 'batches={runs: 3}'
demo: run ## run the embedded experiment, if it is not finished, and print its summary

# in a separate make, so that `make demo demo-lora` runs both
demo-lora: ## run the embedded experiment with LoRA and QLoRA and print its summary
	@$(MAKE) --no-print-directory run CONFIG=experiments/demo_lora.yaml

demo-sizes: ## train on 35 to 282 reviews, and print how many labels the checkpoint is worth
	@$(MAKE) --no-print-directory run CONFIG=experiments/demo_sizes.yaml

SNAKEMAKE = $(BIN)/snakemake --cores $(CORES) $(if $(filter-out config.yaml,$(CONFIG)),--configfile $(CONFIG)) $(OPTIONS)

run: install ## run an experiment: make run CONFIG=experiments/NAME.yaml (or several: CONFIG="A.yaml B.yaml")
	@$(BIN)/python scripts/check_config.py $(CONFIG)
	@$(SNAKEMAKE)
	@$(BIN)/python scripts/next_stages.py $(CONFIG) -- $(SNAKEMAKE)
	@$(BIN)/python scripts/show.py --configfile $(CONFIG)

# the command, which `pip install .` installs under this name
SEEDBED = PYTHONPATH=scripts $(BIN)/python -m seedbed

# RESULTS names the folder of an experiment, also of one whose config is elsewhere
EXPERIMENT = $(if $(RESULTS),$(RESULTS),--configfile $(CONFIG))
status: install ## say how far an experiment is, from its files: make status [CONFIG=... | RESULTS=results/ONE]
	@$(SEEDBED) status $(EXPERIMENT)

watch: install ## show how far an experiment is, anew every second: make watch [CONFIG=... | RESULTS=results/ONE]
	@$(SEEDBED) status $(EXPERIMENT) --watch

plan: install ## say what `make run` would run, and for about how long: make plan CONFIG=experiments/NAME.yaml
	@$(BIN)/python scripts/check_config.py $(CONFIG)
	@$(SNAKEMAKE) --dry-run --quiet rules

ifneq ($(filter compare,$(MAKECMDGOALS)),)
$(if $(and $(A),$(B)),,$(error name two experiments: make compare A=results/ONE B=results/OTHER))
endif
compare: install ## compare two experiments: make compare A=results/ONE B=results/OTHER [SAME=NAME=OTHER OUTPUT=FILE.html]
	@$(SEEDBED) compare $(A) $(B) $(if $(SAME),--same $(SAME)) $(if $(OUTPUT),--output $(OUTPUT))

ifneq ($(filter plan-labels,$(MAKECMDGOALS)),)
$(if $(and $(RESULTS),$(TARGET)),,$(error name an experiment and a score to reach: make plan-labels RESULTS=results/ONE TARGET=0.85))
endif
plan-labels: install ## say how many labels a score takes: make plan-labels RESULTS=results/ONE TARGET=0.85 [METRIC=macro_f1 OUTPUT=FILE.csv]
	@$(BIN)/python scripts/plan_labels.py $(RESULTS) $(TARGET) $(if $(METRIC),--metric $(METRIC)) \
	    $(if $(OUTPUT),--output $(OUTPUT))

# a run, or with CELL= the folder above for the mean of its seeds
OF_RUNS = $(if $(CELL),--cell $(CELL),--run $(RUN))

ifneq ($(filter predict,$(MAKECMDGOALS)),)
$(if $(and $(RUN)$(CELL),$(TEXTS),$(OUTPUT)),,$(error name a run, texts and a file to make: make predict RUN=results/.../SEED TEXTS=new.csv OUTPUT=out.csv))
endif
predict: install ## predict new texts: make predict RUN=results/.../SEED TEXTS=new.csv OUTPUT=out.csv [COLUMN=text PAIR=other], or CELL= for the mean of all seeds
	@$(SEEDBED) predict $(OF_RUNS) $(TEXTS) $(OUTPUT) $(if $(COLUMN),--column $(COLUMN)) $(if $(PAIR),--pair $(PAIR))

ifneq ($(filter export,$(MAKECMDGOALS)),)
$(if $(and $(RUN),$(OUTPUT)),,$(error name a run and a folder to make: make export RUN=results/.../SEED OUTPUT=FOLDER))
endif
export: install ## write a run as a folder for Transformers, with a model card: make export RUN=results/.../SEED OUTPUT=FOLDER
	@$(SEEDBED) export $(RUN) $(OUTPUT)

ifneq ($(filter push,$(MAKECMDGOALS)),)
$(if $(and $(MODEL),$(REPO)),,$(error name an exported folder and a place on the hub: make push MODEL=FOLDER REPO=you/name))
endif
push: install ## upload an exported folder with your own login (.venv/bin/hf auth login): make push MODEL=FOLDER REPO=you/name
	@env -u HF_HUB_OFFLINE $(BIN)/hf upload $(REPO) $(MODEL)

ifneq ($(filter merge,$(MAKECMDGOALS)),)
$(if $(and $(RUN),$(OUTPUT)),,$(error name a run with an adapter and a folder to make: make merge RUN=results/.../SEED OUTPUT=FOLDER))
endif
merge: install ## add a run's adapter to its model's weights: make merge RUN=results/.../SEED OUTPUT=FOLDER
	@$(BIN)/python scripts/merge_adapter.py $(RUN) $(OUTPUT)

ifneq ($(filter bundle,$(MAKECMDGOALS)),)
$(if $(and $(RESULTS),$(OUTPUT)),,$(error name an experiment and a file to make: make bundle RESULTS=results/ONE OUTPUT=FILE.tar.gz))
endif
bundle: install ## pack a finished experiment for a reviewer: make bundle RESULTS=results/ONE OUTPUT=FILE.tar.gz [TEXTS=1]
	@$(SEEDBED) bundle $(RESULTS) $(OUTPUT) $(if $(TEXTS),--texts)

golden: install ## compare tables, documents and predictions with the approved ones, byte by byte
	@$(BIN)/python tests/golden/golden.py check

golden-approve: install ## approve the present tables, documents and predictions
	@$(BIN)/python tests/golden/golden.py approve

reference: install ## write docs/reference and schemas/config.schema.json from the code
	@$(BIN)/python docs/generator

# an environment of its own, in uv's cache: who runs experiments does not need it
docs: install ## build the pages into results/site, and fail at any broken link
	@NO_MKDOCS_2_WARNING=1 $(BIN)/uv run --quiet --no-project --isolated --with-requirements envs/docs.lock \
	    mkdocs build --quiet --strict --site-dir results/site
	@echo "results/site/index.html"

# worksteal: a module mostly stays on one worker, so that its shared fixtures are made once
PYTEST = $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal

test: lint golden browser ## lint, compare golden results, run all tests except the slow ones
	@$(PYTEST) -m "not slow"

test-slow: install browser ## run only the slow tests: every kind of run, fault and damage
	@$(PYTEST) -m slow

test-all: test test-slow ## run all tests except those of profiles/slurm

test-gpu: install ## run the tests that need a GPU
	@SEEDBED_TEST_GPU=1 $(BIN)/python -m pytest tests/unit/training/test_graphs_on_a_gpu.py tests/unit/training/test_fused_on_a_gpu.py

test-slurm: install ## run the tests of profiles/slurm, on a Slurm cluster that they start on this host (as root)
	@envs/slurm.sh
	@$(BIN)/python -m pytest tests/slurm

BENCH ?= results/bench
bench: install ## time Seedbed beside plain fairseq-train and Trainer: make bench [CONFIG=... MIRROR=DIR BENCH_FLAGS=...]
	@$(BIN)/python benchmarks/bench run --folder $(BENCH)/$(basename $(notdir $(lastword $(CONFIG)))) --cores $(CORES) \
	    $(if $(filter-out config.yaml,$(CONFIG)),--configfile $(CONFIG)) $(if $(MIRROR),--mirror $(MIRROR)) $(BENCH_FLAGS)

SCALE ?= results/scale
bench-scale: install ## measure 10,000 planned runs, and 1,000 short jobs on a simulated Slurm cluster (as root)
	@$(BIN)/python benchmarks/scale.py dag $(SCALE)/dag
	@$(BIN)/python benchmarks/scale.py cluster $(SCALE)/single
	@$(BIN)/python benchmarks/scale.py cluster $(SCALE)/batches --batch 10

browser: install ## install a browser for the tests of the report, if there is none
	@envs/browser.sh $(VENV)

lint: install ## check style, format and types, change nothing
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/snakefmt --check Snakefile rules
	@$(BIN)/mypy
	@$(BIN)/snakemake --lint

format: install ## format Python and Snakefiles
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/snakefmt Snakefile rules

# Locked versions are kept if they still fit; LOCK_FLAGS=--upgrade takes the newest ones, and
# LOCK_FLAGS="--upgrade-package NAME" the newest one of a package. uv only needs torch's metadata; torch and the
# packages of its CUDA build are removed from the lock, since envs/install.sh installs them.
lock: install ## resolve envs/requirements.in into envs/requirements.lock
	@lock=$$(mktemp) && trap 'rm -f "$$lock"' EXIT && cp envs/requirements.lock "$$lock"; \
	$(BIN)/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --no-header \
	    --annotation-style line --override envs/overrides.txt $(LOCK_FLAGS) --output-file "$$lock" envs/requirements.in; \
	{ grep '^#' envs/requirements.lock; \
	    sed -E '/^nvidia-ml-py==/b; /^(torch|triton|nvidia-[a-z0-9-]+|cuda-[a-z]+)==/d' "$$lock"; } \
	    > envs/requirements.lock.new
	@mv envs/requirements.lock.new envs/requirements.lock
	@echo "envs/requirements.lock: $$(grep -c == envs/requirements.lock) packages"

docs-lock: install ## resolve envs/docs.in into envs/docs.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --annotation-style line \
	    $(LOCK_FLAGS) --output-file envs/docs.lock envs/docs.in

dag: install ## draw the graph of rules: results/rulegraph.dot, and .svg if Graphviz is installed
	@mkdir -p results
	@$(BIN)/snakemake --rulegraph $(if $(filter-out config.yaml,$(CONFIG)),--configfile $(CONFIG)) > results/rulegraph.dot
	@if command -v dot > /dev/null; then dot -Tsvg results/rulegraph.dot -o results/rulegraph.svg; fi
	@ls results/rulegraph.*

clean: ## remove what the demos made and the caches of tools; other experiments and .venv stay
	@rm -rf results/demo results/demo_lora results/demo_sizes .mypy_cache .pytest_cache .ruff_cache .hypothesis
