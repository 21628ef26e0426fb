# make setup | run | test | check | bench | check-wheel | torture; everything lives in .venv, made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup run test check docs bench torture check-wheel
setup: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]'
	touch $(STAMP)

run: setup
	$(BIN)/armwise race

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/typing/check.py
	$(BIN)/lint-imports

test: setup
	tools/system-packages chromium=chromium initdb=postgresql node=nodejs npm=npm
	$(BIN)/python -m pytest -n auto --cov --cov-report=term:skip-covered

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# make bench DATA=FOLDER adds the real data sets; PEERS=PYTHON uses an interpreter that has the peers already.
bench: setup
	tools/system-packages wrk=wrk
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA)) $(if $(PEERS),--peers-python $(PEERS))

# Build the wheel, install it into an empty environment, and time its first answers.
check-wheel: setup
	$(BIN)/python tools/check-wheel

# Kill the decision service 200 times under load, and check every promise afterwards.
torture: setup
	$(BIN)/python tests/serve/torture.py --kills 200
