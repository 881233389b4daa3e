"""Passes: a graph in, a new graph with the same meaning out. One file each; ``--passes`` and ``irscope list passes`` read this table."""
from __future__ import annotations

from importlib import import_module

from irscope.passes.base import Pass
from irscope.source import UserError, did_you_mean

PASSES: dict[str, str] = {
    "simplify-algebra": "irscope.passes.simplify_algebra:SimplifyAlgebra",
    "share-equal": "irscope.passes.share_equal:ShareEqual",
    "fold-scale": "irscope.passes.fold_scale:FoldScale",
    "remove-dead": "irscope.passes.remove_dead:RemoveDead",
    "fuse-conv-relu": "irscope.passes.fuse_conv_relu:FuseConvRelu",
    "fuse-ops": "irscope.fusion.fuse_ops:FuseOps",
}
"""Name of a pass: where it stands."""


def pass_named(name: str) -> Pass:
    """A pass by name. Raises UserError for an unknown one."""
    if name not in PASSES:
        raise UserError(f"there is no pass {name!r}", did_you_mean(name, PASSES) or f"the passes are: {', '.join(PASSES)}")
    module, _, attribute = PASSES[name].partition(":")
    made: Pass = getattr(import_module(module), attribute)()
    return made


__all__ = ["PASSES", "Pass", "pass_named"]
