# Fuzzers, sanitizers. README.md describes them.
.PHONY: fuzz sanitize fuzz-core

# Fuzz the conversion for SECONDS, guided by coverage if atheris can be installed.
SECONDS ?= 600
fuzz: $(VENV)/installed-test
	-$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python checks/fuzz/fuzz_convert.py --seconds $(SECONDS)
	$(BIN)/python checks/fuzz/fuzz_seven_zip.py

# Test the compiled core under the sanitizers, with SSE2 and without, also with failing allocations.
# The C code alone is also tested with NEON, if Debian's gcc-aarch64-linux-gnu and qemu-user are installed.
# Tests of published dumps are left out: they unpack the dumps with py7zr, whose ciphers the sanitizer rejects.
SANITIZED := build/sanitized
SANITIZERS := -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
INCLUDE = -I$(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')
SOURCES := $(wildcard so2docs/parse/native/*.c so2docs/dump/native/*.c so2docs/extensions/markdown/native/*.c)
ARM := aarch64-linux-gnu

$(SANITIZED)/so2docs: $(VENV)/installed-test $(wildcard so2docs/*.py so2docs/*/* so2docs/*/*/*) $(SOURCES)
	rm -rf $@ && mkdir -p $(@D) && cp -r so2docs $@ && rm -f $@/parse/_core*.so

sanitize: $(SANITIZED)/so2docs
	PYTHONPATH=tests $(BIN)/python -m support.twins $(SANITIZED)/seeds
	for variant in "" -DSO2DOCS_PORTABLE; do \
	  gcc $(SANITIZERS) $$variant -DREPLAY checks/fuzz/fuzz_canonical.c -o $(SANITIZED)/replay && \
	  $(SANITIZED)/replay $(SANITIZED)/seeds/* || exit 1; \
	done > $(SANITIZED)/replayed
	if command -v $(ARM)-gcc && command -v qemu-aarch64; then \
	  $(ARM)-gcc -O1 -static -DREPLAY checks/fuzz/fuzz_canonical.c -o $(SANITIZED)/replay && \
	  qemu-aarch64 $(SANITIZED)/replay $(SANITIZED)/seeds/* >> $(SANITIZED)/replayed; \
	fi
	cat $(SANITIZED)/replayed
	test "$$(sort -u $(SANITIZED)/replayed | wc -l)" = 1
	for format in bzip2:bz2 lzma2:lzma; do \
	  name=$${format%:*} && seeds=$(SANITIZED)/$$name-seeds && \
	  PYTHONPATH=tests $(BIN)/python -m support.$${name}_samples $$seeds && \
	  for variant in "" -DSO2DOCS_PORTABLE; do \
	    gcc $(SANITIZERS) $$variant -DREPLAY checks/fuzz/fuzz_$$name.c -l$${format#*:} -o $(SANITIZED)/replay && \
	    $(SANITIZED)/replay $$seeds/* || exit 1; \
	  done > $(SANITIZED)/replayed && \
	  cat $(SANITIZED)/replayed && \
	  test "$$(sort -u $(SANITIZED)/replayed | wc -l)" = 1 || exit 1; \
	done
	for variant in "" -DSO2DOCS_PORTABLE; do \
	  gcc -shared -fPIC $(SANITIZERS) $$variant $(INCLUDE) $(SOURCES) -o $</parse/_core.abi3.so && \
	  LD_PRELOAD=$$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8 SO2DOCS_EXAMPLES=500 \
	    PYTHONPATH=$(SANITIZED) $(BIN)/pytest -p no:cacheprovider -k "not published_bodies and not published_dump" tests/parse/test_core.py tests/parse/test_join.py tests/extensions/markdown/test_markdown.py tests/store/test_idmap.py tests/dump/test_bzip2.py tests/dump/test_lzma2.py || exit 1; \
	done

# Fuzz for forty minutes, guided by coverage: the C code alone, bzip2 and LZMA2 against libraries, both cores.
FUZZ_SECONDS ?= 600
FUZZ := -dict=checks/fuzz/fuzz_core.dict -timeout=20 -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1

fuzz-core: $(SANITIZED)/so2docs
	$(BIN)/python -m pip install --quiet atheris
	PYTHONPATH=tests $(BIN)/python -m support.twins $(SANITIZED)/corpus
	clang $(SANITIZERS) -fsanitize=fuzzer checks/fuzz/fuzz_canonical.c -o $(SANITIZED)/fuzz
	$(SANITIZED)/fuzz $(FUZZ) -artifact_prefix=$(SANITIZED)/ $(SANITIZED)/corpus
	for format in bzip2:bz2 lzma2:lzma; do \
	  name=$${format%:*} && corpus=$(SANITIZED)/$$name-corpus && \
	  PYTHONPATH=tests $(BIN)/python -m support.$${name}_samples $$corpus && \
	  clang $(SANITIZERS) -fsanitize=fuzzer checks/fuzz/fuzz_$$name.c -l$${format#*:} -o $(SANITIZED)/fuzz && \
	  $(SANITIZED)/fuzz -timeout=20 -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=$(SANITIZED)/ $$corpus || exit 1; \
	done
	clang -shared -fPIC $(SANITIZERS) -fsanitize=fuzzer-no-link $(INCLUDE) $(SOURCES) -o $</parse/_core.abi3.so
	LD_PRELOAD=$$($(BIN)/python -c 'import atheris; print(atheris.path())')/asan_with_fuzzer.so \
	  ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(SANITIZED):tests \
	  $(BIN)/python checks/fuzz/fuzz_core.py $(FUZZ) -artifact_prefix=$(SANITIZED)/ $(SANITIZED)/corpus
