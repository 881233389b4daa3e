"""Facts about a graph: costs, lifetimes, dependences, repetitions."""
