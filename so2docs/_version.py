"""The version; the build reads this module without importing the package."""

__version__ = "0.1.0"
