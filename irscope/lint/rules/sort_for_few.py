"""ALG013: all elements are sorted, and only the first or last few are used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

from irscope.analysis.reference import evaluate
from irscope.analysis.values import MOVES, SPREADS, dims, number, written
from irscope.graph import Graph, Kind, Node, TensorType, TupleType
from irscope.graph.dtypes import S32
from irscope.graph.walk import behind
from irscope.lazy import np
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site, if_it_saves
from irscope.ops import hlo
from irscope.ops.attributes import Constant, Gather, GetTupleElement, Reverse, Slice, Sort

FEWEST = 64
"""Shorter rows are sorted in no time."""
WORTH = 8
"""The smallest ratio of sorted to used elements that is reported: selecting many elements costs the same as sorting."""

_SORT = """
    ENTRY e {{
      x = f32[32,1024] parameter(0)
      s = f32[32,1024] sort(x), dimensions={{1}}, is_stable=true, to_apply=less
      {0}
    }}
"""
_TORCH = """
            graph(%x : Float(32, 1024)):
              %zero : int = prim::Constant[value=0]()
              %one : int = prim::Constant[value=1]()
              %k : int = prim::Constant[value={0}]()
              %last : int = prim::Constant[value=-1]()
              %t : bool = prim::Constant[value=1]()
              %s : Long(32, 1024) = aten::argsort(%x, %last, %t)
              %y : Long(32, {0}) = aten::slice(%s, %one, %zero, %k, %one)
              return (%y)
        """


class SortForFew(Rule):
    """All elements are sorted, and only the largest or smallest few are used.

    ## What it does
    Finds sorts, and in torch and Relay a `topk` of many, of rows of 64 elements or more of which slices use an eighth or less, all from
    one end. A `topk` of HLO is not reported: XLA selects only what a slice keeps of it.

    ## Why is this bad?
    A sort compares each element a dozen times; a maximum once (measured, 64 rows of 8192: 87 ms and 0.3 ms).

    ## Use instead
    `jnp.max`, `jnp.argmax`, `jax.lax.top_k(x, k)`; `torch.amax`, `torch.topk(x, k)`; `max`, `topk`.

    ## Known false positives
    Compilers that recognise a sort and slice as a `topk`, as XLA does for descending sorts of floats with their indices.
    """

    code, name, severity = "ALG013", "sort-for-few", Severity.WARNING
    fix = Fix.REWRITE
    structural = inside = True
    bad = (
        Fixture.hlo(_SORT.format("ROOT y = f32[32,1] slice(s), slice={[0:32], [1023:1024]}"), "s"),
        Fixture.hlo(
            _SORT.format("r = f32[32,1024] reverse(s), dimensions={1}\n      ROOT y = f32[32,8] slice(r), slice={[0:32], [0:8]}"), "s"
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[32,1024] parameter(0)
              i = s32[32,1024] iota(), iota_dimension=1
              t = (f32[32,1024], s32[32,1024]) sort(x, i), dimensions={1}, is_stable=true, to_apply=by_value
              v = f32[32,1024] get-tuple-element(t), index=0
              j = s32[32,1024] get-tuple-element(t), index=1
              a = f32[32,4] slice(v), slice={[0:32], [0:4]}
              b = s32[32,4] slice(j), slice={[0:32], [0:4]}
              ROOT r = (f32[32,4], s32[32,4]) tuple(a, b)
            }
            by_value {
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              k = s32[] parameter(2)
              l = s32[] parameter(3)
              ROOT g = pred[] compare(a, b), direction=GT
            }
        """,
            "t",
        ),
        Fixture.torchscript(_TORCH.format(8), "s"),
        Fixture.relay(
            """
            def @main(%x: Tensor[(32, 1024), float32]) {
              %0 = sort(%x, axis=-1, is_ascend=False);
              %1 = strided_slice(%0, begin=[0, 0], end=[32, 8], strides=[1, 1]);
              %1
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[32,1024] parameter(0)
              t = (f32[32,512], s32[32,512]) topk(x), k=512, largest=true
              v = f32[32,512] get-tuple-element(t), index=0
              ROOT a = f32[32,4] slice(v), slice={[0:32], [0:4]}
            }
        """),
        Fixture.hlo(_SORT.format("ROOT y = f32[32,1] slice(s), slice={[0:32], [512:513]}")),
        Fixture.hlo(_SORT.format("ROOT y = f32[32,512] slice(s), slice={[0:32], [0:512]}")),
        Fixture.hlo(
            _SORT.format(
                "y = f32[32,1] slice(s), slice={[0:32], [1023:1024]}\n      ROOT t = (f32[32,1], f32[32,1024]) tuple(y, s)"
            )
        ),
        Fixture.torchscript(_TORCH.format(512)),
        Fixture.torchscript("""
            graph(%x : Float(32, 1024)):
              %k : int = prim::Constant[value=8]()
              %last : int = prim::Constant[value=-1]()
              %t : bool = prim::Constant[value=1]()
              %v : Float(32, 8), %i : Long(32, 8) = aten::topk(%x, %k, %last, %t, %t)
              return (%v)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(32, 1024), float32]) {
              topk(%x, k=8, ret_type="values")
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, graph in context.view.primitives(hlo.sort):
            if not dims(node.operands[0]) or graph in context.view.inlined:
                continue
            used = _used(context, graph, node, Sort.of(node).axis)
            if used is None:
                continue
            keepers, size, (start, stop) = used
            few = stop if start < size - stop else size - start
            if size < FEWEST or few * WORTH > size:
                continue
            end = "first" if start < size - stop else "last"
            yield from if_it_saves(self.finding(
                context, node,
                f"rows of {size} elements are sorted, and only the {end} {few} of each are used",
                notes=tuple(Note(f"%{keeper.name} keeps {keeper.type}", keeper.loc) for keeper in keepers[:2]),
                help="use a maximum, minimum or argmax" if few == 1 else f"use top_k with k={few}",
                saves=_edit(context, graph, node, used),
            ))


Used = tuple[list[Node], int, tuple[int, int]]
"""The slices of a sort, the length of its rows, and the range of elements that is used: the first, and the one after the last."""


def _used(context: Context, graph: Graph, node: Node, along: int) -> Used | None:
    """What slices use of a sort's results; None where something else reads them.

    The slice that belongs to an operator of the text, as of one that selects a few, makes its rows shorter.
    """
    single = isinstance(node.type, TensorType)
    size = dims(node.operands[0])[along]
    todo = [(node, False)] if single else [(user, False) for user in context.view.users(node, graph)]
    keepers: list[Node] = []
    ranges: list[tuple[int, int]] = []
    for value, is_reversed in todo:
        if value is graph.root or isinstance(value.type, TupleType):
            return None
        for user in context.view.users(value, graph):
            if user.op is hlo.reverse and Reverse.of(user).dimensions == (along,):
                todo.append((user, not is_reversed))
                continue
            kept = _kept(user, value, along, size)
            if kept is None:
                return None
            start, stop = kept
            if written(user) is written(node) and user.origin and start == 0:
                size = stop
                todo.append((user, is_reversed))
                continue
            keepers.append(user)
            ranges.append((size - stop, size - start) if is_reversed else (start, stop))
    return (keepers, size, (min(start for start, _ in ranges), max(stop for _, stop in ranges))) if keepers else None


def _kept(user: Node, value: Node, along: int, size: int) -> tuple[int, int] | None:
    """The range of elements that a slice, or a gather at one known place, keeps along a dimension; None for other users."""
    if user.op is hlo.slice:
        return Slice.of(user).slice[along][:2]
    if user.op is not hlo.gather or user.operands[0] is not value:
        return None
    attrs = Gather.of(user)
    index = behind(user.operands[1], MOVES)
    if attrs.start_index_map != (along,) or attrs.slice_sizes[along] != 1 or prod(dims(index)) != 1:
        return None
    place = number(index)
    if index.op is hlo.select:  # ONNX counts from the end below zero
        place = number(index.operands[2])
        place = place + size if place is not None and place < 0 else place
    return (int(place), int(place) + 1) if place is not None and 0 <= place < size else None


def _edit(context: Context, graph: Graph, node: Node, found: Used) -> Edit | None:
    """A selection of the few in place of the sort, of values alone or with their places, if slices read its results, or those reversed."""
    keepers, size, (start, stop) = found
    few = stop if start < size - stop else size - start
    x, results = node.operands[0], context.view.users(node, graph)
    sources = [_unreversed(keeper.operands[0]) for keeper in keepers if keeper.op is hlo.slice]
    direct = len(sources) == len(keepers) and all(source is node or source.op is hlo.get_tuple_element for source in sources)
    if not direct or Sort.of(node).axis != len(dims(x)) - 1 or size != dims(x)[-1]:
        return None
    ascending = _is_ascending(node)
    if ascending is None or any(behind(other, SPREADS).op is not hlo.iota for other in node.operands[1:]) or len(node.operands) > 2:
        return None
    from_start = start < size - stop
    select = _Selection(few, ascending is not from_start, size, from_start)
    return Edit({keeper: partial(_selected, node, keeper, select) for keeper in keepers}, (x, *results))


@dataclass(frozen=True, slots=True)
class _Selection:
    """The few elements at the start or end of sorted rows of ``size``; ``topk`` gives those of the end in the opposite order."""

    few: int
    largest: bool
    size: int
    from_start: bool


def _unreversed(value: Node) -> Node:
    return value.operands[0] if value.op is hlo.reverse else value


def _selected(node: Node, keeper: Node, select: _Selection, site: Site) -> Node:
    """A slice of the selected elements instead of one of the sorted rows."""
    x, source, few = node.operands[0], _unreversed(keeper.operands[0]), select.few
    assert isinstance(x.type, TensorType) and isinstance(keeper.type, TensorType)
    shape = (*x.type.shape[:-1], few)
    both = TupleType((TensorType(x.type.dtype, shape), TensorType(S32, shape)))
    made = site.op(hlo.topk, site.new(x), type=both, attrs={"k": few, "largest": select.largest})
    index = GetTupleElement.of(source).index if source.op is hlo.get_tuple_element else 0
    part = site.op(hlo.get_tuple_element, made, type=both.elements[index], attrs={"index": index})
    is_read_reversed = source is not keeper.operands[0]
    if is_read_reversed is select.from_start:
        part = site.op(hlo.reverse, part, type=both.elements[index], attrs={"dimensions": (len(shape) - 1,)})
    left_out = 0 if is_read_reversed is not select.from_start else select.size - few
    *rest, (start, stop, stride) = Slice.of(keeper).slice
    cuts = (*rest, (start - left_out, stop - left_out, stride))
    assert isinstance(part.type, TensorType)
    cut = site.op(hlo.slice, part, type=TensorType(part.type.dtype, keeper.type.shape), attrs={"slice": cuts})
    return cut if part.type.dtype is keeper.type.dtype else site.op(hlo.convert, cut, type=keeper.type)


def _is_ascending(sort: Node) -> bool | None:
    """Whether the comparator puts 1 before 2 and not 2 before 1, whatever else it compares; None where it is neither way, or does more than
    arithmetic: a loop in it may never end.
    """
    body = sort.bodies[0]
    types = [param.type for param in body.params]
    if not all(map(_is_arithmetic, body.nodes)):
        return None
    if not all(isinstance(type, TensorType) and not type.shape and type.dtype.kind in ("float", "int") for type in types):
        return None
    answers = []
    for one, two in ((1, 2), (2, 1)):
        values = [one, two, *(0 for _ in types[2:])]
        given = zip(values, types, strict=True)
        arguments = [np.asarray(value, type.dtype.numpy()) for value, type in given if isinstance(type, TensorType)]
        answers.append(bool(evaluate(body, arguments)))
    return answers[0] if answers[0] is not answers[1] else None


def _is_arithmetic(node: Node) -> bool:
    """Whether a node of a comparator is a parameter, a constant with a value, or an elementwise operator."""
    if node.op is hlo.constant:
        return not Constant.of(node).literal.elided
    return node.op is hlo.parameter or (node.op.kind is Kind.ELEMENTWISE and node.op.reference is not None and not node.bodies)
