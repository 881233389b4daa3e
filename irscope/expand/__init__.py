"""From the graph as written to the primitive graph: calls inlined, sugar and composites replaced, inputs and weights bound."""
from irscope.expand.bind import bind_constants, bind_inputs, bind_types
from irscope.expand.expand import expand

__all__ = ["bind_constants", "bind_inputs", "bind_types", "expand"]
