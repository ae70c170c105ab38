# What one types; `make help` lists it. Only Python 3.11 with venv and pip, make and git are assumed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help install run test lint types clean

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

install: .venv/.installed ## create .venv and install, exact versions

run: install ## measure the article suite and print the report (two to three minutes)
	$(BIN)/bakeoff suite=article

test: lint types ## every test, and the two below
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: install ## ruff and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install ## mypy --strict
	$(BIN)/mypy

clean: ## remove the environment; results stay
	rm -rf .venv
