"""The run as a whole, and each of its parts."""
