"""Passes against graphs that were recorded before and after TVM's own: how many come out the same.

    python benchmarks/pass_pairs.py FOLDER [--only 'simplify_expr__*'] [--show]

FOLDER holds ``manifest.json`` (for each file the TVM passes that were run) and ``pairs/NAME.before.relay``, ``pairs/NAME.after.relay``.
Each ``before`` goes through the passes that stand for TVM's here, and is compared with ``after`` by what the graphs compute, whatever the
names and the order of lines. What does not count: how constants are numbered whose values the text leaves out (they are drawn for the run),
how often an equal constant is written, parameters that nobody reads (many tests are of expressions without a function), types of weights
that a text leaves open, and defaults that are written out.
"""
from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from irscope.diff.identity import Identity

import irscope
from irscope.formats.relay import print_module
from irscope.formats.relay.operators import declared
from irscope.graph import UNKNOWN, Graph, Module, Node, TensorType
from irscope.ops.attrs import Literal
from irscope.passes.manager import run_passes
from irscope.passes.registry import pass_named, split_outside
from irscope.source import UserError

Arguments = Sequence[str]


def branches(arguments: Arguments) -> str:
    """``CombineParallel*``: from how many layers on, and whether dense layers are stacked."""
    given = dict(a.strip("'").split("=") for a in arguments)
    return f"combine-parallel{{min-branches={given['min_num_branches']},to-batch={given.get('to_batch', 'True')}}}"


def layouts(arguments: Arguments) -> str:
    """``ConvertLayout``: the layouts of data and weights, operator by operator. TVM's pass runs CanonicalizeOps first."""
    wanted = ast.literal_eval(arguments[0])
    return "canonicalize-ops,convert-layout{layout=" + "+".join(":".join((name, *given)) for name, given in wanted.items()) + "}"


PASSES: dict[str, Callable[[Arguments], str]] = {
    "BackwardFoldScaleAxis": lambda a: "fold-scale-axis{direction=backward}",
    "CombineParallelBatchMatmul": branches,
    "CombineParallelConv2D": branches,
    "CombineParallelDense": branches,
    "ConvertLayout": layouts,
    "EliminateCommonSubexpr": lambda a: "share-equal{skip=add}" if a else "share-equal",  # the only callback there is skips additions
    "FoldConstant": lambda a: "fold-constants{qnn}" if "fold_qnn=True" in str(a) else "fold-constants",
    "FoldExplicitPadding": lambda a: "simplify-algebra",
    "ForwardFoldScaleAxis": lambda a: "fold-scale-axis{direction=forward}",
    "FuseOps": lambda a: "fuse-ops",
    "SimplifyExpr": lambda a: "simplify-algebra{inexact}",
    "ToMixedPrecision": lambda a: "to-mixed-precision{dtype=" + str(a[0]).strip("'") + "}",
}
"""TVM's passes by irscope's; a pass that is not here has none."""
NOTHING = frozenset(("AlterOpLayout", "InferType"))
"""What changes nothing without a target, or is part of reading here."""
CONFIGURED = {
    "fuse_ops__fuse_max_2": "fuse-ops{max-depth=10}",
    "fuse_ops__fuse_max_diamond": "fuse-ops{max-depth=11}",
    "fuse_ops__fuse_take_link_params_True_": "fuse-ops{link-params}",
    **{f"convert_op_layout__{name}": "canonicalize-ops,convert-layout{layout=" + wanted + "}" for name, wanted in {
        "qnn_binary_no_convert_layout": "NCHW",
        "deformable_conv_bias_pool_uses_specified_convert_layout": "nn.deformable_conv2d:NCHW+nn.max_pool2d:NHWC",
        "deformable_conv_bias_pool_uses_specified_convert_layout_2": "nn.deformable_conv2d:NHWC+nn.max_pool2d:NCHW",
        "resnet_pool_uses_specified_convert_layout": "nn.conv2d:NCHW+nn.global_max_pool2d:NHWC",
        "qnn_conv_avgpool_2d_convert_layout": "qnn.conv2d:NCHW+qnn.avg_pool2d:NCHW",
        "conv_roi_pool_convert_layout": "nn.conv2d:NHWC:HWIO+vision.roi_pool:NHWC"}.items()},
    **{f"merge_composite__{name}": "merge-composite{patterns=" + patterns + "}" for name, patterns in {
        "reuse_call_merge": "add_add_add: add(add(x, add(x, y)), add(x, y))",
        "optional_pattern": "layer: nn.relu?(nn.bias_add(nn.conv2d(*, *), *))",
        "merge_order": "A: nn.relu(abs(add(*, *))); B: abs(add(*, *)); C: nn.relu(abs(*))",
        "merge_order_2": "B: abs(add(*, *)); C: nn.relu(abs(*)); A: nn.relu(abs(add(*, *)))",
        "pattern_with_check": "conv_bias_relu: nn.relu(nn.bias_add(nn.conv2d(*, *)[data_layout=NCHW], *))",
        "diamond_not_merge": "pat: multiply(nn.relu(nn.bias_add(nn.conv2d(*, *), *)), clip(nn.relu(*)))"}.items()},
}
"""Tests that change TVM's configuration, by the options that do so here; and those whose record shortens a long argument."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one pair: ``same``, ``differs``, ``no pass``, or the error."""

    name: str
    passes: str
    what: str
    kept: bool
    """Whether TVM leaves the graph as it is."""

    @property
    def family(self) -> str:
        return self.name.partition("__")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*", metavar="GLOB", help="only the pairs of this name")
    parser.add_argument("--show", action="store_true", help="print what differs: the graph, and the one that TVM gives")
    given = parser.parse_args()
    results = []
    for record in json.loads((given.folder / "manifest.json").read_text()):
        name = Path(record["file"]).name.removesuffix(".before.relay")
        if record["file"].startswith("pairs/") and record["file"].endswith(".before.relay") and fnmatch(name, given.only):
            results.append(compared(given.folder / "pairs", name, record["passes"], bool(record["same"]), given.show))
    report(results)


def compared(folder: Path, name: str, passes: Sequence[str], kept: bool, show: bool) -> Result:
    """One pair through the passes that its record names."""
    mine = CONFIGURED.get(name) or chosen(passes)
    if mine is None:
        return Result(name, ", ".join(passes), "no pass", kept)
    before, after = (irscope.load(str(folder / f"{name}.{side}.relay")).module() for side in ("before", "after"))
    drawn(before)
    made = before
    try:
        for step in run_passes(before, split_outside(mine), check=False):
            made = step.after
    except UserError as error:
        return Result(name, mine, f"error: {error}", kept)
    # TVM solves the types of weights before it compares; a weight that is only read behind arithmetic says nothing of its own.
    for own, theirs in zip(made.main().params, after.main().params, strict=False):
        theirs.type = own.type if theirs.type is UNKNOWN else theirs.type
    identity = Identity()
    sides = [plain(pass_named("infer-types").run(module)) for module in (made, after)]
    for side in sides:
        identity.add(side)
    same = identity.of_graph[sides[0].main()] == identity.of_graph[sides[1].main()]
    if show and not same:
        print(f"---- {name}: {mine}\n{print_module(made)}\n---- TVM\n{print_module(after)}")
    return Result(name, mine, "same" if same else "differs", kept)


def chosen(passes: Sequence[str]) -> str | None:
    """The passes that stand for TVM's; None where one has no counterpart."""
    found = []
    for text in passes:
        name, _, rest = text.removesuffix(")").partition("(")
        if name not in PASSES and name not in NOTHING:
            return None
        if name in PASSES:
            found.append(PASSES[name](arguments(rest)))
    return ",".join(f for f in found if f)


def arguments(text: str) -> Arguments:
    """The arguments of a call, as texts."""
    try:
        return [ast.unparse(a) for a in ast.parse(f"f({text})", mode="eval").body.args]  # type: ignore[attr-defined]
    except SyntaxError:  # a shortened record
        return [text]


def drawn(module: Module) -> None:
    """Give constants whose values the text leaves out values, in place: equal ones for equal references."""
    known: dict[str, Literal] = {}
    for node in constants(module):
        if node.attrs["literal"].elided and isinstance(node.type, TensorType):
            key = str(node.attrs.get("meta"))
            if key not in known:
                array = np.random.default_rng(len(known)).uniform(0.5, 4, node.type.dims()).astype(node.type.dtype.numpy())
                known[key] = Literal.of(array, node.type)
            node.attrs = {"literal": known[key]}


def plain(module: Module) -> Module:
    """A module without what does not count, in place."""
    for graph in module.graphs.values():
        users = graph.users()
        graph.params = [p for p in graph.params if users[p.index] or p is graph.root or graph is not module.main()]
        for node in graph.nodes:
            node.attrs = without_defaults(node)
        first: dict[object, Node] = {}
        for node in in_order(graph):
            if node.op.name == "constant" and isinstance(node.type, TensorType):
                literal = node.attrs["literal"]
                same = first.setdefault((str(node.type), str(node.attrs.get("meta", "")) or literal.value().tobytes()), node)
                if node.type.rank and same is node:
                    node.attrs = {"literal": Literal(node.type, "", True), "meta": f"constant {len(first)}"}
                elif same is not node:
                    for user in users[node.index]:
                        user.operands = tuple(same if o is node else o for o in user.operands)
    return module


def in_order(graph: Graph) -> Iterator[Node]:
    """What the result needs, in the order of a walk from it that goes through operands from the left."""
    seen: set[Node] = set()
    stack = [(graph.result(), False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((o, False) for o in reversed(node.operands))


def without_defaults(node: Node) -> dict[str, object]:
    """The attributes of a call that are not what they are anyway."""
    operator = declared(node.op.name) if node.op.dialect == "relay" else None
    if operator is None:
        return dict(node.attrs)
    defaults = {a.name: a.default for a in operator.attributes if not a.required}
    left = {key: value for key, value in node.attrs.items() if key not in defaults or defaults[key] != value}
    if node.op.name == "nn.batch_matmul" and transposes(node):
        left["transpose_b"] = True  # texts before version 0.8 say so by the shapes alone
    return left


def transposes(node: Node) -> bool:
    x, y = (o.type for o in node.operands)
    fits = isinstance(x, TensorType) and isinstance(y, TensorType) and x.rank == y.rank == 3 and x.shape[2] == y.shape[2] != y.shape[1]
    return fits and "transpose_b" not in node.attrs and "transpose_a" not in node.attrs


def constants(module: Module) -> Iterator[Node]:
    return (node for graph in module.graphs.values() for node in graph.nodes if node.op.name == "constant" and "literal" in node.attrs)


def report(results: Sequence[Result]) -> None:
    """The cases that are not the same, and a table of families."""
    for result in results:
        if result.what not in ("same", "no pass"):
            print(f"{result.what:8} {result.name}: {result.passes}{' (TVM changes nothing)' if result.kept else ''}")
    print(f"\n{'family':34} {'pairs':>5} {'same':>5} {'differ':>6} {'no pass':>7}")
    for family in sorted({r.family for r in results}):
        mine = [r.what for r in results if r.family == family]
        same, none = mine.count("same"), mine.count("no pass")
        print(f"{family:34} {len(mine):5} {same:5} {len(mine) - same - none:6} {none:7}")
    whats = [r.what for r in results if r.what != "no pass"]
    print(f"{'all that a pass stands for':34} {len(whats):5} {whats.count('same'):5} {len(whats) - whats.count('same'):6}")


if __name__ == "__main__":
    main()
