"""Training neural energies."""
