"""Decisions that are taken on the host, between two calls of a compiled loop."""
