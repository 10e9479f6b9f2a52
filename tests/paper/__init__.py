"""Tests of the rebuilt tables and figures."""
