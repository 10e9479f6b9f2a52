"""Draws, verdicts and reports."""
