# Fault injection. README.md describes it.
.PHONY: faults

# Run conversions under random faults, then commands with one failing system call (on Linux, with gcc).
# To repeat a finding, pass its seed: make faults ROUNDS=1 SEED=...
# EVERY=diff makes each system call of this command fail in turn.
ROUNDS ?= 2000
SEED ?= 0
faults: $(VENV)/installed-test
ifdef EVERY
	$(BIN)/python checks/faults --every "$(EVERY)"
else
	$(BIN)/python checks/faults --rounds $(ROUNDS) --seed $(SEED)
	$(BIN)/python checks/faults --calls --rounds $(ROUNDS) --seed $(SEED)
endif
