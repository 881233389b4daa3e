"""Passes: a graph in, a new graph with the same meaning out. One file each; ``--passes`` and ``irscope list passes`` read this table."""
from __future__ import annotations

import re
from importlib import import_module
from inspect import signature
from typing import Any

from irscope.passes.base import Pass
from irscope.source import UserError, did_you_mean

PASSES: dict[str, str] = {
    "infer-types": "irscope.passes.infer_types:InferTypes",
    "simplify-algebra": "irscope.passes.simplify_algebra:SimplifyAlgebra",
    "share-equal": "irscope.passes.share_equal:ShareEqual",
    "fold-scale": "irscope.passes.fold_scale:FoldScale",
    "fold-scale-axis": "irscope.passes.fold_scale_axis:FoldScaleAxis",
    "remove-dead": "irscope.passes.remove_dead:RemoveDead",
    "fold-batch-norm": "irscope.passes.fold_batch_norm:FoldBatchNorm",
    "simplify-inference": "irscope.passes.simplify_inference:SimplifyInference",
    "fast-math": "irscope.passes.fast_math:FastMath",
    "dynamic-to-static": "irscope.passes.dynamic_to_static:DynamicToStatic",
    "canonicalize-ops": "irscope.passes.canonicalize_ops:CanonicalizeOps",
    "canonicalize-cast": "irscope.passes.canonicalize_cast:CanonicalizeCast",
    "move-cast": "irscope.passes.move_cast:MoveCast",
    "cancel-transposes": "irscope.passes.cancel_transposes:CancelTransposes",
    "fold-constants": "irscope.passes.fold_constants:FoldConstants",
    "combine-parallel": "irscope.passes.combine_parallel:CombineParallel",
    "hoist-loop-invariant": "irscope.passes.hoist_loop_invariant:HoistLoopInvariant",
    "to-mixed-precision": "irscope.passes.to_mixed_precision:ToMixedPrecision",
    "convert-layout": "irscope.passes.convert_layout:ConvertLayout",
    "fuse-conv-relu": "irscope.passes.fuse_conv_relu:FuseConvRelu",
    "fuse-patterns": "irscope.passes.fuse_patterns:FusePatterns",
    "merge-composite": "irscope.passes.merge_composite:MergeComposite",
    "fuse-ops": "irscope.fusion.fuse_ops:FuseOps",
}
"""Name of a pass: where it stands."""


OPTIONS = re.compile(r"([\w-]+)\s*(?:\{(.*)\})?$")


def pass_named(text: str) -> Pass:
    """A pass by name, with its options in braces: ``fuse-ops{max-depth=10}``; irscope's own, or one of an installed package.

    Raises UserError for an unknown one.
    """
    found = OPTIONS.match(text.strip())
    name, options = (found[1], found[2] or "") if found else (text, "")
    if name in PASSES:
        module, _, attribute = PASSES[name].partition(":")
        return made(getattr(import_module(module), attribute), options)
    from irscope.passes.own import imported, installed

    others = installed()
    if name in others:
        return made(imported(others[name]), options)
    known = [*PASSES, *others]
    raise UserError(f"there is no pass {name!r}", did_you_mean(name, known) or f"the passes are: {', '.join(known)}")


def made(kind: type[Pass], options: str) -> Pass:
    """A pass with options such as ``max-depth=10,link-params``; they are the keyword parameters of its ``__init__``."""
    given: dict[str, Any] = {}
    known = options_of(kind)
    for part in split_outside(options):
        key, _, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if key not in known:
            shown = ", ".join(known).replace("_", "-")
            raise UserError(f"{kind.name} has no option {key!r}", did_you_mean(key, known) or f"it has {shown or 'none'}")
        given[key] = _value(kind.name, key, value.strip() or "true", known[key])
    return kind(**given)


def options_of(kind: type[Pass]) -> dict[str, Any]:
    """The options of a pass and their defaults: numbers, words and switches."""
    parameters = signature(kind).parameters.values()
    return {p.name: p.default for p in parameters if isinstance(p.default, bool | int | float | str)}


def split_outside(text: str, mark: str = ",") -> list[str]:
    """The parts of a list with commas, or another mark; what stands in brackets or quotes is not parted."""
    parts, begin, depth, quote = [], 0, 0, ""
    for at, letter in enumerate(text + mark):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == mark and depth <= 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
        else:
            depth += (letter in "([{") - (letter in ")]}")
    return [part for part in (*parts, text[begin:].strip()) if part]


def _value(owner: str, key: str, text: str, default: Any) -> Any:
    """An option's text as what its default is."""
    if isinstance(default, bool):
        if text.lower() not in ("true", "false", "yes", "no", "1", "0"):
            raise UserError(f"{owner}: {key} is true or false, not {text!r}")
        return text.lower() in ("true", "yes", "1")
    try:
        return type(default)(text)
    except ValueError:
        raise UserError(f"{owner}: {key} must be a {type(default).__name__}, not {text!r}") from None


__all__ = ["PASSES", "Pass", "made", "options_of", "pass_named", "split_outside"]
