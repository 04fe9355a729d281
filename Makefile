# make demo: install, convert a sample, show what came out.   make test: install, lint, types, tests.
# make fuzz: damaged dumps for ten minutes.   SO2DOCS_LONG=1 make test: the long attacks.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test fuzz format clean

demo: $(VENV)/installed
	@$(BIN)/so2docs convert samples/posts.xml build/questions.jsonl.gz --force
	@echo && echo "The first document:"
	@$(BIN)/python -c 'import json, so2docs; print(json.dumps(next(so2docs.read("build/questions.jsonl.gz")), indent=2, ensure_ascii=False))'

test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

# As long as SECONDS says, steered by coverage where atheris can be installed.
SECONDS ?= 600
fuzz: $(VENV)/installed-test
	-$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python fuzz/fuzz_convert.py --seconds $(SECONDS)

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

clean:
	rm -rf $(VENV) build *.egg-info
