"""The tensor algebra of expansions: values as numpy's, and no node where there is nothing to do."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from irscope.analysis.reference import evaluate
from irscope.graph import Builder, Graph, Node, TensorType, TupleType
from irscope.graph.dtypes import BF16, F32, F64, PRED, S32, S64, U32
from irscope.ops import TypeFault, get
from irscope.ops.attrs import Window
from irscope.ops.loops import counted, repeat
from irscope.ops.tensors import Tensors

Array = Any
Make = Callable[..., Any]


class Program:
    """A graph whose parameters are given arrays, and the algebra over it."""

    def __init__(self, *arrays: Array) -> None:
        self.graph = Graph("main")
        builder = Builder(self.graph)
        self.arrays = [np.asarray(a) for a in arrays]
        dtypes = {"float32": F32, "float64": F64, "int32": S32, "int64": S64, "bool": PRED}
        self.params = [builder.param(get("parameter"), TensorType(dtypes[a.dtype.name], a.shape), f"x{i}", {"number": i})
                       for i, a in enumerate(self.arrays)]
        self.t = Tensors(builder)

    def value(self, made: Node | Sequence[Node]) -> Any:
        """The value of a node, or of several."""
        nodes = [made] if isinstance(made, Node) else list(made)
        self.graph.root = self.t.emit("tuple", nodes, type=TupleType(tuple(n.type for n in nodes)))
        values = [np.asarray(v) for v in evaluate(self.graph, self.arrays)]
        for node, value in zip(nodes, values, strict=True):
            assert self.t.shape(node) == value.shape and self.t.dtype(node).numpy() == value.dtype
        return values[0] if isinstance(made, Node) else values

    def names(self) -> list[str]:
        """The operators that were built, without the parameters."""
        return [node.op.name for node in self.graph.nodes[len(self.params):]]


A = np.arange(6, dtype=np.float32).reshape(2, 3) - 2.5
B = np.array([[3, -1, 2]], np.float32)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(("make", "arrays", "want"), [
    (lambda t, x, y: t.add(x, y), (A, B), A + B),
    (lambda t, x, y: t.sub(x, y), (A, B), A - B),
    (lambda t, x, y: t.mul(x, y), (A, B[0]), A * B),
    (lambda t, x, y: t.div(x, y), (A, B), A / B),
    (lambda t, x, y: t.maximum(x, y), (A, B), np.maximum(A, B)),
    (lambda t, x, y: t.minimum(x, y), (A, B), np.minimum(A, B)),
    (lambda t, x: t.unary("negate", x), (A,), -A),
    (lambda t, x: t.scale(x, 3), (A,), 3 * A),
    (lambda t, x: t.plus(x, 2), (A,), A + 2),
    (lambda t, x: t.small_power(x, 2), (A,), A * A),
    (lambda t, x: t.small_power(x, 3), (A,), A * A * A),
    (lambda t, x, y: t.compare("LT", x, y), (A, B), A < B),
    (lambda t, c, x, y: t.select(c, x, y), (A > 0, A, B), np.where(A > 0, A, B)),
    (lambda t, x: t.convert(x, S32), (A,), A.astype(np.int32)),
    (lambda t, x: t.bitcast_convert(x, S32), (A,), A.view(np.int32)),
    (lambda t, x: t.like(x, 7), (A,), np.full_like(A, 7)),
    (lambda t: t.full((2, 2), 3, S64), (), np.full((2, 2), 3, np.int64)),
    (lambda t: t.iota((2, 3), 1, S32), (), np.array([[0, 1, 2]] * 2, np.int32)),
    (lambda t: t.iota((2, 3), 0, S32), (), np.array([[0] * 3, [1] * 3], np.int32)),
])
def test_elementwise(make: Make, arrays: tuple[Array, ...], want: Array) -> None:
    program = Program(*arrays)
    np.testing.assert_array_equal(program.value(make(program.t, *program.params)), want)


@pytest.mark.parametrize(("make", "want"), [
    (lambda t, x: t.reshape(x, (4, 6)), C.reshape(4, 6)),
    (lambda t, x: t.transpose(x, (2, 0, 1)), C.transpose(2, 0, 1)),
    (lambda t, x: t.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 2)), C[:, 1:3, ::2]),
    (lambda t, x: t.slice(x, (1, 0, 0), (2, 3, 4)), C[1:]),
    (lambda t, x: t.slice(x, (0, 0, 0), (2, 2, 4)), C[:, :2]),
    (lambda t, x: t.slice(x, (0, 0, 0), (2, 3, 4), (1, 2, 1)), C[:, ::2]),
    (lambda t, x: t.slice_dim(x, 2, 1, 4, 2), C[:, :, 1:4:2]),
    (lambda t, x: t.slice_dim(x, 1, 1, 3), C[:, 1:3]),
    (lambda t, x: t.reverse(x, (0, 2)), C[::-1, :, ::-1]),
    (lambda t, x: t.concat([x, t.plus(x, 1), x], 1), np.concatenate([C, C + 1, C], 1)),
    (lambda t, x: t.pad(x, t.array(5, F32), (1, 0, 0), (0, 0, 2)), np.pad(C, ((1, 0), (0, 0), (0, 2)), constant_values=5)),
    (lambda t, x: t.pad(x, t.array(5, F32), (0, 0, 0), (0, 0, 0), (0, 1, 0)), np.insert(np.insert(C, 1, 5, 1), 3, 5, 1)),
    (lambda t, x: t.broadcast_to(x, (2, 2, 3, 4)), np.broadcast_to(C, (2, 2, 3, 4))),
    (lambda t, x: t.broadcast_to(t.slice_dim(x, 1, 0, 1), (2, 5, 4)), np.broadcast_to(C[:, :1], (2, 5, 4))),
    (lambda t, x: t.dynamic_slice(x, [t.array(n, S32) for n in (1, 1, 2)], (1, 2, 2)), C[1:, 1:, 2:]),
    (lambda t, x: t.take(x, t.array([[2, 0], [1, 1]], S32), 1), np.take(C, [[2, 0], [1, 1]], 1)),
    (lambda t, x: t.take(x, t.array([3, 0], S32), 2), np.take(C, [3, 0], 2)),
    (lambda t, x: t.take(x, t.array(1, S32), 0), C[1]),
    (lambda t, x: t.gather_elements(x, t.array(C.astype(int) % 3, S32), 1), np.take_along_axis(C, C.astype(int) % 3, 1)),
    (lambda t, x: t.gather_elements(x, t.array([[[1, 0]]], S32), 0), np.array([[[C[1, 0, 0], C[0, 0, 1]]]])),
])
def test_movement(make: Make, want: Array) -> None:
    program = Program(C)
    np.testing.assert_array_equal(program.value(make(program.t, *program.params)), want)


def test_writing_a_part() -> None:
    program = Program(C)
    t, [x] = program.t, program.params
    want = C.copy()
    want[1, 1:, 2:] = -1
    np.testing.assert_array_equal(program.value(t.update_slice(x, t.full((1, 2, 2), -1, F32), [t.array(n, S32) for n in (1, 1, 2)])), want)
    starts, updates = t.array([[2], [0]], S32), t.array([[1, 2], [10, 20]], F32)
    for combine, first in ((None, 10), ("add", C[0, 0, 0] + 10)):
        got = program.value(t.scatter(t.reshape(x, (12, 2)), starts, updates, combine, window_dims=(1,), inserted=(0,)))
        assert got[0].tolist() == [first, 20 if combine is None else 21] and got[2].tolist() == ([1, 2] if combine is None else [5, 7])
        np.testing.assert_array_equal(np.delete(got, (0, 2), 0), np.delete(C.reshape(12, 2), (0, 2), 0))


@pytest.mark.parametrize(("make", "want"), [
    (lambda t, x: t.sum(x, (2, 0)), C.sum((0, 2))),
    (lambda t, x: t.sum(x, (1,), keepdims=True), C.sum(1, keepdims=True)),
    (lambda t, x: t.product(x, (1,)), C.prod(1)),
    (lambda t, x: t.product(x, (1,), keepdims=True), C.prod(1, keepdims=True)),
    (lambda t, x: t.mean(x, (1, 2)), C.mean((1, 2))),
    (lambda t, x: t.mean(x, (0,), keepdims=True), C.mean(0, keepdims=True)),
    (lambda t, x: t.max(x, (2,)), C.max(2)),
    (lambda t, x: t.max(t.unary("negate", x), (0,), keepdims=True), (-C).max(0, keepdims=True)),
    (lambda t, x: t.min(x, (2,)), C.min(2)),
    (lambda t, x: t.min(x, (0,), keepdims=True), C.min(0, keepdims=True)),
    (lambda t, x: t.any(t.compare("GT", x, t.array(19, F32)), (1, 2)), (C > 19).any((1, 2))),
    (lambda t, x: t.any(t.compare("GT", x, t.array(19, F32)), (2,), keepdims=True), (C > 19).any(2, keepdims=True)),
    (lambda t, x: t.all(t.compare("GT", x, t.array(11, F32)), (1, 2)), (C > 11).all((1, 2))),
    (lambda t, x: t.all(t.compare("GT", x, t.array(11, F32)), (0,), keepdims=True), (C > 11).all(0, keepdims=True)),
    (lambda t, x: t.cumulative("add", x, 1, 0), C.cumsum(1)),
    (lambda t, x: t.cumulative("add", x, 2, 0, reverse=True), C[:, :, ::-1].cumsum(2)[:, :, ::-1]),
    (lambda t, x: t.window("maximum", x, 0, Window.make((1, 1, 2), (1, 1, 2))), np.maximum(C[:, :, ::2], C[:, :, 1::2])),
])
def test_reductions(make: Make, want: Array) -> None:
    program = Program(C)
    np.testing.assert_array_equal(program.value(make(program.t, *program.params)), want)


NAN = np.nan


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("x", [
    np.array([[1, 3, 3], [-2, -2, 0]], np.float32), np.array([[1, NAN, 5], [NAN, 1, NAN]], np.float32), np.array([[4, 4], [-7, 9]], np.int32),
    np.array([[-np.inf, -np.inf], [np.inf, np.inf]], np.float32),
])
def test_the_extreme_with_its_index(x: Array, largest: bool) -> None:
    program = Program(x)
    value, index = program.value(program.t.arg_extreme(program.params[0], 1, largest))
    np.testing.assert_array_equal(value, x.max(1) if largest else x.min(1))
    assert index.tolist() == (x.argmax(1) if largest else x.argmin(1)).tolist() and index.dtype == np.int32
    program = Program(x)
    _, index = program.value(program.t.arg_extreme(program.params[0], 0, largest, S64))
    assert index.tolist() == (x.argmax(0) if largest else x.argmin(0)).tolist() and index.dtype == np.int64


@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable_and_places_nan(descending: bool) -> None:
    keys = np.array([2, NAN, -1, 2, NAN, 0], np.float32)
    program = Program(keys, np.arange(6, dtype=np.int32))
    order = [1, 4, 0, 3, 5, 2] if descending else [2, 5, 0, 3, 1, 4]
    got, places = program.value(program.t.sort(program.params, 0, descending))
    np.testing.assert_array_equal(got, keys[order])
    assert places.tolist() == order
    program = Program(np.array([[3, 1, 2]], np.int32))
    [got] = program.value(program.t.sort(program.params, 1, descending))
    assert got.tolist() == [[3, 2, 1]] if descending else [[1, 2, 3]]


@pytest.mark.parametrize(("xs", "ys"), [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((2, 3), (5, 3, 4)),
])
def test_matmul(xs: tuple[int, ...], ys: tuple[int, ...]) -> None:
    x, y = (np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in (xs, ys))
    if xs == (5, 2, 3) and ys == (3,):
        want = x @ y
    else:
        want = np.matmul(x, y)
    program = Program(x, y)
    np.testing.assert_array_equal(program.value(program.t.matmul(program.params[0], program.params[1])), want)
    wide = program.t.matmul(program.params[0], program.params[1], dtype=F64)
    assert program.t.dtype(wide) is F64 and program.t.shape(wide) == want.shape


def test_convolution_lists_only_the_groups_that_it_has() -> None:
    x, w = np.arange(8, dtype=np.float32).reshape(1, 4, 2), np.ones((2, 1, 2), np.float32)
    program = Program(x, w)
    made = program.t.conv(program.params[0], program.params[1], "b0f_0io->b0f", Window.make((2,)), groups=2)
    assert made.attrs["feature_group_count"] == 2 and "batch_group_count" not in made.attrs
    np.testing.assert_array_equal(program.value(made), x[:, :-1] + x[:, 1:])
    x = np.arange(8, dtype=np.float32).reshape(2, 4, 1)
    program = Program(x, np.ones((2, 1, 2), np.float32))
    made = program.t.conv(program.params[0], program.params[1], "b0f_0io->b0f", Window.make((2,)), batch_groups=2)
    assert made.attrs["batch_group_count"] == 2 and "feature_group_count" not in made.attrs
    np.testing.assert_array_equal(program.value(made)[0], (x[:, :-1] + x[:, 1:])[:, :, 0].T)


@pytest.mark.parametrize("make", [
    lambda t, x: t.broadcast_to(x, (2, 3, 4)), lambda t, x: t.scale(x, 1), lambda t, x: t.plus(x, 0), lambda t, x: t.small_power(x, 1),
    lambda t, x: t.convert(x, F32), lambda t, x: t.reshape(x, (2, 3, 4)), lambda t, x: t.transpose(x, (0, 1, 2)),
    lambda t, x: t.slice(x, (0, 0, 0), (2, 3, 4)), lambda t, x: t.slice_dim(x, 1, 0, 3), lambda t, x: t.pad(x, x, (0, 0, 0), (0, 0, 0)),
    lambda t, x: t.concat([x], 1), lambda t, x: t.reverse(x, ()), lambda t, x: t.sum(x, ()), lambda t, x: t.here(x),
])
def test_where_there_is_nothing_to_do_the_operand_is_returned(make: Make) -> None:
    program = Program(C)
    assert make(program.t, program.params[0]) is program.params[0]
    assert program.names() == []


def test_few_nodes_are_built() -> None:
    program = Program(C, C, np.ones((1, 1, 1), np.float32))
    t, [x, y, one] = program.t, program.params
    t.binary("add", x, y)
    assert program.names() == ["add"]
    t.broadcast_to(one, (2, 1, 3))
    assert program.names() == ["add", "reshape", "broadcast"], "only the sizes that stay are broadcast"
    t.broadcast_to(t.slice_dim(x, 1, 0, 1), (3, 2, 1, 4))
    assert program.names()[3:] == ["slice", "broadcast"]
    assert t.small_power(x, 4) is None and t.small_power(x, 0.5) is None
    assert t.matmul(x, t.array(np.ones((4, 2)), F32)).op.name == "dot"
    assert program.names()[5:] == ["constant", "dot"], "a matrix is shared by the batches"
    t.cumulative("add", t.slice_dim(x, 1, 0, 1), 1, 0)
    assert program.names()[7:] == ["slice"]
    bodies = {t.sum(x, (0,)).bodies[0], t.sum(y, (1,)).bodies[0]}
    assert len(bodies) == 1 and t.product(x, (0,)).bodies[0] not in bodies, "equal computations are built once"


def test_empty_gathers_are_constants() -> None:
    program = Program(np.zeros((0, 3), np.float32), A)
    t, [empty, x] = program.t, program.params
    none = t.array(np.zeros((0,)), S32)
    assert program.value(t.take(empty, none, 0)).shape == (0, 3)
    assert program.value(t.take(x, none, 1)).shape == (2, 0)
    assert program.value(t.gather_elements(x, t.array(np.zeros((2, 0)), S32), 1)).shape == (2, 0)
    assert "gather" not in program.names()


@pytest.mark.parametrize(("make", "message"), [
    (lambda t, x: t.broadcast_to(x, (3, 4)), "shape [2, 3, 4] does not broadcast to [3, 4]"),
    (lambda t, x: t.broadcast_to(x, (2, 5, 4)), "shape [2, 3, 4] does not broadcast to [2, 5, 4]"),
    (lambda t, x: t.broadcast_to(x, (2, 1, 4)), "shape [2, 3, 4] does not broadcast to [2, 1, 4]"),
    (lambda t, x: t.broadcast_shape((2, 3), (4,)), "shapes [2, 3] and [4] do not broadcast"),
    (lambda t, x: t.reshape(x, (5, 5)), "[2, 3, 4] has 24 elements, [5, 5] has 25"),
    (lambda t, x: t.iota((2, -1), 0, S32), "iota to s32[2,-1], which has a negative size"),
    (lambda t, x: t.shape(t.emit("tuple", (x,), type=TupleType((x.type,)))), "%tuple is (f32[2,3,4]), not a tensor"),
])
def test_what_does_not_fit_is_refused(make: Make, message: str) -> None:
    program = Program(C)
    with pytest.raises(TypeFault) as fault:
        make(program.t, program.params[0])
    assert fault.value.message == message


@pytest.mark.parametrize(("shapes", "want"), [
    ([], ()), ([()], ()), ([(2, 3)], (2, 3)), ([(2, 1), (3,)], (2, 3)), ([(1, 0), (4, 1)], (4, 0)), ([(5, 1, 2), (3, 1), ()], (5, 3, 2)), ([(1,), (1, 1)], (1, 1)),
])
def test_the_common_shape(shapes: list[tuple[int, ...]], want: tuple[int, ...]) -> None:
    assert Program().t.broadcast_shape(*shapes) == want


def test_a_slice_names_every_dimension() -> None:
    program = Program(C)
    with pytest.raises(ValueError, match="argument"):
        program.t.slice(program.params[0], (0, 0), (2, 3))


def test_sizes_of_zero_are_no_negative_ones() -> None:
    program = Program()
    assert program.value(program.t.iota((0, 2), 0, S32)).shape == (0, 2)


def test_types_of_constants() -> None:
    t = Program().t
    for dtype in (BF16, U32, PRED):
        node = t.array([[1, 0]], dtype)
        assert t.dtype(node) is dtype and t.shape(node) == (1, 2) and t.rank(node) == 2
        assert node.attrs["literal"].value().dtype == dtype.numpy()


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_a_counted_loop(trips: int) -> None:
    program = Program(np.float32(1), np.int32(10))
    total, last = counted(program.t, trips, program.params, lambda t, i, state: [t.scale(state[0], 2), t.add(state[1], i)], "twice")
    loop = total.operands[0]
    assert [body.name for body in loop.bodies] == ["twice.condition", "twice.body"] and loop.bodies[1].notes["trips"] == trips
    assert [float(v) for v in program.value([total, last])] == [2.0 ** trips, 10 + sum(range(trips))]


@pytest.mark.parametrize("trips", [-1, 0, 1, 5])
def test_a_loop_whose_number_of_steps_is_computed(trips: int) -> None:
    program = Program(np.int64(trips), np.float32(1), np.int64(10))
    count, *state = program.params
    program.t.builder.at = (count,)
    total, last = repeat(program.t, count, state, lambda t, i, state: [t.scale(state[0], 2), t.add(state[1], i)])
    assert [body.name for body in total.operands[0].bodies] == ["condition", "body"]
    for body in total.operands[0].bodies:
        assert all(node.origin == (count,) for node in body.nodes)
    steps = max(trips, 0)
    assert [float(v) for v in program.value([total, last])] == [2.0 ** steps, 10 + sum(range(steps))]


@pytest.mark.parametrize(("least", "most", "message"), [
    (2, 2, ""), (2, None, ""), (0, None, ""), (1, 3, ""), (3, None, "3 or more"), (3, 3, "3"), (0, 1, "0 to 1"), (1, 1, "1"), (3, 4, "3 to 4"),
])
def test_tensors_of_so_many_dimensions(least: int, most: int | None, message: str) -> None:
    program = Program(np.zeros((2, 3), np.float32))
    if not message:
        assert program.t.shape_of(program.params[0], least, most) == (2, 3)
        return
    with pytest.raises(TypeFault) as raised:
        program.t.shape_of(program.params[0], least, most)
    assert raised.value.message == f"it takes a tensor of {message} dimensions, not one of the sizes [2, 3]"
