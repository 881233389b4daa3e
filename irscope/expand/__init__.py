"""Expansion of the graph as written to the primitive graph: inlines calls, replaces sugar and composites, binds inputs and weights."""
from irscope.expand.bind import bind_constants, bind_inputs, bind_types
from irscope.expand.expand import expand

__all__ = ["bind_constants", "bind_inputs", "bind_types", "expand"]
