"""Recipes: from a document to the records of a data set. Pure functions, a file a recipe."""

from so2docs.recipes.finding import RECIPES
from so2docs.recipes.recipe import Recipe

__all__ = ["RECIPES", "Recipe"]
