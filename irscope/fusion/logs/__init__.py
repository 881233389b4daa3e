"""What a compiler wrote about its own fusions: read, replayed on a graph, and told in the names of the user."""
