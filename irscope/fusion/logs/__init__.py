"""A compiler's log of its own fusion: read, replayed on a graph, and reported in the user's names."""
