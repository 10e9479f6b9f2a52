"""log Z."""
