"""Metadata of outputs: JSON Schemas of documents, manifests and cards."""
