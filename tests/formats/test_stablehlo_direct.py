"""Operations that become nodes as their lines are read: the same graphs, places and findings as through the tree of operations."""
from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pytest

from irscope.formats.stablehlo import reader, templates, types
from irscope.graph import Graph, Module, Node, Reading, TensorType
from irscope.ops import hlo
from irscope.ops.attrs import Literal
from irscope.source import SourceText
from tests.effort import within
from tests.formats.stablehlo_texts import ALIASES, DATA, PLAIN, body

TEXTS = {path.stem: path.read_text() for path in sorted(DATA.rglob("*.mlir"))} | {"plain": PLAIN, "aliases": ALIASES}
SPLICES = ("%", "#", "{", "}", "(", ")", ":", " ", "\n", ", ", "->", "f32", "x", "0", "loc(", "<", ">", "%0", "//", "2x", "i1", "4", "return")
ARGUMENTS = ("%x: tensor<4xf32>, %y: tensor<4xf32>, %m: tensor<2x4xf32>, %i: tensor<4xi32>, %p: tensor<4xi1>, %q: tensor<i1>, %s: tensor<f32>, "
             "%k: tensor<i32>, %c: tensor<4xcomplex<f32>>, %u: tensor<2x1xf32>, %w: tensor<4x3xf32>, %d: tensor<?xf32>, %a: tensor<1x8x2xf32>, %b: tensor<3x2x5xf32>")
LINES = (
    "stablehlo.add %x, %y : tensor<4xf32>", "stablehlo.add %x, %x : tensor<4xf32>", "stablehlo.add %x, %s : tensor<4xf32>",
    "stablehlo.add %x : tensor<4xf32>", "stablehlo.add %x, %y, %x : tensor<4xf32>", "stablehlo.add %d, %d : tensor<?xf32>",
    "stablehlo.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>", "stablehlo.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<3xf32>",
    "stablehlo.add %x, %y {mhlo.frontend_attributes = {a = \"b\"}} : tensor<4xf32>", "stablehlo.and %x, %y : tensor<4xf32>",
    "stablehlo.and %p, %p : tensor<4xi1>", "stablehlo.negate %p : tensor<4xi1>", "stablehlo.exponential %x : tensor<4xf32>",
    "stablehlo.exponential %i : tensor<4xi32>", "stablehlo.abs %c : (tensor<4xcomplex<f32>>) -> tensor<4xf32>", "stablehlo.abs %p : tensor<4xi1>",
    "stablehlo.complex %x, %y : tensor<4xcomplex<f32>>", "stablehlo.real %c : (tensor<4xcomplex<f32>>) -> tensor<4xf32>",
    "stablehlo.is_finite %x : (tensor<4xf32>) -> tensor<4xi1>", "stablehlo.is_finite %i : (tensor<4xi32>) -> tensor<4xi1>",
    "stablehlo.compare LT, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
    "stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
    "stablehlo.compare LT, %c, %c, FLOAT : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>",
    "stablehlo.compare LT, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
    "stablehlo.compare LT, %x, %i, FLOAT : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xi1>",
    "stablehlo.select %p, %x, %y : tensor<4xi1>, tensor<4xf32>", "stablehlo.select %q, %x, %y : tensor<i1>, tensor<4xf32>",
    "stablehlo.select %i, %x, %y : tensor<4xi32>, tensor<4xf32>", "stablehlo.select %q, %s, %s : tensor<i1>, tensor<f32>",
    "stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi32>", "stablehlo.convert %x : (tensor<4xf32>) -> tensor<3xi32>",
    "stablehlo.convert %d : (tensor<?xf32>) -> tensor<?xi32>", "stablehlo.clamp %s, %x, %s : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>",
    "stablehlo.clamp %k, %x, %s : (tensor<i32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>",
    "stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4xi32>", "stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<3xi32>",
    "stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2x4xf32>", "stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>",
    "stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<4xf32>) -> tensor<2x4xf32>", "stablehlo.broadcast_in_dim %x, dims = [2] : (tensor<4xf32>) -> tensor<2x4xf32>",
    "stablehlo.broadcast_in_dim %x, dims = [-1] : (tensor<4xf32>) -> tensor<2x4xf32>", "stablehlo.broadcast_in_dim %m, dims = [1, 1] : (tensor<2x4xf32>) -> tensor<2x4xf32>",
    "stablehlo.broadcast_in_dim %u, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x5xf32>", "stablehlo.broadcast_in_dim %u, dims = [0, 2] : (tensor<2x1xf32>) -> tensor<2x3x5xf32>",
    "stablehlo.broadcast_in_dim %u, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x5xi32>", "stablehlo.broadcast_in_dim %u, dims = [0, 5] : (tensor<2x1xf32>) -> tensor<2x5xf32>",
    "stablehlo.reshape %m : (tensor<2x4xf32>) -> tensor<8xf32>", "stablehlo.reshape %m : (tensor<2x4xf32>) -> tensor<9xf32>",
    "stablehlo.reshape %m : (tensor<2x4xf32>) -> tensor<8xi32>", "stablehlo.transpose %m, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>",
    "stablehlo.transpose %m, dims = [0, 0] : (tensor<2x4xf32>) -> tensor<2x2xf32>", "stablehlo.transpose %m, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<2x4xf32>",
    "stablehlo.transpose %x, dims = [1, 0] : (tensor<4xf32>) -> tensor<4xf32>",
    "stablehlo.slice %x [1:3] : (tensor<4xf32>) -> tensor<2xf32>", "stablehlo.slice %x [0:4:2] : (tensor<4xf32>) -> tensor<2xf32>",
    "stablehlo.slice %x [1:5] : (tensor<4xf32>) -> tensor<4xf32>", "stablehlo.slice %x [0:4:0] : (tensor<4xf32>) -> tensor<2xf32>",
    "stablehlo.slice %x [0:1, 0:1] : (tensor<4xf32>) -> tensor<1xf32>", "stablehlo.concatenate %x, %y, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>",
    "stablehlo.concatenate %x, %y, %x, %y, dim = 0 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<16xf32>",
    "stablehlo.concatenate %x, %y, dim = 1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>", "stablehlo.concatenate %x, %i, dim = 0 : (tensor<4xf32>, tensor<4xi32>) -> tensor<8xf32>",
    "stablehlo.pad %x, %s, low = [1], high = [-1], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>",
    "stablehlo.pad %x, %s, low = [1], high = [1, 1], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<9xf32>",
    "stablehlo.pad %x, %x, low = [1], high = [0], interior = [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32>",
    "stablehlo.iota dim = 0 : tensor<4xi32>", "stablehlo.iota dim = 1 : tensor<2x4xi32>", "stablehlo.iota dim = 2 : tensor<2x4xi32>",
    "stablehlo.iota dim = 0 : tensor<2x4xi1>", "stablehlo.iota dim = 0 : tensor<f32>",
    "stablehlo.dynamic_slice %x, %k, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>",
    "stablehlo.dynamic_slice %m, %k, %k, sizes = [3, 1] : (tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x1xf32>",
    "stablehlo.dynamic_update_slice %m, %u, %k, %k : (tensor<2x4xf32>, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>",
    "stablehlo.dot_general %m, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>",
    "stablehlo.dot_general %m, %w, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>",
    "stablehlo.dot_general %m, %m, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2xf32>",
    "stablehlo.dot_general %m, %w, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>",
    "stablehlo.dot_general %m, %w, contracting_dims = [5] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>",
    "stablehlo.dot_general %m, %w, contracting_dims = [1, 0] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<3xf32>",
    "stablehlo.dot_general %s, %s, contracting_dims = [] x [] : (tensor<f32>, tensor<f32>) -> tensor<f32>",
    "stablehlo.dot_general %s, %s, contracting_dims = [0] x [0] : (tensor<f32>, tensor<f32>) -> tensor<f32>",
    "stablehlo.dot_general %m, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xbf16>",
    "stablehlo.reduce(%m init: %s) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>",
    "stablehlo.reduce(%m init: %s) applies stablehlo.and across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>",
    "stablehlo.reduce(%m init: %s) applies stablehlo.subtract across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>",
    "stablehlo.reduce(%m init: %s) applies mhlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>",
    "stablehlo.reduce(%m init: %s) applies stablehlo.add across dimensions = [1, 1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>",
    "stablehlo.reduce(%m init: %s) applies stablehlo.add across dimensions = [2] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>",
    "stablehlo.reduce(%m init: %k) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<i32>) -> tensor<2xf32>",
    "stablehlo.constant dense<1.0> : tensor<4xf32>", "stablehlo.constant dense<[1, 2]> : tensor<2xi32>", "stablehlo.constant dense<[1, 2]> : tensor<3xi32>",
    "stablehlo.constant dense<0x7F800000> : tensor<f32>", 'stablehlo.constant dense<"0x0000803F"> : tensor<f32>', "stablehlo.constant dense<1.0> : tensor<i32>",
    "stablehlo.constant {a = 1 : i32} dense<1.0> : tensor<f32>", "stablehlo.constant dense<(1.0,2.0)> : tensor<complex<f32>>",
    '"stablehlo.gather"(%w, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0]>, '
    "slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<i32>) -> tensor<3xf32>",
    "stablehlo.reverse %m, dims = [0, 1] : tensor<2x4xf32>", "stablehlo.reverse %m, dims = [2] : tensor<2x4xf32>",
    *("stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [" + stride + "], pad = [[1, 1]]} "
      "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x2xf32>, tensor<3x2x5xf32>) -> tensor<1x" + size + "x5xf32>"
      for stride, size in (("1", "8"), ("2", "4"), ("1", "9"), ("0", "8"))),
    '"stablehlo.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>', '"stablehlo.transpose"(%m) <{permutation = array<i64: 1, 0>}> : (tensor<2x4xf32>) -> tensor<4x2xf32>',
    "mhlo.add %x, %y : tensor<4xf32>", "chlo.erf %x : tensor<4xf32> -> tensor<4xf32>", "stablehlo.add %x, %nothing : tensor<4xf32>",
    "stablehlo.add %x, %y : tensor<5xf32>", "stablehlo.add %x, %y : tensor<4xf32> loc(#nowhere)", "stablehlo.add %x, %y : tensor<4xf32> loc(\"a\"(\"f.py\":1:2))",
)


@contextmanager
def through_trees() -> Iterator[None]:
    """Texts are read without rules: every operation is one of the tree first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "direct", None)
        yield


def read(text: str) -> Reading:
    return reader.read(SourceText("test.mlir", text))


def _plain(value: object) -> object:
    if isinstance(value, Literal):
        return str(value.type), value.text, value.elided, None if value.elided else np.asarray(value.value()).tobytes()
    if isinstance(value, Mapping):
        return sorted((name, _plain(each)) for name, each in value.items())
    return repr(value)


def _described(module: Module, graph: Graph, node: Node) -> object:
    places = [graph.nodes.index(operand) for operand in node.operands]
    return (node.op.name, node.name, str(node.type), places, _plain(node.attrs), [module.graphs.get(each.name) is each for each in node.bodies],
            [each.name for each in node.bodies], node.loc, node.index, node.synthetic, module.scope(node), module.call_stack(node), module.raw(node))


def everything(text: str) -> object:
    """All that a reading has: its findings, as they are shown, and its graphs, with names and places."""
    reading = read(text)
    graphs = [(module.entry, name, graph.loc, [param.index for param in graph.params], graph.root and graph.root.index,
               [_described(module, graph, node) for node in graph.nodes]) for module in reading.modules for name, graph in module.graphs.items()]
    return reading.ok, [finding.render() for finding in reading.findings], graphs


def forget_shared() -> None:
    """Forget what other texts had."""
    types._current[0] = types.Shared({}, {})


def check(text: str) -> None:
    """A text is read alike through trees, as the first of a process, and after others."""
    with through_trees():
        expected = everything(text)
    forget_shared()
    assert everything(text) == expected
    assert everything(text) == expected


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_becomes_what_its_tree_becomes(name: str) -> None:
    check(TEXTS[name])


@pytest.mark.parametrize("line", LINES)
def test_a_line_becomes_what_its_operation_becomes(line: str) -> None:
    check(body(f"%0 = {line}", f"%1 = {line}", "%2 = stablehlo.negate %x : tensor<4xf32>", "return %2 : tensor<4xf32>", arguments=ARGUMENTS))


@pytest.mark.parametrize("seed", range(80))
def test_damaged_texts_have_the_same_findings(seed: int) -> None:
    pick = random.Random(seed)
    text = TEXTS[pick.choice(("block", "block.generic", "block.local", "several", "several.debug", "plain", "aliases"))]
    for _ in range(pick.randint(1, 3)):
        at, splice = pick.randrange(len(text)), pick.choice(SPLICES)
        text = text[:at] + splice + text[at + pick.randint(0, 3):]
    check(text)


def test_operations_of_a_function_are_nodes_and_those_of_a_tree_are_not() -> None:
    line = "%0 = stablehlo.add %x, %y : tensor<4xf32>"
    text = body(line, "return %0 : tensor<4xf32>")
    node = next(node for node in read(text).module().main().nodes if node.op is hlo.add)
    assert node.loc == text.index(line) and [operand.name for operand in node.operands] == ["x", "y"]
    with through_trees():
        assert read(text).ok


def test_texts_share_types_and_attributes_of_equal_lines() -> None:
    text = body("%0 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4xf32>", "return %0 : tensor<4xf32>", arguments="%s: tensor<f32>")
    first, second = (read(text).module().main().result() for _ in range(2))
    assert first is not second and first.type is second.type and first.attrs is second.attrs


def test_attributes_that_name_an_alias_are_not_shared() -> None:
    line = '%0 = "stablehlo.transpose"(%m) <{permutation = #order}> : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>'
    texts = [f"#order = array<i64: {order}>\n" + body(line, "return %0 : tensor<2x2x2xf32>", arguments="%m: tensor<2x2x2xf32>", result="tensor<2x2x2xf32>")
             for order in ("1, 0, 2", "2, 1, 0")]
    assert [read(text).module().main().result().attrs["dimensions"] for text in texts] == [(1, 0, 2), (2, 1, 0)]


def test_the_tables_that_texts_share_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MOST_SHARED", 5)
    monkeypatch.setattr(types, "MOST_SHARED", 5)
    forget_shared()
    lines = [f"%{n} = stablehlo.iota dim = 0 : tensor<{n}xf32>" for n in range(20)]
    for text in (body(*lines, "return %x : tensor<4xf32>"), *(body(line, "return %x : tensor<4xf32>") for line in lines)):
        assert read(text).ok
        assert all(len(table) <= 5 for table in types._current[0])


def test_long_lines_and_long_types_are_not_shared() -> None:
    forget_shared()
    deep = f"tensor<{'1x' * 100}f32>"
    text = body(f"%0 = stablehlo.broadcast_in_dim %s, dims = [{' ' * 5000}] : (tensor<f32>) -> tensor<4xf32>", f"%1 = stablehlo.add %d, %d : {deep}",
                "return %0 : tensor<4xf32>", arguments=f"%s: tensor<f32>, %d: {deep}")
    assert read(text).ok
    assert types._current[0].plans == {} and list(types._current[0].types) == ["tensor<f32>", "tensor<4xf32>"]


def test_a_shared_constant_of_bytes_keeps_no_text() -> None:
    forget_shared()
    line = '%0 = "stablehlo.constant"() <{value = dense<"0x0000803F"> : tensor<f32>}> : () -> tensor<f32>'
    assert read(body(line, "return %0 : tensor<f32>", result="tensor<f32>")).ok
    (plan,) = types._current[0].plans.values()
    literal = plan.attrs["literal"]
    assert [cell.cell_contents for cell in literal.parse.__closure__ if isinstance(cell.cell_contents, str)] == ['"0x0000803F"']
    assert float(literal.value()) == 1.0


def test_a_text_keeps_the_shared_tables_that_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread reads a text, another one may replace the tables: equal types of one text are still one object."""
    forget_shared()
    first = types.TypeTable(lambda name: None)
    before = first.plain("tensor<4xf32>")
    monkeypatch.setattr(types, "MOST_SHARED", 1)
    second = types.TypeTable(lambda name: None)
    assert first.plain("tensor<4xf32>") is before and first.shared is not second.shared
    assert second.plain("tensor<4xf32>") is not before


def test_types_that_another_thread_reads_at_the_same_time_are_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_shared()
    first, second = types.TypeTable(lambda name: None), types.TypeTable(lambda name: None)
    made: list[object] = []

    def race(*args: object) -> TensorType:
        """The other thread is faster."""
        monkeypatch.setattr(types, "TensorType", TensorType)
        made.append(second.plain("tensor<4xf32>"))
        return TensorType(*args)  # type: ignore[arg-type]
    monkeypatch.setattr(types, "TensorType", race)
    assert first.plain("tensor<4xf32>") is made[0]


@pytest.mark.parametrize("types_", [" -> tensor<4xi32>", "(tensor<4xf32>) -> ", " -> ", "-> ", "() -> ()", "( -> )", "(", ""])
def test_lines_whose_types_are_incomplete_have_findings(types_: str) -> None:
    text = body("%0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi32>", f"%1 = stablehlo.convert %x : {types_}", "return %x : tensor<4xf32>")
    assert not read(text).ok
    check(text)


def test_a_value_that_a_region_reads_from_outside_a_nested_region() -> None:
    check(body("%0 = stablehlo.negate %x : tensor<4xf32>", "%one = stablehlo.constant dense<1.0> : tensor<4xf32>",
               "%1 = \"stablehlo.case\"(%k) ({", "  %2 = \"stablehlo.case\"(%k) ({", "    %3 = stablehlo.add %0, %one : tensor<4xf32>",
               "    stablehlo.return %3 : tensor<4xf32>", "  }) : (tensor<i32>) -> tensor<4xf32>", "  %4 = stablehlo.multiply %2, %y : tensor<4xf32>",
               "  stablehlo.return %4 : tensor<4xf32>", "}) : (tensor<i32>) -> tensor<4xf32>", "return %1 : tensor<4xf32>", arguments=ARGUMENTS))


@pytest.mark.parametrize("place", ['"x loc(y":1:2', '"a"("x loc(y)")', 'callsite("f loc(g)" at "h":3:4)', 'fused["a", "b loc(c)"]', '"a%b":1:2', "#l"])
def test_names_in_locations_may_look_like_locations(place: str) -> None:
    line = f"stablehlo.add %x, %x : tensor<4xf32> loc({place})"
    text = '#l = loc("z loc(":7:8)\n' + body(f"%0 = {line}", f"%1 = {line}  ", "return %0 : tensor<4xf32>")
    check(text)
    module = read(text).module()
    assert module.scope(module.main().result()) or module.call_stack(module.main().result())


@pytest.mark.parametrize("type", ["tensor<" + "4x" * 30_000, "tensor<" + "4x" * 30_000 + ">", "tensor<" + "4x" * 30_000 + "f32, #a>"])
def test_a_type_of_many_sizes_takes_time_in_proportion(type: str) -> None:
    """Backtracking over the sizes takes 10 s for these."""
    with within(2):
        assert not read(body(f"%0 = stablehlo.constant dense<1.0> : {type}", "return %x : tensor<4xf32>")).ok
