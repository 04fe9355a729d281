"""The options of a conversion: literals and checks, without the code that acts on them."""
