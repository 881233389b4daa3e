"""FX's own structural operators. All others are torch's."""
from __future__ import annotations

from irscope.graph import Effect, Op
from irscope.ops.registry import declare

GET_ATTR = declare(Op("fx::get_attr", "torchscript", "A subgraph or a tensor of the graph module.", effect=Effect.CONTROL, known=False,
                      work="constant"))
