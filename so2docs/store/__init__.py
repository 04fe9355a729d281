"""Files on disk between the passes: blocks, their index, maps from id to id."""
