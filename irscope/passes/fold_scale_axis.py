"""Scale-axis folding: folds scales before and after contractions into their weights."""
from __future__ import annotations

from irscope.graph import Module
from irscope.passes.base import RelayPass
from irscope.passes.fold_scale import FoldScale
from irscope.passes.fold_scale_backward import Backward
from irscope.passes.fold_scale_forward import Forward
from irscope.source import UserError

DIRECTIONS = ("both", "backward", "forward")


class FoldScaleAxis(RelayPass):
    """Fold scales along the input or output channels of a convolution or dense layer into its weights, as TVM's FoldScaleAxis does.

        %0 = nn.conv2d(%x, %w);                          %0 = expand_dims(%s, axis=1, num_newaxis=3);
        %1 = nn.bias_add(%0, %b);                        %1 = multiply(%w, %0);
        %2 = nn.relu(%1);                         ->     %2 = nn.conv2d(%x, %1);
        multiply(%2, expand_dims(%s, axis=1, ...))       %3 = nn.bias_add(%2, multiply(%b, %s));
                                                         nn.relu(%3)

    ``direction`` is ``backward`` (a scale of the result, into the layer before), ``forward`` (a scale of the input, into the layer after),
    or both in this order. Scales move across additions, biases and residual additions; across a ReLU if every element is known and
    positive; and forward across an addition if no element is 0. Layouts may be packed (NCHW16c). Grouped convolutions accept scales of
    their result only, depthwise ones on both sides. A value with other users stays unchanged. HLO uses ``fold-scale``.
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
        wanted = [made() for direction, made in (("backward", Backward), ("forward", Forward)) if self.direction in ("both", direction)]
        for mutator in wanted:
            module = mutator.run(module)
        self.declined = [why for mutator in wanted for why in mutator.declined]
        return module
