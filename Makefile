# make demo: install, convert a sample, show the first document.   make test: install, lint, check types, test.
# make fuzz: convert damaged dumps for ten minutes.   SO2DOCS_LONG=1 make test test-long: test with more rounds.
# Python compiles the package and the tests once, also where this variable is set.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= $(if $(filter Windows_NT,$(OS)),python,python3)
VENV ?= .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

CORE := setup.py $(wildcard so2docs/parse/native/* so2docs/dump/native/* so2docs/extensions/markdown/native/*)

.PHONY: demo test test-long test-spark test-browser test-datasets format docs clean

demo: $(VENV)/installed
	@$(BIN)/so2docs convert samples/posts.xml build/questions.jsonl.gz --force
	@echo && echo "The first document:"
	@$(BIN)/python -c 'import json, so2docs; print(json.dumps(next(so2docs.read("build/questions.jsonl.gz")), indent=2, ensure_ascii=False))'

test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(PYTEST) -m "not long and not $(ELSEWHERE)" --durations 15 --durations-min 2 \
	  && wait $$types  # One process checks types while the tests are collected.

# Each process takes neighbouring tests, which share fixtures, and then those that are left.
PYTEST = $(BIN)/pytest -n auto --dist worksteal
# Tests with targets of their own, below.
ELSEWHERE := (spark or browser or readers)

# Tests that take more than a second of CPU each: large published dumps, faults, memory, decompression bombs,
# the pages of the docs.
test-long: $(VENV)/installed-test
	$(PYTEST) -m "long and not $(ELSEWHERE)"

# Tests on Spark; skipped with a message if PySpark (450 MB) or Java is missing.
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/)java
test-spark: $(VENV)/installed-test
	@if ! $(JAVA) -version 2>/dev/null; then echo "tests on Spark skipped: $(JAVA) does not run"; \
	elif ! $(MAKE) $(VENV)/installed-checks; then echo "tests on Spark skipped: PySpark cannot be installed"; \
	else $(BIN)/pytest -n 2 --dist loadgroup -m spark tests/extensions/spark; fi

# The offline reader in Chromium (Debian's, or the path in CHROMIUM); skipped if there is none.
test-browser: $(VENV)/installed-test
	@if ! $(MAKE) $(VENV)/installed-checks; then echo "tests in a browser skipped: Playwright cannot be installed"; \
	else $(BIN)/pytest -rs -m browser tests/extensions/serve/test_browser.py; fi

# Tests of outputs in the programs that read them.
test-datasets: $(VENV)/installed-test
	@if ! $(MAKE) $(VENV)/installed-readers; then echo "tests of readers skipped: they cannot be installed"; \
	else SO2DOCS_READERS=1 $(BIN)/pytest -m readers tests/documentation tests/extensions; fi

format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/installed-test
	$(BIN)/python -m cogapp -r -I packaging so2docs/__init__.py so2docs/plugin.py so2docs/options/keywords.py so2docs/extensions/keywords.py
	$(BIN)/python -m cogapp -r -I packaging docs/cli.md docs/api.md docs/options.md

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

# Most modules are never imported, so they are not compiled.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile

$(VENV)/installed: $(VENV)/pyvenv.cfg pyproject.toml $(CORE)
	rm -f so2docs/parse/_core*.so  # If the build fails, the previous core must not be tested.
	$(INSTALL) --editable .
	@mkdir -p build && touch $@

PYTHON_H = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
$(VENV)/installed-test: $(VENV)/pyvenv.cfg pyproject.toml $(CORE)
	rm -f so2docs/parse/_core*.so
	$(INSTALL) --editable '.[test]'
	@if command -v gcc >/dev/null && [ -f "$(PYTHON_H)" ] && ! $(BIN)/python -c 'import so2docs.parse._core'; then \
	echo "the compiled core does not build: $(BIN)/python -m pip install --verbose --editable ."; exit 1; fi
	@mkdir -p build && touch $(VENV)/installed $@  # Both targets share one build of the core.

# Extras are installed without building the package again.
LIST_EXTRAS := $(BIN)/python -c 'import sys, tomllib; \
  extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
  print(*(line for name in sys.argv[1:] for line in extras[name]), sep="\n")'

$(VENV)/installed-checks: $(VENV)/installed-test
	$(LIST_EXTRAS) spark checks > build/checks.txt
	$(INSTALL) --requirement build/checks.txt
	@touch $@

$(VENV)/installed-readers: $(VENV)/installed-checks
	$(INSTALL) --no-deps beir mteb trl  # Without torch, which is only for training.
	@# RavenDB's server 4.1, .NET Core 2, and a wheel with OpenSSL 1.1, which that needs.
	$(INSTALL) --no-deps 'pyravendb-embedded==4.1.1.4' 'dotnetcore2<3' distro 'psycopg2-binary==2.9.6' \
	  || echo "the tests with RavenDB are skipped: its server cannot be installed"
	@touch $@

include checks/faults/faults.mk checks/fuzz/fuzz.mk checks/benchmarks/benchmarks.mk packaging/release.mk

clean:
	rm -rf $(VENV) build *.egg-info
