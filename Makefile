# Parley. `make help` lists what there is; each target's comment is its help.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup site demo up autogen dense test lint

# A Python that `make setup` can build .venv from: the first of these that runs and is 3.11, 3.12 or 3.13.
FIND_PYTHON = for python in $(PYTHON) .venv/bin/python python3.11 python3.12 python3.13 python3 python; do \
	if "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1; then break; fi; \
	python=; done; \
	if [ -z "$$python" ]; then echo "make: Python 3.11, 3.12 or 3.13 is needed (PYTHON=/path/to/python names one)" >&2; exit 1; fi

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## build .venv and the documentation, fetch assets, prepare models, migrate (again: only what changed)
	@$(FIND_PYTHON); exec "$$python" -m tools.setup

site: ## what demo and up need: packages, assets, documentation, database; models are prepared while it runs
	@$(FIND_PYTHON); exec "$$python" -m tools.setup --models-later

demo: site ## start everything with a sample dataset and a demo user, print the address; Ctrl-C stops all of it
	@exec .venv/bin/python -m tools.up --demo

up: site ## start everything as it is, print the address; Ctrl-C stops all of it
	@exec .venv/bin/python -m tools.up

autogen: ## also build .venv-autogen, which `questions --form chat` needs
	@$(FIND_PYTHON); exec "$$python" -m tools.setup --packages-only --autogen

dense: ## also install what dense retrieval needs (`index --kind dense`)
	@$(FIND_PYTHON); exec "$$python" -m tools.setup --packages-only --dense

test: ## run every test, the ones in a headless browser included
	@$(FIND_PYTHON); "$$python" -m tools.setup --dev --autogen --dense && exec .venv/bin/python -m tools.test

lint: ## check style, types, imports and locks
	@$(FIND_PYTHON); "$$python" -m tools.setup --dev --packages-only && exec .venv/bin/python -m tools.lint $(if $(filter command line,$(origin QUICK)),$(QUICK))
