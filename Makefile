# make demo: install, convert a sample, show what came out.   make test: install, lint, types, tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test format bench profile clean

demo: $(VENV)/installed
	@$(BIN)/so2docs convert samples/posts.xml build/questions.jsonl.gz --force
	@echo && echo "The first document:"
	@$(BIN)/python -c 'import json, so2docs; print(json.dumps(next(so2docs.read("build/questions.jsonl.gz")), indent=2, ensure_ascii=False))'

test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@mkdir -p build && touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

# Measures against the floor and against others; SIZE=10GB for a larger dump. Takes minutes.
SIZE ?= 1GB
bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/run.py --size $(SIZE) --json build/bench.json

# Where the time of one worker goes in each pass.
profile: $(VENV)/installed
	@mkdir -p build && test -f build/profile.xml || $(BIN)/python benchmarks/make_dump.py build/profile.xml --size 300MB
	$(BIN)/python benchmarks/profile_passes.py build/profile.xml

$(VENV)/installed-bench: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info
