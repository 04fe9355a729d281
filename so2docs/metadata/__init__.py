"""The published contract: what a conversion writes, as JSON Schema."""
