"""The options of a conversion: declarations and checks, without the code that acts on them."""
