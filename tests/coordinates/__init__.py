"""Changes of variables, one file for each."""
