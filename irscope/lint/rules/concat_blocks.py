"""FUS010: a tensor is concatenated from many pieces, and elementwise operators read the whole."""

from __future__ import annotations

from functools import partial

from irscope.analysis.values import MOVES, dims, size
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Make, Note, Rule, RuleFinding, Severity, Site, human_bytes, saving
from irscope.ops import hlo
from irscope.ops.attributes import Concatenate, Slice

MANY = 8
"""XLA's limit: a concatenation of more pieces is no part of a fusion."""
WORTH_BYTES = 64 * 1024
MERGES = ("xla-cpu", "xla-gpu")
"""Policies whose compilers make one slice of neighbouring ones (algebraic_simplifier.cc, HandleConcatenate)."""
PIECES = hlo.named("slice dynamic-slice")
CUTS = MOVES | PIECES | hlo.named("get-tuple-element")


class ConcatBlocks(Rule):
    """More than eight pieces are concatenated, and elementwise operators read the result.

    ## What it does
    Finds `concatenate` of more than 8 operands with a result of 64 KiB and more that elementwise operators read. It is a warning if the
    pieces are slices of one value; pieces from different values are information, one finding per module.

    ## Why is this bad?
    XLA does not fuse a concatenation of more than eight pieces: it writes the result and reads it again (measured: 11.8 ms became 0.7 ms).

    ## Use instead
    One operator in place of slicing and concatenating: `jnp.roll`, `jnp.flip`, `jnp.take`, `reshape` and `transpose`.

    ## Known false positives
    Pieces from different sources, which have to be concatenated somewhere.
    """

    code, name, severity = "FUS010", "concat-blocks", Severity.WARNING
    fix = Fix.REWRITE
    structural = True
    bad = (
        Fixture.hlo(
            "ENTRY e {\n  x = f32[10,8192] parameter(0)\n"
            + "".join(f"  k{i} = f32[1,8192] slice(x), slice={{[{9 - i}:{10 - i}], [0:8192]}}\n" for i in range(10))
            + f"  c = f32[10,8192] concatenate({', '.join(f'k{i}' for i in range(10))}), dimensions={{0}}\n"
            "  ROOT y = f32[10,8192] tanh(c)\n}",
            "c",
        ),
        Fixture.hlo(
            "ENTRY e {\n"
            + "".join(f"  p{i} = f32[1,8192] parameter({i})\n" for i in range(9))
            + f"  c = f32[9,8192] concatenate({', '.join(f'p{i}' for i in range(9))}), dimensions={{0}}\n"
            "  ROOT y = f32[9,8192] exponential(c)\n}",
            "c",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(10, 8192), float32]) {
              %0 = strided_slice(%x, begin=[9], end=[10], strides=[1], axes=[0]);
              %1 = strided_slice(%x, begin=[8], end=[9], strides=[1], axes=[0]);
              %2 = strided_slice(%x, begin=[7], end=[8], strides=[1], axes=[0]);
              %3 = strided_slice(%x, begin=[6], end=[7], strides=[1], axes=[0]);
              %4 = strided_slice(%x, begin=[5], end=[6], strides=[1], axes=[0]);
              %5 = strided_slice(%x, begin=[4], end=[5], strides=[1], axes=[0]);
              %6 = strided_slice(%x, begin=[3], end=[4], strides=[1], axes=[0]);
              %7 = strided_slice(%x, begin=[2], end=[3], strides=[1], axes=[0]);
              %8 = strided_slice(%x, begin=[1], end=[2], strides=[1], axes=[0]);
              %9 = strided_slice(%x, begin=[0], end=[1], strides=[1], axes=[0]);
              %10 = (%0, %1, %2, %3, %4, %5, %6, %7, %8, %9);
              %11 = concatenate(%10, axis=0);
              %12 = tanh(%11);
              %12
            }
        """,
            "11",
        ),
    )
    good = (
        Fixture.hlo(
            "ENTRY e {\n"
            + "".join(f"  p{i} = f32[1,8192] parameter({i})\n" for i in range(8))
            + f"  c = f32[8,8192] concatenate({', '.join(f'p{i}' for i in range(8))}), dimensions={{0}}\n"
            "  ROOT y = f32[8,8192] exponential(c)\n}"
        ),
        Fixture.hlo(
            "ENTRY e {\n"
            + "".join(f"  p{i} = f32[1,8192] parameter({i})\n" for i in range(9))
            + f"  ROOT c = f32[9,8192] concatenate({', '.join(f'p{i}' for i in range(9))}), dimensions={{0}}\n}}"
        ),
        Fixture.relay("""
            def @main(%x: Tensor[(1, 8192), float32], %y: Tensor[(1, 8192), float32]) {
              %0 = (%x, %y);
              %1 = concatenate(%0, axis=0);
              tanh(%1)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        apart: list[tuple[Node, Node]] = []
        for node, graph in context.view.primitives(hlo.concatenate):
            reader = _reader(context, graph, node) if len(node.operands) > MANY and size(node) >= WORTH_BYTES else None
            if reader is None:
                continue
            source = _cut_from(node)
            if source is None:
                apart.append((node, reader))
                continue
            whence = f": all are slices of %{source.name}"
            help = "one roll, flip or take in place of the slices is part of the kernel"
            moved = _moved(node, source, context.settings.compiler in MERGES and not context.view.optimised)
            edit = Edit({node: moved}, (source,)) if moved is not None else None
            yield self._finding(context, node, reader, whence, help, edit)
        if apart:
            node, reader = max(apart, key=lambda a: size(a[0]))
            more = f"; {len(apart) - 1} more like this" if len(apart) > 1 else ""
            help = f"do the {reader.op.name} on the pieces, where they are made"
            yield self._finding(context, node, reader, more, help, None)

    def _finding(self, context: Context, node: Node, reader: Node, more: str, help: str, edit: Edit | None) -> RuleFinding:
        return self.finding(
            context, node,
            f"{len(node.operands)} pieces ({human_bytes(size(node))}) are concatenated for %{reader.name} ({reader.op.name}){more}",
            notes=(Note(f"%{reader.name} works on the whole", reader.loc),),
            help=help,
            saves=edit or (saving(bytes=2.0 * size(node), kernels=1.0) if _cut_from(node) is None else None),
        ).with_severity(self.severity if edit is not None else Severity.INFO)


def _cut_from(node: Node) -> Node | None:
    """The one value that all pieces are slices of."""
    sources = {behind(o, CUTS) for o in node.operands}
    cut = len(sources) == 1 and all(behind(o, MOVES).op in PIECES for o in node.operands)
    return next(iter(sources)) if cut else None


def _moved(node: Node, source: Node, merged: bool) -> Make | None:
    """The pieces combined in as few moves as their order allows: as longer slices, or as a reversal of the axis.

    Any other order of single rows is a take, which costs the same as a reversal. None if the pieces are not plain slices along one axis,
    or if the compiler merges adjacent slices itself (``merged``).
    """
    axis = Concatenate.of(node).axis
    whole = dims(source)
    runs: list[tuple[int, int]] = []
    for operand in node.operands:
        piece = behind(operand, MOVES)
        if piece.op is not hlo.slice or piece.operands[0] is not source or dims(piece) != dims(operand):
            return None
        cut = Slice.of(piece).slice
        if any(part != (0, n, 1) for d, (part, n) in enumerate(zip(cut, whole, strict=True)) if d != axis) or cut[axis][2] != 1:
            return None
        begin, end, _ = cut[axis]
        if runs and runs[-1][1] == begin:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    if len(runs) <= MANY and merged:
        return None
    if len(runs) > MANY and (len(runs) != whole[axis] or any(end - begin != 1 for begin, end in runs)):
        return None  # wide pieces in another order: measured, XLA's reverse or gather of their reshape takes longer than the pieces
    return partial(_rebuilt, node, source, axis, runs)


def _rebuilt(node: Node, source: Node, axis: int, runs: list[tuple[int, int]], site: Site) -> Node:
    whole = site.new(source)
    assert isinstance(node.type, TensorType) and isinstance(source.type, TensorType)
    if len(runs) > MANY:
        return site.op(hlo.reverse, whole, type=node.type, attrs={"dimensions": (axis,)})
    pieces = []
    for begin, end in runs:
        shape = tuple(end - begin if d == axis else n for d, n in enumerate(dims(source)))
        cut = tuple((begin, end, 1) if d == axis else (0, n, 1) for d, n in enumerate(dims(source)))
        pieces.append(site.op(hlo.slice, whole, type=TensorType(source.type.dtype, shape), attrs={"slice": cut}))
    return pieces[0] if len(pieces) == 1 else site.copy(node, *pieces)


def _reader(context: Context, graph: Graph, node: Node) -> Node | None:
    """An elementwise user of the result, through reshapes."""
    todo = [node]
    for at in todo:
        for user in context.view.users(at, graph):
            if user.op.kind is Kind.ELEMENTWISE and user.op.is_primitive:
                return user
            if user.op in MOVES and len(todo) < 8:
                todo.append(user)
    return None
