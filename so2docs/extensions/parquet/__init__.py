"""Parquet, Arrow and data frames."""
