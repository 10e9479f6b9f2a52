"""`schuss.sample`: a posterior in one call."""
