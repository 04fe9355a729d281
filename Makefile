# make demo: install, convert a sample, show what came out.   make test: install, lint, types, tests.
# make fuzz: damaged dumps for ten minutes.   SO2DOCS_LONG=1 make test test-long: the long attacks.
PYTHON ?= $(if $(filter Windows_NT,$(OS)),python,python3)
VENV ?= .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

CORE := setup.py $(wildcard so2docs/parse/native/*)

.PHONY: demo quick test test-long test-spark test-browser test-datasets fuzz faults format docs bench bench-sources profile sanitize fuzz-core clean

demo: $(VENV)/installed
	@$(BIN)/so2docs convert samples/posts.xml build/questions.jsonl.gz --force
	@echo && echo "The first document:"
	@$(BIN)/python -c 'import json, so2docs; print(json.dumps(next(so2docs.read("build/questions.jsonl.gz")), indent=2, ensure_ascii=False))'

test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto -m "not long and not spark and not browser"

# While you work: the modules without files, then one way through each product, with few combinations.
QUICK := $(wildcard tests/test_[a-eg-z]*.py) tests/test_formulas.py tests/store tests/parse/test_rows.py \
  tests/parse/test_posts.py tests/options/test_table.py tests/api/test_convert.py \
  tests/conversions/test_samples.py tests/reader/test_frames.py tests/statistics tests/inspection \
  tests/api/test_tags.py tests/changes tests/metadata/test_card.py tests/sqlite/test_sqlite.py \
  tests/flat/test_flat_tables.py::test_every_value_in_every_format tests/flat/test_flat_tables.py::test_the_command \
  tests/output/test_products.py::test_every_product_has_a_case \
  tests/output/test_products.py::test_another_option_or_input_is_told \
  tests/test_folders.py::test_there_and_back tests/test_folders.py::test_one_database_of_a_folder
quick: $(VENV)/installed-test
	$(BIN)/pytest -n auto -m "not long and not spark and not browser" $(QUICK) \
	  -k "not jobs3 and not any_rows and not segments and not published and not python and not killed"

# What takes seconds a test: published dumps of megabytes, recipes over all of them, faults in dozens, memory, archives
# that unpack to gigabytes, the pages of the docs.
test-long: $(VENV)/installed-test
	$(BIN)/pytest -n auto -m "long and not spark and not browser"

# All tests on Spark. PySpark is 450 MB, which they install; where that or Java is not to be had, this
# says so and skips them.
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/)java
test-spark: $(VENV)/installed-test
	@if ! $(JAVA) -version 2>/dev/null; then echo "tests on Spark skipped: $(JAVA) does not run"; \
	elif ! $(MAKE) $(VENV)/installed-spark; then echo "tests on Spark skipped: PySpark cannot be installed"; \
	else $(BIN)/pytest -n 2 --dist loadgroup -m spark tests/spark; fi

# The offline reader in a real Chromium: Debian's, or where CHROMIUM says; skipped where there is none.
test-browser: $(VENV)/installed-test
	@if ! $(BIN)/python -m pip install --quiet --editable '.[browser]'; then \
	echo "tests in a browser skipped: Playwright cannot be installed"; \
	else $(BIN)/pytest -rs -m browser tests/serve/test_browser.py; fi

# The programs that people read outputs with, in an environment of their own: they are large.
READERS := build/readers

test-datasets:
	@if ! $(MAKE) $(READERS)/installed; then echo "tests of readers skipped: they cannot be installed"; \
	else SO2DOCS_READERS=1 $(READERS)/bin/pytest -m readers; fi

$(READERS)/installed: pyproject.toml $(CORE)
	$(PYTHON) -m venv $(READERS)
	$(READERS)/bin/python -m pip install --quiet --no-compile --editable '.[readers,test]'  # Most is never imported.
	$(READERS)/bin/python -m pip install --quiet --no-compile --no-deps beir mteb trl  # Without torch, which only training needs.
	@touch $@

# As long as SECONDS says, steered by coverage where atheris can be installed.
SECONDS ?= 600
fuzz: $(VENV)/installed-test
	-$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python fuzz/fuzz_convert.py --seconds $(SECONDS)
	$(BIN)/python fuzz/fuzz_seven_zip.py

# Conversions under faults that a seed decides, each run to its end, then commands one of whose system
# calls fails (on Linux, with gcc); a finding replays by its seed: make faults ROUNDS=1 SEED=...
# EVERY=diff lets each call of that command fail.
ROUNDS ?= 2000
SEED ?= 0
faults: $(VENV)/installed-test
ifdef EVERY
	$(BIN)/python faults --every "$(EVERY)"
else
	$(BIN)/python faults --rounds $(ROUNDS) --seed $(SEED)
	$(BIN)/python faults --calls --rounds $(ROUNDS) --seed $(SEED)
endif

format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The compiled core under the sanitizers: with SSE2 and without, and each request for memory refused;
# the C alone also with NEON, where Debian's gcc-aarch64-linux-gnu and qemu-user are.
# The sanitizer ends a process that loads the ciphers of py7zr, with which tests unpack the published dumps.
SANITIZED := build/sanitized
SANITIZERS := -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
INCLUDE = -I$(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')
SOURCES := $(wildcard so2docs/parse/native/*.c)
ARM := aarch64-linux-gnu

$(SANITIZED)/so2docs: $(VENV)/installed-test $(wildcard so2docs/*.py so2docs/*/*) $(SOURCES)
	rm -rf $@ && mkdir -p $(@D) && cp -r so2docs $@ && rm -f $@/parse/_core*.so

sanitize: $(SANITIZED)/so2docs
	PYTHONPATH=tests $(BIN)/python -m support.twins $(SANITIZED)/seeds
	for variant in "" -DSO2DOCS_PORTABLE; do \
	  gcc $(SANITIZERS) $$variant -DREPLAY fuzz/fuzz_canonical.c -o $(SANITIZED)/replay && \
	  $(SANITIZED)/replay $(SANITIZED)/seeds/* || exit 1; \
	done > $(SANITIZED)/replayed
	if command -v $(ARM)-gcc && command -v qemu-aarch64; then \
	  $(ARM)-gcc -O1 -static -DREPLAY fuzz/fuzz_canonical.c -o $(SANITIZED)/replay && \
	  qemu-aarch64 $(SANITIZED)/replay $(SANITIZED)/seeds/* >> $(SANITIZED)/replayed; \
	fi
	cat $(SANITIZED)/replayed
	test "$$(sort -u $(SANITIZED)/replayed | wc -l)" = 1
	PYTHONPATH=tests $(BIN)/python -m support.bzip2_samples $(SANITIZED)/bzip2-seeds
	for variant in "" -DSO2DOCS_PORTABLE; do \
	  gcc $(SANITIZERS) $$variant -DREPLAY fuzz/fuzz_bzip2.c -lbz2 -o $(SANITIZED)/replay && \
	  $(SANITIZED)/replay $(SANITIZED)/bzip2-seeds/* || exit 1; \
	done > $(SANITIZED)/replayed
	cat $(SANITIZED)/replayed
	test "$$(sort -u $(SANITIZED)/replayed | wc -l)" = 1
	for variant in "" -DSO2DOCS_PORTABLE; do \
	  gcc -shared -fPIC $(SANITIZERS) $$variant $(INCLUDE) $(SOURCES) -o $</parse/_core.abi3.so && \
	  LD_PRELOAD=$$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8 SO2DOCS_EXAMPLES=500 \
	    PYTHONPATH=$(SANITIZED) $(BIN)/pytest -p no:cacheprovider -k "not published_bodies and not published_dump" tests/parse/test_core.py tests/parse/test_join.py tests/parse/test_markdown.py tests/store/test_idmap.py tests/dump/test_bzip2.py || exit 1; \
	done

# Thirty minutes of coverage-guided fuzzing: the C alone, bzip2 next to libbz2, then both cores side by side.
FUZZ_SECONDS ?= 600
FUZZ := -dict=fuzz/fuzz_core.dict -timeout=20 -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1

fuzz-core: $(SANITIZED)/so2docs
	$(BIN)/python -m pip install --quiet atheris
	PYTHONPATH=tests $(BIN)/python -m support.twins $(SANITIZED)/corpus
	clang $(SANITIZERS) -fsanitize=fuzzer fuzz/fuzz_canonical.c -o $(SANITIZED)/fuzz
	$(SANITIZED)/fuzz $(FUZZ) -artifact_prefix=$(SANITIZED)/ $(SANITIZED)/corpus
	PYTHONPATH=tests $(BIN)/python -m support.bzip2_samples $(SANITIZED)/bzip2-corpus
	clang $(SANITIZERS) -fsanitize=fuzzer fuzz/fuzz_bzip2.c -lbz2 -o $(SANITIZED)/fuzz
	$(SANITIZED)/fuzz -timeout=20 -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=$(SANITIZED)/ $(SANITIZED)/bzip2-corpus
	clang -shared -fPIC $(SANITIZERS) -fsanitize=fuzzer-no-link $(INCLUDE) $(SOURCES) -o $</parse/_core.abi3.so
	LD_PRELOAD=$$($(BIN)/python -c 'import atheris; print(atheris.path())')/asan_with_fuzzer.so \
	  ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(SANITIZED):tests \
	  $(BIN)/python fuzz/fuzz_core.py $(FUZZ) -artifact_prefix=$(SANITIZED)/ $(SANITIZED)/corpus

docs: $(VENV)/installed-test
	$(BIN)/python -m cogapp -r -I tests so2docs/options/keywords.py so2docs/types.py
	$(BIN)/python -m cogapp -r -I tests docs/cli.md docs/api.md
	$(BIN)/python packaging/man.py man

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/pyvenv.cfg pyproject.toml $(CORE)
	rm -f so2docs/parse/_core*.so  # One that does not build any more would be tested as it was.
	$(BIN)/python -m pip install --quiet --editable .
	@mkdir -p build && touch $@

PYTHON_H = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
$(VENV)/installed-test: $(VENV)/pyvenv.cfg pyproject.toml $(CORE)
	rm -f so2docs/parse/_core*.so
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@if command -v gcc >/dev/null && [ -f "$(PYTHON_H)" ] && ! $(BIN)/python -c 'import so2docs.parse._core'; then \
	echo "the compiled core does not build: $(BIN)/python -m pip install --verbose --editable ."; exit 1; fi
	@mkdir -p build && touch $(VENV)/installed $@  # The core is built once for both.

# Measures against the floor and against others; SIZE=10GB for a larger dump. Takes minutes.
SIZE ?= 1GB
bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/run.py --size $(SIZE) --json build/bench.json

# The same dump from each kind of source, and 45 GB through a pipe (LARGE=8GB for less). Takes an hour, and 50 GB of disk.
LARGE ?= 45GB
bench-sources: $(VENV)/installed
	$(BIN)/python benchmarks/sources.py --size $(SIZE) --large $(LARGE)

# Where the time of one worker goes in each pass.
profile: $(VENV)/installed
	@mkdir -p build && test -f build/profile.xml || $(BIN)/python benchmarks/make_dump.py build/profile.xml --size 300MB
	$(BIN)/python benchmarks/profile_passes.py build/profile.xml

$(VENV)/installed-spark: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet --editable '.[spark,stores]'
	@touch $@

$(VENV)/installed-bench: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@

include packaging/release.mk

clean:
	rm -rf $(VENV) build *.egg-info
