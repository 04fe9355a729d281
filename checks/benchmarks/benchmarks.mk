# Measurements. README.md describes them.
TOUCH = $(BIN)/python checks/benchmarks/measure.py
.PHONY: bench bench-recipes bench-sources profile

# Compare the speed with the floor and with other programs; takes minutes. SIZE=10GB makes a larger dump.
SIZE ?= 1GB
bench: $(VENV)/installed-bench
	$(TOUCH)
	$(BIN)/python checks/benchmarks/run.py --size $(SIZE) --json build/bench.json

# Measure the CPU of recipes, Parquet and a database, relative to documents.
bench-recipes: $(VENV)/installed-test
	$(TOUCH)
	$(BIN)/python checks/benchmarks/recipes.py --size 100MB

# Convert the same dump from each kind of source, and 45 GB from a pipe (LARGE=8GB for less).
# Takes an hour and 50 GB of disk space.
LARGE ?= 45GB
bench-sources: $(VENV)/installed
	$(TOUCH)
	$(BIN)/python checks/benchmarks/sources.py --size $(SIZE) --large $(LARGE)

# Profile one worker in each pass.
profile: $(VENV)/installed
	@mkdir -p build && test -f build/profile.xml || $(BIN)/python checks/benchmarks/make_dump.py build/profile.xml --size 300MB
	$(BIN)/python checks/benchmarks/profile_passes.py build/profile.xml

$(VENV)/installed-bench: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[checks]'
	@touch $@
