"""Decisions between compiled chunks: where to start, the metric, the step, the length."""
