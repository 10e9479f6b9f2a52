"""Models from other libraries."""
