# make demo: install, convert a sample, show what came out.   make test: install, lint, types, tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-spark format clean

demo: $(VENV)/installed
	@$(BIN)/so2docs convert samples/posts.xml build/questions.jsonl.gz --force
	@echo && echo "The first document:"
	@$(BIN)/python -c 'import json, so2docs; print(json.dumps(next(so2docs.read("build/questions.jsonl.gz")), indent=2, ensure_ascii=False))'

# With SPARK=1 and Java, the tests on Spark run too: PySpark is 450 MB to download and to unpack.
test: $(VENV)/installed-test $(if $(and $(SPARK),$(shell command -v java)),$(VENV)/installed-spark)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

# The tests on Spark, with those that start clusters, kill executors, and run the command.
test-spark: $(VENV)/installed-spark
	SO2DOCS_SPARK_SLOW=1 $(BIN)/pytest tests/test_spark.py

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

$(VENV)/installed-spark: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet --editable '.[spark]'
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info
