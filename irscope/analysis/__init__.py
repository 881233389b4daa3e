"""Facts about a graph: what it costs, what lives when, what depends on what, what repeats."""
