"""Types: sizes, texts, agreement; element types by their names; modules, buffers and the text of a graph."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irscope.formats.hlo import read
from irscope.graph import (
    DTYPES,
    OPAQUE,
    TOKEN,
    UNKNOWN,
    Allocation,
    BufferAssignment,
    Builder,
    Cut,
    Dialect,
    DynamicDim,
    Effect,
    FunctionType,
    Graph,
    Kind,
    Layout,
    Module,
    NamedType,
    Node,
    NoProvenance,
    Op,
    Reading,
    SourceLine,
    TensorType,
    TupleType,
    Type,
    Typing,
    bytes_of,
    dump,
    dump_node,
    same_type,
    tensor,
    unknown_op,
    without_array,
)
from irscope.graph.dump import MAX_ATTR_CHARACTERS
from irscope.graph.node import WORK
from irscope.graph.types import agree
from irscope.ops import hlo
from irscope.source import SourceText, UserError

F2, S3 = tensor("f32", 2), tensor("s32", 3)
OPEN, NAMED, BOUNDED = DynamicDim(), DynamicDim("batch"), DynamicDim("n", 8)


@pytest.mark.parametrize(("type", "text"), [
    (tensor("f32", 2, 3), "f32[2,3]"), (tensor("pred"), "pred[]"), (tensor("f32", OPEN, NAMED, BOUNDED), "f32[?,batch,<=8]"),
    (TensorType(DTYPES["bf16"], (2, 3), Layout((0, 1))), "bf16[2,3]{0,1}"),
    (TensorType(DTYPES["s8"], (2,), Layout((0,), "T(8)S(5)", 5)), "s8[2]{0:T(8)S(5)}"),
    (TupleType((F2, TupleType(()), TOKEN)), "(f32[2], (), token[])"), (FunctionType((F2, S3), F2), "(f32[2], s32[3]) -> f32[2]"),
    (OPAQUE, "opaque[]"), (UNKNOWN, "?"), (NamedType("Optional[int]"), "Optional[int]"),
])
def test_types_as_text(type: Type, text: str) -> None:
    assert str(type) == text


@pytest.mark.parametrize(("type", "size"), [
    (tensor("f32"), 4), (tensor("f32", 2, 3), 24), (tensor("f32", 0), 0), (tensor("s4", 3), 2), (tensor("s4", 2), 1), (tensor("u1", 9), 2),
    (tensor("u2", 8), 2), (tensor("pred", 3), 3), (tensor("c128", 2), 32), (tensor("f32", BOUNDED), 32), (tensor("f32", OPEN, 3), 12),
    (TupleType((F2, TupleType((S3, TOKEN)), F2)), 28), (TOKEN, 0), (FunctionType((F2,), F2), 0),
])
def test_bytes_of_types(type: Type, size: int) -> None:
    assert bytes_of(type) == size


@pytest.mark.parametrize("shape", [((1 << 63) - 1,) * 4, (1,) * 300, (4,) * 100, (0, 1 << 200), (DynamicDim("", 1 << 100), DynamicDim(), 5)])
def test_a_large_array_is_a_type(shape: tuple[int | DynamicDim, ...]) -> None:
    assert float(tensor("c128", *shape).bytes) < float("inf")


@pytest.mark.parametrize("shape", [((1 << 63) - 1,) * 5, (0, 1 << 257), (4,) * 129, (DynamicDim("", 1 << 200), 1 << 60)])
def test_an_array_whose_size_is_hardly_a_float_is_refused(shape: tuple[int | DynamicDim, ...]) -> None:
    """Costs multiply the sizes of several arrays, and floats end at 2**1024."""
    with pytest.raises(UserError, match=r"more than 2\*\*256 elements"):
        tensor("f32", *shape)


def test_leaves_of_tuples_are_in_order_and_counted() -> None:
    nested = TupleType((F2, TupleType((S3, TupleType(()), TOKEN)), F2))
    assert list(nested.leaves()) == [F2, S3, TOKEN, F2]
    assert nested.parts == 4 and TupleType(()).parts == 0
    assert list(F2.leaves()) == [F2]


@pytest.mark.parametrize(("type", "why"), [
    (tensor("f32"), ""), (tensor("f32", 2, OPEN), ""), (TOKEN, ""), (TupleType(()), ""), (FunctionType((F2,), F2), ""),
    (tensor("f32", *(1,) * 64), ""), (tensor("f32", *(1,) * 65), "has 65 dimensions: arrays have at most 64"),
    (TupleType((TOKEN, TupleType((tensor("pred", *(1,) * 66),)))), "has 66 dimensions: arrays have at most 64"),
    (tensor("pred", (1 << 63) - 1), ""), (tensor("pred", 1 << 63), "has 9,223,372,036,854,775,808 bytes: no memory holds it"),
    (tensor("f32", 1 << 60), ""), (tensor("f32", 1 << 60, 2), "has 9,223,372,036,854,775,808 bytes: no memory holds it"),
    (TupleType((tensor("pred", 1 << 62), tensor("u8", 1 << 62))), "has 9,223,372,036,854,775,808 bytes: no memory holds it"),
    (tensor("f32", 0, 1 << 60), ""), (tensor("f32", 0, 1 << 60, 2), "has sizes whose product is no 64-bit number"),
    (tensor("pred", (1 << 63) - 1, 0), ""), (tensor("pred", 1 << 62, 0, 2), "has sizes whose product is no 64-bit number"),
    (TupleType((TOKEN, F2, tensor("s4", 0, 1 << 63))), "has sizes whose product is no 64-bit number"),
])
def test_arrays_that_no_memory_holds(type: Type, why: str) -> None:
    """A size of 0 does not excuse the others: numpy refuses such a shape, too."""
    assert without_array(type) == why


def test_other_shapes_and_element_types() -> None:
    array = TensorType(DTYPES["f32"], (2, 3), Layout((0, 1)))
    assert array.with_shape((6,)) == tensor("f32", 6)
    assert array.with_dtype(DTYPES["s8"]) == TensorType(DTYPES["s8"], (2, 3), Layout((0, 1)))
    assert tensor(DTYPES["s8"], 4) == tensor("s8", 4)


ARRAY = TensorType(DTYPES["f32"], (2,), Layout((0,)))


@pytest.mark.parametrize(("one", "two", "equal"), [
    (F2, ARRAY, True), (F2, S3, False), (F2, tensor("f32", 3), False), (F2, tensor("s32", 2), False), (F2, TOKEN, False), (TOKEN, F2, False),
    (TOKEN, NamedType("token[]"), True), (TOKEN, OPAQUE, False), (TupleType((F2, F2)), TupleType((ARRAY, F2)), True),
    (TupleType((F2,)), TupleType((F2, F2)), False), (TupleType((F2, S3)), TupleType((F2, F2)), False), (TupleType((F2,)), F2, False),
    (TupleType((F2, TupleType((S3, TOKEN)))), TupleType((ARRAY, TupleType((S3, OPAQUE)))), False),
    (TupleType((TOKEN, F2)), TupleType((OPAQUE, ARRAY)), False),
])
def test_layouts_do_not_count_where_types_are_compared(one: Type, two: Type, equal: bool) -> None:
    assert same_type(one, two) is equal
    assert (one == two) is (equal and str(one) == str(two))


def test_types_agree_by_what_is_compared() -> None:
    def same_rank(x: TensorType, y: TensorType) -> bool:
        return x.rank == y.rank
    assert agree(TupleType((F2, S3)), TupleType((S3, F2)), same_rank)
    assert not agree(TupleType((F2, S3)), TupleType((S3, tensor("f32"))), same_rank)


@pytest.mark.parametrize(("names", "answer"), [
    ("pred s8 u1 f32 c64 token", lambda d: d.storage), ("s8 s1 u8 f32 c64 pred token", lambda d: d.is_integer),
    ("s8 u8 f32 c64 pred token", lambda d: d.is_signed), ("f16 f32 s8 c64", lambda d: d.is_float), ("c64 c128 f32", lambda d: d.is_complex),
    ("pred s8 f32 f8e8m0fnu f8e4m3fn", lambda d: d.has_negation), ("f32 f8e4m3fn f8e5m2 s8 c64", lambda d: d.has_infinity),
    ("f4e2m1fn f6e3m2fn f8e4m3fn f32 s8", lambda d: d.has_nan), ("f32 f8e4m3fnuz f8e8m0fnu f8e4m3fn s8", lambda d: d.has_negative_zero),
    ("f32 f64 bf16 f8e8m0fnu s8", lambda d: d.fraction), ("pred s1 s8 u8 f32 f8e4m3fn f8e8m0fnu", lambda d: d.lowest),
    ("pred s1 s8 u8 f32 f8e4m3fn f8e8m0fnu", lambda d: d.highest),
], ids=["storage", "integer", "signed", "float", "complex", "negation", "infinity", "nan", "minus zero", "fraction", "lowest", "highest"])
def test_what_element_types_are(names: str, answer: Callable[..., object], request: pytest.FixtureRequest) -> None:
    expected = {
        "storage": [1, 1, 1, 4, 8, 1], "integer": [True, True, True, False, False, False, False],
        "signed": [True, False, True, True, False, False], "float": [True, True, False, False], "complex": [True, True, False],
        "negation": [False, True, True, False, True], "infinity": [True, False, True, False, False],
        "nan": [False, False, True, True, False], "minus zero": [True, False, False, True, False], "fraction": [23, 52, 7, 0, 0],
        "lowest": [False, -1, -128, 0, -np.inf, -448.0, 2.0 ** -127], "highest": [True, 0, 127, 255, np.inf, 448.0, 2.0 ** 127],
    }[request.node.callspec.id]
    assert [answer(DTYPES[name]) for name in names.split()] == expected


def test_element_types_by_kind_and_width() -> None:
    kinds: dict[str, list[str]] = {}
    for name, dtype in DTYPES.items():
        assert name == dtype.name == repr(dtype)
        kinds.setdefault(dtype.kind, []).append(f"{name}:{dtype.bits}")
    assert kinds == {
        "pred": ["pred:8"], "int": ["s1:1", "s2:2", "s4:4", "s8:8", "s16:16", "s32:32", "s64:64"],
        "uint": ["u1:1", "u2:2", "u4:4", "u8:8", "u16:16", "u32:32", "u64:64"],
        "float": ["f16:16", "bf16:16", "f32:32", "f64:64", "f8e5m2:8", "f8e4m3:8", "f8e4m3fn:8", "f8e4m3b11fnuz:8", "f8e3m4:8",
                  "f8e5m2fnuz:8", "f8e4m3fnuz:8", "f8e8m0fnu:8", "f4e2m1fn:4", "f6e3m2fn:6", "f6e2m3fn:6"],
        "complex": ["c64:64", "c128:128"], "token": ["token:0"], "opaque": ["opaque:0", "buffer:0", "tuple:0"],
    }


@pytest.mark.parametrize("name", ["c64", "c128"])
def test_parts_of_complex_numbers(name: str) -> None:
    dtype = DTYPES[name]
    part = np.finfo(dtype.numpy()).dtype
    known = np.finfo(part)
    assert (dtype.significand, dtype.exponent, dtype.min_exponent, dtype.largest) == (known.nmant + 1, known.nexp, known.minexp, known.max)


def test_work_of_operators() -> None:
    """Each kind has a class of work; operators that irscope does not know have none."""
    assert {kind.name: WORK[kind] for kind in Kind} == {
        "ELEMENTWISE": "elementwise", "BROADCAST": "movement", "INJECTIVE": "movement", "REDUCTION": "reduction", "CONTRACTION": "contraction",
        "TUPLE": "free", "LEAF": "constant", "OPAQUE": "custom"}
    assert [kind.value for kind in Kind] == list(range(8))
    assert Op("f", kind=Kind.REDUCTION).work == "reduction" and Op("f", work="matrix").work == "matrix"
    assert Op("f", known=False).work == "unknown" and Op("f").work == "custom"
    plain = Op("f")
    assert plain.known and plain.is_primitive and plain.effect is Effect.PURE and plain.weight == 1 and repr(plain) == "f"
    op = unknown_op("g", "relay")
    assert (op.name, op.dialect, op.known, op.effect, op.work, op.is_primitive) == ("g", "relay", False, Effect.CONTROL, "unknown", False)
    assert unknown_op("g", "relay", "custom").work == "custom"


TEXT = """HloModule m
f { p = f32[2] parameter(0)
 ROOT n = f32[2] negate(p) }
ENTRY e { x = f32[2] parameter(0)
 y = f32[2] parameter(1)
 a = f32[2] add(x, y)
 c = f32[2] call(a), to_apply=f
 b = f32[2] add(a, a)
 ROOT r = (f32[2], f32[2]) tuple(b, c) }
"""


def test_graphs_as_text() -> None:
    module = read(SourceText("m.hlo", TEXT)).module()
    assert dump(module) == """graph f(%p: f32[2]) -> %n
  %n = f32[2] negate(%p)
graph e(%x: f32[2], %y: f32[2]) -> %r
  %a = f32[2] add(%x, %y)
  %c = f32[2] call(%a) [f]
  %b = f32[2] add(%a, %a)
  %r = (f32[2], f32[2]) tuple(%b, %c)
"""
    graph = module.graphs["f"]
    assert dump(graph) == "graph f(%p: f32[2]) -> %n\n  %n = f32[2] negate(%p)\n"
    assert repr(graph) == "<graph f: 2 nodes>" and repr(module) == "<module m: 2 graphs>"
    assert repr(graph.result()) == "%n = f32[2] negate(%p)"
    longest = "x" * MAX_ATTR_CHARACTERS
    node = Node(hlo.negate, "n", F2, tuple(graph.params), {"k": longest, "l": longest + "y"})
    assert dump_node(node) == f"%n = f32[2] negate(%p), k={longest}, l={longest}..."
    assert dump(Graph("empty")) == "graph empty() -> ?\n" and MAX_ATTR_CHARACTERS == 200


def test_users_of_a_graph_and_what_the_text_writes() -> None:
    graph = read(SourceText("m.hlo", TEXT)).module().main()
    assert [[user.name for user in users] for users in graph.users()] == [["a"], ["a"], ["c", "b"], ["r"], ["r"], []]
    graph.nodes[2].synthetic = True
    assert [node.name for node in graph.shown()] == ["x", "y", "c", "b", "r"]
    with pytest.raises(UserError, match="g has no result"):
        Graph("g").result()
    plain = Node(hlo.negate, "n", F2)
    assert (plain.loc, plain.index, plain.synthetic, plain.operands, plain.bodies, plain.origin, dict(plain.attrs)) == (-1, -1, False, (), (), (), {})
    assert Graph("g").loc == -1


def test_texts_that_are_cut_off() -> None:
    assert str(Cut(frozenset(), None, 1)) == "the text is cut off after 1 line: 0 complete computations, ENTRY missing"
    assert str(Cut(frozenset({"f"}), "e", 1200)) == "the text is cut off after 1,200 lines: 1 complete computation, ENTRY e incomplete"
    assert str(Cut(frozenset({"f", "e"}), "e", 2)) == "the text is cut off after 2 lines: 2 complete computations, ENTRY e complete"


class Places(NoProvenance):
    """Says the offset."""

    def scope(self, loc: int) -> str:
        return f"scope {loc}"

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        return (SourceLine("f.py", loc),)

    def raw(self, loc: int) -> dict[str, str]:
        return {"loc": str(loc)}


def test_what_a_module_says_of_its_nodes() -> None:
    module = Module("m", Dialect("hlo", primitive=True, flushes_denormals=True), provenance=Places())
    first, placeless = Node(hlo.negate, "n", F2, loc=0), Node(hlo.negate, "n", F2)
    assert (module.scope(first), module.call_stack(first), module.raw(first)) == ("scope 0", (SourceLine("f.py", 0),), {"loc": "0"})
    assert (module.scope(placeless), module.call_stack(placeless), module.raw(placeless)) == ("", (), {})
    assert module.format == "hlo" and module.flushes_denormals and module.is_primitive and module.cut is None and module.entry == ""
    other = Module("m", Dialect("relay"))
    assert not other.is_primitive and not other.flushes_denormals
    assert Module("m", Dialect("relay"), attrs={"primitive": True}).is_primitive
    assert (other.scope(first), other.call_stack(first), other.raw(first)) == ("", (), {})
    assert [str(SourceLine("f.py", 3)), str(SourceLine("f.py", 3, 7))] == ["f.py:3", "f.py:3:7"]


def test_free_names_of_graphs() -> None:
    module = Module("m", Dialect("hlo"))
    names = []
    for _ in range(3):
        names.append(module.fresh_name("f"))
        module.graphs[names[-1]] = Graph(names[-1])
    assert names == ["f", "f.1", "f.2"]
    del module.graphs["f.1"]
    assert module.fresh_name("f") == "f.3", "names that were given are not searched again"


def test_readings() -> None:
    dialect = Dialect("hlo")
    empty = Reading(SourceText("x", ""), "hlo")
    assert repr(empty) == "<reading of 'x': hlo, 0 modules, 0 findings>" and empty.ok and empty.arguments == () and empty.buffers is None
    with pytest.raises(ValueError, match="x: no module was read"):
        empty.module()
    first = Module("a", dialect)
    assert Reading(SourceText("x", ""), "hlo", [first, Module("b", dialect)]).module() is first
    assert "1 module," in repr(Reading(SourceText("x", ""), "hlo", [first]))


def test_a_dialect_says_little_by_default() -> None:
    dialect = Dialect("mine")
    assert repr(dialect) == "mine"
    assert (dialect.typing, dialect.primitive, dialect.writes_in_place, dialect.broadcasts, dialect.flushes_denormals) == \
        (Typing.STATED, False, False, True, False)
    assert (dialect.default_policy, dialect.gpu_policy, dialect.scope_separator, dialect.scope_ends_with_operator, dialect.scopes_vary,
            dialect.named_results) == ("irscope", "", "/", False, False, False)


def test_buffers_of_a_compiler() -> None:
    buffers = BufferAssignment([
        Allocation(0, 64, "parameter", (("p", 64),)), Allocation(1, 32, "temporary", (("a", 32), ("b", 16))),
        Allocation(2, 48, "output", (("r", 40), ("c", 8))), Allocation(3, 8, "temporary"),
    ])
    assert buffers.bytes_of("temporary") == 40 and buffers.bytes_of("constant") == 0 and buffers.total == 152
    assert buffers.largest(3) == [("r", 40, "output"), ("a", 32, "temporary"), ("b", 16, "temporary")]
    assert len(buffers.largest(9)) == 4


def test_a_builder_infers_types_and_finds_names() -> None:
    graph = Graph("g")
    builder = Builder(graph)
    x = builder.param(hlo.parameter, F2, "x", {"sharded": True})
    y = builder.param(hlo.parameter, F2, "x")
    assert (x.name, y.name, dict(x.attrs), dict(y.attrs), graph.params) == ("x", "x.1", {"sharded": True, "number": 0}, {"number": 1}, [x, y])
    assert (x.loc, x.index, y.index, x.origin) == (-1, 0, 1, ())
    builder.at = (Node(hlo.negate, "n", F2, loc=7), x)
    total = builder.add(hlo.add, (x, y))
    assert (total.type, total.name, total.loc, total.origin) == (F2, "add", 7, builder.at)
    assert [builder.add(hlo.add, (x, y)).name for _ in range(2)] == ["add.1", "add.2"]
    assert builder.name("add.3") == "add.3" and builder.name("add") == "add.4"
    with pytest.raises(ValueError, match="f: the type must be given"):
        builder.add(Op("f"))
    assert builder.add(Op("f"), type=S3).type == S3
    made = Node(hlo.negate, "n", F2, (x,), {"k": 1}, (graph,), loc=3, synthetic=True)
    same = builder.copy(made, [y])
    assert (same.op, same.name, same.type, same.operands, dict(same.attrs), same.bodies, same.loc, same.synthetic) == \
        (hlo.negate, "n", F2, (y,), {"k": 1}, (graph,), 3, True)
    other = builder.copy(made, [y], S3, {}, ())
    assert (other.name, other.type, dict(other.attrs), other.bodies) == ("n.1", S3, {}, ())
    assert Builder(graph).name("add") == "add.3", "names of nodes are taken"
