# make demo: install, convert a sample, show the first document.   make test: install, lint, check types, test.
# make fuzz: convert damaged dumps for ten minutes.   SO2DOCS_LONG=1 make test test-long: test with more rounds.
PYTHON ?= $(if $(filter Windows_NT,$(OS)),python,python3)
VENV ?= .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

CORE := setup.py $(wildcard so2docs/parse/native/*)

.PHONY: demo test test-long test-spark test-browser test-datasets fuzz faults format docs bench bench-recipes bench-sources profile sanitize fuzz-core clean

demo: $(VENV)/installed
	@$(BIN)/so2docs convert samples/posts.xml build/questions.jsonl.gz --force
	@echo && echo "The first document:"
	@$(BIN)/python -c 'import json, so2docs; print(json.dumps(next(so2docs.read("build/questions.jsonl.gz")), indent=2, ensure_ascii=False))'

test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto -m "not long and not spark and not browser"

# Tests that take more than a second of CPU each: large published dumps, faults, memory, decompression bombs,
# the pages of the docs.
test-long: $(VENV)/installed-test
	$(BIN)/pytest -n auto -m "long and not spark and not browser"

# Tests on Spark. They install PySpark (450 MB), and are skipped with a message if PySpark or Java is missing.
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/)java
test-spark: $(VENV)/installed-test
	@if ! $(JAVA) -version 2>/dev/null; then echo "tests on Spark skipped: $(JAVA) does not run"; \
	elif ! $(MAKE) $(VENV)/installed-spark; then echo "tests on Spark skipped: PySpark cannot be installed"; \
	else $(BIN)/pytest -n 2 --dist loadgroup -m spark tests/extensions/spark; fi

# The offline reader in Chromium (Debian's, or the path in CHROMIUM); skipped if there is none.
test-browser: $(VENV)/installed-test
	@if ! $(BIN)/python -m pip install --quiet --editable '.[browser]'; then \
	echo "tests in a browser skipped: Playwright cannot be installed"; \
	else $(BIN)/pytest -rs -m browser tests/extensions/serve/test_browser.py; fi

# Tests of outputs in the programs that read them. These are large, so they get their own environment.
READERS := build/readers

test-datasets:
	@if ! $(MAKE) $(READERS)/installed; then echo "tests of readers skipped: they cannot be installed"; \
	else SO2DOCS_READERS=1 $(READERS)/bin/pytest -m readers; fi

$(READERS)/installed: pyproject.toml $(CORE)
	$(PYTHON) -m venv $(READERS)
	$(READERS)/bin/python -m pip install --quiet --no-compile --editable '.[readers,test]'  # Most modules are never imported.
	$(READERS)/bin/python -m pip install --quiet --no-compile --no-deps beir mteb trl  # Without torch, which is only for training.
	@# RavenDB's server 4.1, .NET Core 2, and a wheel with OpenSSL 1.1, which that needs.
	$(READERS)/bin/python -m pip install --quiet --no-compile --no-deps 'pyravendb-embedded==4.1.1.4' 'dotnetcore2<3' distro \
	  'psycopg2-binary==2.9.6' || echo "the tests with RavenDB are skipped: its server cannot be installed"
	@touch $@

# Fuzz the conversion for SECONDS, guided by coverage if atheris can be installed.
SECONDS ?= 600
fuzz: $(VENV)/installed-test
	-$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python fuzz/fuzz_convert.py --seconds $(SECONDS)
	$(BIN)/python fuzz/fuzz_seven_zip.py

# Run conversions under random faults, then commands with one failing system call (on Linux, with gcc).
# To repeat a finding, pass its seed: make faults ROUNDS=1 SEED=...
# EVERY=diff makes each system call of this command fail in turn.
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

# Test the compiled core under the sanitizers, with SSE2 and without, also with failing allocations.
# The C code alone is also tested with NEON, if Debian's gcc-aarch64-linux-gnu and qemu-user are installed.
# Tests of published dumps are left out: they unpack the dumps with py7zr, whose ciphers the sanitizer rejects.
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
	    PYTHONPATH=$(SANITIZED) $(BIN)/pytest -p no:cacheprovider -k "not published_bodies and not published_dump" tests/parse/test_core.py tests/parse/test_join.py tests/extensions/markdown/test_markdown.py tests/store/test_idmap.py tests/dump/test_bzip2.py tests/extensions/parquet/test_row_group.py || exit 1; \
	done

# Fuzz for thirty minutes, guided by coverage: the C code alone, bzip2 against libbz2, both cores side by side.
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
	$(BIN)/python -m cogapp -r -I tests so2docs/__init__.py so2docs/options/keywords.py so2docs/types.py
	$(BIN)/python -m cogapp -r -I tests docs/cli.md docs/api.md
	$(BIN)/python packaging/man.py man

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/pyvenv.cfg pyproject.toml $(CORE)
	rm -f so2docs/parse/_core*.so  # If the build fails, the previous core must not be tested.
	$(BIN)/python -m pip install --quiet --editable .
	@mkdir -p build && touch $@

PYTHON_H = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
$(VENV)/installed-test: $(VENV)/pyvenv.cfg pyproject.toml $(CORE)
	rm -f so2docs/parse/_core*.so
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@if command -v gcc >/dev/null && [ -f "$(PYTHON_H)" ] && ! $(BIN)/python -c 'import so2docs.parse._core'; then \
	echo "the compiled core does not build: $(BIN)/python -m pip install --verbose --editable ."; exit 1; fi
	@mkdir -p build && touch $(VENV)/installed $@  # Both targets share one build of the core.

# Compare the speed with the floor and with other programs; takes minutes. SIZE=10GB makes a larger dump.
SIZE ?= 1GB
bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/run.py --size $(SIZE) --json build/bench.json

# Convert the same dump from each kind of source, and 45 GB from a pipe (LARGE=8GB for less).
# Takes an hour and 50 GB of disk space.
LARGE ?= 45GB
bench-sources: $(VENV)/installed
	$(BIN)/python benchmarks/sources.py --size $(SIZE) --large $(LARGE)

# Profile one worker in each pass.
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
