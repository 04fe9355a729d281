"""Formats for the bulk importers of databases: Elasticsearch, MongoDB and RavenDB."""
