"""Read the rows of a table: one loop over its chunks, and visitors that process the rows."""
