"""One protocol, three array libraries."""
