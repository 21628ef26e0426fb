# make setup | native | native-coverage | sanitize | fuzz | run | quick | test | coverage | check | docs | bench | bakeoff | check-wheel | release-check | torture; everything lives in .venv, made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RACES := $(VENV)/.races
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: setup native native-here native-coverage stubs sanitize run quick test coverage check docs bench bakeoff torture fuzz check-wheel release-check
setup: $(STAMP) native

$(BIN)/python:
	tools/system-packages c++=g++ $$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h=python3-dev
	$(PYTHON) -m venv $(VENV)

# Editable: Python is read from src, and `native` builds the kernels there, again whenever a source of theirs changes.
EDITABLE := --no-build-isolation --config-settings wheel.cmake=false --editable
$(STAMP): pyproject.toml | $(BIN)/python
	$(PIP) scikit-build-core
	$(PIP) $(EDITABLE) '.[all,dev]'
	touch $(STAMP)

# What a race needs, and no more: CMake only where the machine has none, and no bytecode of modules, most of which are
# never imported; Python compiles those that are.
$(RACES): pyproject.toml | $(BIN)/python
	$(PIP) --no-compile scikit-build-core
	$(PIP) --no-compile $(EDITABLE) ".[race,native$$(cmake -P tools/enough.cmake >/dev/null 2>&1 || echo ,cmake)]"
	touch $(RACES)

# The compiled kernels, built in place; with nothing to do it takes a tenth of a second.
BUILD := build/native
CONFIGURE = test -f $(BUILD)/build.ninja || cmake -S . -B $(BUILD) -G Ninja -DPython_EXECUTABLE=$(abspath $(BIN))/python >/dev/null
native native-here: export PATH := $(abspath $(BIN)):$(PATH)
native: $(STAMP)
	$(CONFIGURE)
	cmake --build $(BUILD)
	cmake --install $(BUILD) --prefix src >/dev/null

# The one variant that this processor takes: half of the time of all.
WHICH = $$(python -c 'import sys; sys.path.append("$(BUILD)"); import _processor; print(_processor.best_variant())')
native-here: $(RACES)
	$(CONFIGURE)
	cmake --build $(BUILD) --target _processor
	cmake --build $(BUILD) --target _$(WHICH)
	for part in processor $(WHICH); do cmake --install $(BUILD) --prefix src --component $$part >/dev/null || exit 1; done

# The kernels' tests under the address and undefined-behaviour sanitisers, once in each variant. tools/sanitize sees to it
# that every process of the run takes the sanitised kernels, or the run fails. Python itself is not instrumented, so the
# sanitisers' runtime is loaded before it, and what Python leaves allocated at its end is not looked at. Its objects are
# each allocated by themselves: beyond the end of one that lies in a pool of Python's the sanitiser sees nothing wrong.
SANITIZED := $(abspath build/sanitized)
sanitize: export PATH := $(abspath $(BIN)):$(PATH)
sanitize: export PYTHONPATH := $(abspath tools/sanitize):$(SANITIZED)
sanitize: $(STAMP)
	cmake -S . -B build/sanitize -G Ninja -DPython_EXECUTABLE=$(abspath $(BIN))/python -DARMWISE_SANITIZE=ON >/dev/null
	cmake --build build/sanitize
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED) && cp -r src/armwise $(SANITIZED)/
	rm -f $(SANITIZED)/armwise/native/_*.so
	cmake --install build/sanitize --prefix $(SANITIZED) >/dev/null
	for variant in baseline ''; do \
		ARMWISE_SANITIZED=$(SANITIZED) ARMWISE_SIMD=$$variant PYTHONMALLOC=malloc \
		LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		python -m pytest -q -p sanitized -p no:xdist -p no:cacheprovider --capture=sys $(KERNEL_TESTS) || exit 1; \
	done
KERNEL_TESTS := tests/native tests/models tests/agents/linear tests/agents/kernel tests/features tests/agents/test_every_agent.py tests/agents/experts tests/service/model/test_optimist.py tests/fuzz

# The kernels' types, as mypy reads them, from the compiled module itself.
stubs: native
	PYTHONPATH=src $(BIN)/python -m nanobind.stubgen -q -m armwise.native._baseline -r -D -O build/stubs
	rm build/stubs/_baseline/__init__.pyi && mv build/stubs/_baseline/*.pyi src/armwise/native/
	$(BIN)/ruff format --quiet src/armwise/native
	$(BIN)/ruff check --quiet --fix src/armwise/native

# From a fresh clone: install and compile what the races need; where everything is installed, it is kept up to date. One
# thread for linear algebra: a race's matrices are small, and a second one waits for them in a loop that takes a core.
run: export PYTHONDONTWRITEBYTECODE :=
run: $(if $(wildcard $(STAMP)),setup,native-here)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/armwise race

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/typing/check.py
	$(BIN)/lint-imports

# A core for each worker, which takes whole files: what a file's tests share is made once. Bytecode is kept whatever the
# environment says, so that a process that a test starts does not compile every source anew.
# Files of tests are in memory where there is room for them: for a disk a processor waits and works, and none outlives its
# test unless that fails.
WORKERS := -n auto --dist loadfile --no-loadscope-reorder -o tmp_path_retention_policy=failed
MEMORY = $(shell test "$$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 2>/dev/null && \
	! grep -q ' /dev/shm .*noexec' /proc/mounts && echo TMPDIR=/dev/shm)
test: export PYTHONDONTWRITEBYTECODE :=
test: setup
	tools/system-packages chromium=chromium initdb=postgresql node=nodejs npm=npm
	tools/system-packages promtool=prometheus
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(MEMORY) $(BIN)/python -m pytest $(WORKERS) $(MEASURE)

# The tests that find most, in under a minute on two cores: tests/quick.txt, chosen by the lines that each file runs per
# second and by which files noticed random mutations of the package. No browser, no database, no network.
quick: export PYTHONDONTWRITEBYTECODE :=
quick: setup
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(MEMORY) $(BIN)/python -m pytest $(WORKERS) @tests/quick.txt

# The same tests, and which lines of the package they ran: a trace of every line, which doubles their time.
coverage: MEASURE := --cov --cov-report=term:skip-covered
coverage: test

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# make bench DATA=FOLDER adds the real data sets; PEERS=PYTHON uses an interpreter that has the peers already.
bench: setup
	tools/system-packages wrk=wrk
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA)) $(if $(PEERS),--peers-python $(PEERS))

# make bakeoff DATA=FOLDER: every agent as it comes over a folder of Parquet sets, and with noise; stopped, it goes on where it was.
# PEERS=yes adds MABWiser, contextualbandits and bayesianbandits on small sets, in an environment of their own, and says what
# could not be installed there; PEERS=PYTHON uses one.
bakeoff: setup
	$(BIN)/python -m benchmarks.bakeoff --data $(or $(DATA),$(error give the folder of sets: make bakeoff DATA=FOLDER)) \
		$(if $(PEERS),$(if $(filter yes,$(PEERS)),--peers,--peers-python $(PEERS)))
	$(BIN)/python -m benchmarks.noisy_bakeoff --data $(DATA) --results benchmarks/.noisy.jsonl \
		$(if $(PEERS),$(if $(filter yes,$(PEERS)),--peers,--peers-python $(PEERS)))

# Build the wheel, install it into an empty environment, and time its first answers.
check-wheel: setup
	$(BIN)/python tools/check-wheel

# The checklist of a release (docs/policy.md): tree, version, changelog, lint, tests, docs, wheel.
release-check: setup
	tools/release-check

# A thousand schedules of a simulated cluster, and five planted bugs that it must find; then kill the decision service
# 200 times under load, freeze and resume each of two 50 times, restart their database, fill the disk, let clocks jump;
# then ten minutes of hang-ups, stalled readers, erasures and training under load; and check every promise afterwards.
torture: setup
	$(BIN)/python -m tests.service.simulation --schedules 1000
	$(BIN)/python -m tests.service.simulation --schedules 1000 --bugs
	$(BIN)/python -m tests.service.torture --kills 200
	$(BIN)/python -m tests.service.ordeal --freezes 50
	$(BIN)/python -m tests.service.soak --seconds 600

# Every reader of bytes from outside, with damaged samples, for SECONDS each; what breaks one is added to its corpus.
SECONDS ?= 120
fuzz: setup
	ARMWISE_FUZZ_SECONDS=$(SECONDS) $(BIN)/python -m pytest -q -p no:xdist tests/fuzz

# Which lines of the C++ the kernels' tests run: a build for gcov, its tests, and a line for each source file.
MEASURED := $(abspath build/measured)
native-coverage: export PATH := $(abspath $(BIN)):$(PATH)
native-coverage: export PYTHONPATH := $(abspath tools/sanitize):$(MEASURED)
native-coverage: $(STAMP)
	cmake -S . -B build/gcov -G Ninja -DPython_EXECUTABLE=$(abspath $(BIN))/python -DARMWISE_COVERAGE=ON >/dev/null
	cmake --build build/gcov
	find build/gcov -name '*.gcda' -delete
	rm -rf $(MEASURED) && mkdir -p $(MEASURED) && cp -r src/armwise $(MEASURED)/
	rm -f $(MEASURED)/armwise/native/_*.so
	cmake --install build/gcov --prefix $(MEASURED) >/dev/null
	python -m pytest -q -p no:cacheprovider -p no:xdist $(KERNEL_TESTS)
	python tools/gcov-summary build/gcov
