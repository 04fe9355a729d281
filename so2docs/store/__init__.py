"""Files between the passes: blocks, users, maps of ids."""
