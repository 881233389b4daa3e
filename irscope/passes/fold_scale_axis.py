"""Scales before and behind contractions are part of their weights."""
from __future__ import annotations

from irscope.graph import Module
from irscope.passes.base import RelayPass
from irscope.passes.fold_scale import FoldScale
from irscope.passes.fold_scale_backward import Backward
from irscope.passes.fold_scale_forward import Forward
from irscope.source import UserError

DIRECTIONS = ("both", "backward", "forward")


class FoldScaleAxis(RelayPass):
    """Multiply weights by the scales along the channels that a convolution or dense layer reads or makes, as TVM's FoldScaleAxis.

        %0 = nn.conv2d(%x, %w);                          %0 = expand_dims(%s, axis=1, num_newaxis=3);
        %1 = nn.bias_add(%0, %b);                        %1 = multiply(%w, %0);
        %2 = nn.relu(%1);                         ->     %2 = nn.conv2d(%x, %1);
        multiply(%2, expand_dims(%s, axis=1, ...))       %3 = nn.bias_add(%2, multiply(%b, %s));
                                                         nn.relu(%3)

    ``direction`` is ``backward`` (scales behind, into what makes the channels), ``forward`` (scales before, into what reads them), or both
    in this order. Scales pass sums, biases and residual sums; they pass a rectifier where every number of the scale is known and positive,
    and forward past a sum where none is 0. Layouts may be packed (NCHW16c). Grouped convolutions take scales from behind only, depthwise
    ones from both sides. A value that others read too stays as it is. Graphs of HLO's operators go through ``fold-scale``.
    """

    name = "fold-scale-axis"
    opt_level = 3

    def __init__(self, direction: str = "both") -> None:
        if direction not in DIRECTIONS:
            raise UserError(f"fold-scale-axis knows no direction {direction!r}", f"it knows {', '.join(DIRECTIONS)}")
        self.direction = direction

    def run(self, module: Module) -> Module:
        return FoldScale().run(module) if module.is_primitive else super().run(module)

    def rewrite(self, module: Module) -> Module:
        declined: list[str] = []
        for direction, mutator in (("backward", Backward()), ("forward", Forward())):
            if self.direction in ("both", direction):
                module = self.mutated(mutator, module)
                declined += mutator.declined
        self.declined = declined
        return module
