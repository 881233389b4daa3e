"""Running ONNX models: control flow, functions, sizes from data, and versions of operators; all numbers by numpy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irscope
from irscope.analysis.survey import Survey
from irscope.api.options import RunOptions
from irscope.expand import expand
from irscope.expand.programs import inferred
from irscope.source import UserError
from tests.formats.onnx_models import BOOL, FLOAT, INT64, graph, model, node

helper = pytest.importorskip("onnx.helper")
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def outputs(data: bytes, engine: str = "reference", **inputs: Any) -> list[Any]:
    return irscope.run(data, RunOptions(engine=engine), inputs=inputs).outputs


def one(name: str, *operands: Any, opset: int = 21, results: int = 1, **attributes: Any) -> Any:
    """The first result of one operator: the first operand is an input, the others are constants."""
    constants = {f"c{i}": np.asarray(value) for i, value in enumerate(operands[1:], 1) if value is not None}
    names = ["x", *(f"c{i}" if value is not None else "" for i, value in enumerate(operands[1:], 1))]
    made = node(name, names, [f"y{i}" for i in range(results)], **attributes)
    kind = helper.np_dtype_to_tensor_dtype(operands[0].dtype)
    data = model([made], [("x", kind, operands[0].shape)], [("y0", FLOAT, None)], constants, opset)
    return outputs(data, x=operands[0])[0]


def softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def test_softmax_changed_its_meaning_in_version_13() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7
    np.testing.assert_allclose(one("Softmax", x, opset=11), softmax(x.reshape(2, 12), 1).reshape(x.shape), rtol=1e-6)
    np.testing.assert_allclose(one("Softmax", x, opset=13), softmax(x, -1), rtol=1e-6)


@pytest.mark.parametrize(("starts", "ends", "axes", "steps", "want"), [
    ([0], [2**31], [1], [2], X[:, ::2]), ([-1], [-(2**31)], [1], [-1], X[:, ::-1]), ([1, -1], [0, -3], [0, 1], [-1, -1], X[1:0:-1, -1:-3:-1]),
    ([5], [1], [1], [1], X[:, 5:1]),
])
def test_slices(starts: list[int], ends: list[int], axes: list[int], steps: list[int], want: Any) -> None:
    np.testing.assert_array_equal(one("Slice", X, starts, ends, axes, steps), want)


def test_slopes_were_one_a_channel() -> None:
    np.testing.assert_allclose(one("PRelu", X.reshape(1, 2, 3), np.array([0.5, 2], np.float32), opset=6), np.where(X < 0, X * [[0.5], [2]], X).reshape(1, 2, 3))


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("stated", [None, (1, 2, 4, 3), ("a", "b", "c", "d"), (1, 2, 4, 4)])
def test_shape_inference_counts_windows_in_the_padding_which_do_not_exist(operator: str, stated: Any) -> None:
    """ONNX's shape inference gives four columns for opset 18; ONNX Runtime and the reference of ONNX give three."""
    names = ["y", "places"] if operator == "MaxPool" else ["y"]
    pool = node(operator, ["x"], names, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 1, 2], ceil_mode=1)
    data = model([pool, node("Relu", ["y"], ["z"])], [("x", FLOAT, (1, 2, 7, 6))], [("z", FLOAT, stated)], opset=18)
    assert str(irscope.load(data).module().main().nodes[-1].type) == "f32[1,2,4,3]"
    assert outputs(data, x=np.ones((1, 2, 7, 6), np.float32))[0].shape == (1, 2, 4, 3)


def test_clips_had_finite_bounds_from_version_6_to_10() -> None:
    """Recorded from ONNX Runtime: the bounds are attributes with defaults, so infinities become the greatest number."""
    x = np.array([np.inf, -np.inf, 2, -3, np.nan], np.float32)
    top = np.finfo(np.float32).max
    np.testing.assert_array_equal(one("Clip", x, opset=6, min=-1.0), np.array([top, -1, 2, -1, np.nan], np.float32))
    np.testing.assert_array_equal(one("Clip", x, opset=10), np.array([top, -top, 2, -3, np.nan], np.float32))


def test_a_resize_to_one_element_reads_the_first_one_as_pytorch_does() -> None:
    """Recorded from ONNX Runtime: ``pytorch_half_pixel`` is 0 where the result has one element."""
    x = np.array([[4, -2, 7, 1, 3], [0, 5, 2, 8, 6]], np.float32).reshape(1, 1, 2, 5)
    made = one("Resize", x, None, None, [1, 1, 1, 1], opset=19, mode="cubic", coordinate_transformation_mode="pytorch_half_pixel")
    np.testing.assert_array_equal(made, x[..., :1, :1])


def test_scaled_regions_round_in_their_own_type() -> None:
    """Recorded from ONNX Runtime: 5 times 0.7 is 3.5 in float32, and less in float64."""
    x = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
    made = one("MaxRoiPool", x, np.array([[0, 1, 2, 7, 5]], np.float32), opset=1, pooled_shape=[2, 3], spatial_scale=0.7)
    np.testing.assert_array_equal(made.ravel(), [18, 20, 21, 34, 36, 37])


@pytest.mark.parametrize(("mode", "want"), [("up", [0, 0, 1, 1, 1, 1]), ("nearest", [0, 0, 0, 1, 1, 1]), ("down", [0, 0, 0, 0, 0, 1])])
def test_powers_near_the_least_one(mode: str, want: list[int]) -> None:
    """The codes of 2^-127 and 2^-126 are 0 and 1; smaller numbers saturate."""
    x = np.array([2**-128, 2**-127, 1.25 * 2**-127, 1.5 * 2**-127, 1.75 * 2**-127, 2**-126], np.float32)
    made = one("Cast", x, opset=24, to=24, round_mode=mode)
    assert made.view(np.uint8).tolist() == want


def test_slices_were_attributes() -> None:
    np.testing.assert_array_equal(one("Slice", X, opset=9, starts=[0, -2], ends=[1, 9]), X[:1, -2:])


@pytest.mark.parametrize(("mode", "numpy_mode"), [("reflect", "reflect"), ("edge", "edge"), ("wrap", "wrap"), ("constant", "constant")])
def test_pads(mode: str, numpy_mode: Any) -> None:
    np.testing.assert_array_equal(one("Pad", X, [1, 2, 0, 1], mode=mode), np.pad(X, [(1, 0), (2, 1)], numpy_mode))


def test_reduction_axes_are_an_attribute_or_an_operand() -> None:
    np.testing.assert_allclose(one("ReduceMean", X, opset=11, axes=[1], keepdims=0), X.mean(1))
    np.testing.assert_allclose(one("ReduceMean", X, [1], keepdims=0), X.mean(1))
    np.testing.assert_array_equal(one("ReduceSum", X, noop_with_empty_axes=1), X)


def test_an_operator_that_the_standard_defines_by_a_function() -> None:
    labels = np.array([0, 2])
    want = -np.log(softmax(X, 1)[[0, 1], labels]).mean()
    np.testing.assert_allclose(one("SoftmaxCrossEntropyLoss", X, labels, opset=13), want, rtol=1e-6)


def test_functions_of_the_model_pass_attributes_on() -> None:
    elu = node("Elu", ["a"], ["b"])
    reference = helper.AttributeProto()
    reference.name, reference.type, reference.ref_attr_name = "alpha", 1, "strength"
    elu.attribute.append(reference)
    function = helper.make_function("lab", "Bend", ["a"], ["b"], [elu], [helper.make_opsetid("", 21)], ["strength"])
    data = model([node("Bend", ["x"], ["y"], domain="lab", strength=3.0)], [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3])],
                 functions=[function], domains={"lab": 1})
    np.testing.assert_allclose(outputs(data, x=X)[0], np.where(X < 0, 3 * (np.exp(X) - 1), X), rtol=1e-6)


# ---------------------------------------------------------------------- control flow


def branches(shapes: tuple[list[int], list[int]]) -> bytes:
    then = graph([node("Slice", ["x", "zero", "n"], ["t"])], [], [("t", FLOAT, None)], {"n": np.array([shapes[0][0]])})
    other = graph([node("Slice", ["x", "zero", "m"], ["e"])], [], [("e", FLOAT, None)], {"m": np.array([shapes[1][0]])})
    return model([node("If", ["c"], ["y"], then_branch=then, else_branch=other)], [("c", BOOL, []), ("x", FLOAT, [2, 3])],
                 [("y", FLOAT, None)], {"zero": np.array([0])})


@pytest.mark.parametrize("engine", ["reference", "llvm"])
@pytest.mark.parametrize(("rows", "condition"), [((1, 1), True), ((1, 2), True), ((1, 2), False)])
def test_a_branch_may_depend_on_data(engine: str, rows: tuple[int, int], condition: bool) -> None:
    data = branches(([rows[0]], [rows[1]]))
    made = outputs(data, engine, c=np.array(condition), x=X)[0]
    np.testing.assert_array_equal(made, X[:rows[0] if condition else rows[1]])


def doubling(trips: str, condition: str, stacks: bool = True) -> bytes:
    """Doubles x while its sum is small; a row for each trip."""
    body = graph([node("Add", ["s", "s"], ["s2"]), node("ReduceSum", ["s2"], ["total"], keepdims=0), node("Less", ["total", "limit"], ["go"]),
                  node("Identity", ["s2"], ["row"])],
                 [("i", INT64, []), ("c", BOOL, []), ("s", FLOAT, [3])],
                 [("go", BOOL, []), ("s2", FLOAT, [3]), *([("row", FLOAT, [3])] if stacks else [])])
    names = ["y", "rows"] if stacks else ["y"]
    return model([node("Loop", [trips, condition, "x"], names, body=body)], [("x", FLOAT, [3]), ("limit", FLOAT, [])],
                 [(name, FLOAT, None) for name in names], {"m": np.array(100), "few": np.array(3), "yes": np.array(True)})


@pytest.mark.parametrize("engine", ["reference", "llvm"])
@pytest.mark.parametrize(("trips", "limit", "ran"), [("m", 50.0, 5), ("few", 1e9, 3), ("m", 0.0, 1)])
def test_a_loop_ends_by_its_condition_or_its_trips(engine: str, trips: str, limit: float, ran: int) -> None:
    x = np.array([0.5, 0.5, 1], np.float32)
    y, rows = outputs(doubling(trips, "yes"), engine, x=x, limit=np.float32(limit))
    np.testing.assert_allclose(y, x * 2**ran)
    np.testing.assert_allclose(rows, np.stack([x * 2**k for k in range(1, ran + 1)]))


def test_a_loop_without_a_bound() -> None:
    x = np.array([0.5, 0.5, 1], np.float32)
    (y,) = outputs(doubling("", "yes", stacks=False), x=x, limit=np.float32(50))
    np.testing.assert_allclose(y, x * 32)


@pytest.mark.parametrize("engine", ["reference", "llvm"])
@pytest.mark.parametrize(("trips", "ran"), [("few", 3), ("m", 100)])
def test_a_loop_without_a_first_condition_ignores_that_of_its_body(engine: str, trips: str, ran: int) -> None:
    x = np.array([0.5, 0.5, 1], np.float32)
    (y,) = outputs(doubling(trips, "", stacks=False), engine, x=x, limit=np.float32(0))
    np.testing.assert_array_equal(y, x * np.float32(2)**ran)


def test_a_loop_without_trips_and_condition_does_not_end() -> None:
    with pytest.raises(UserError, match="does not end"):
        outputs(doubling("", "", stacks=False), x=np.ones(3, np.float32), limit=np.float32(50))


def test_a_loop_without_a_number_of_trips_may_carry_a_sequence() -> None:
    """As torch's exporter writes an EmbeddingBag: the condition counts the rows."""
    body = graph([node("SequenceInsert", ["rows", "x"], ["more"]), node("Add", ["i", "one"], ["next"]), node("Less", ["next", "three"], ["go"])],
                 [("n", INT64, []), ("c", BOOL, []), ("i", INT64, [])], [("go", BOOL, []), ("more", FLOAT, None), ("next", INT64, [])])
    sequence = helper.make_tensor_sequence_value_info
    body.input.insert(2, sequence("rows", FLOAT, None))
    body.output[1].CopyFrom(sequence("more", FLOAT, None))
    data = model([node("SequenceEmpty", [], ["none"]), node("Loop", ["", "yes", "none", "zero"], ["rows_out", "count"], body=body),
                  node("ConcatFromSequence", ["rows_out"], ["y"], axis=0)], [("x", FLOAT, [2, 3])], [("y", FLOAT, None)],
                 {"yes": np.array(True), "zero": np.array(0), "one": np.array(1), "three": np.array(3)})
    np.testing.assert_array_equal(outputs(data, x=X)[0], np.concatenate([X] * 3))


def test_work_counts_every_trip_of_a_loop() -> None:
    """Layers of up to 16 steps are unrolled, longer ones are loops: the work of a step is the same."""
    w, r = np.ones((1, 4, 3), np.float32), np.ones((1, 4, 4), np.float32)

    def flops(steps: int) -> float:
        data = model([node("RNN", ["x", "w", "r"], ["y"], hidden_size=4)], [("x", FLOAT, [steps, 2, 3])], [("y", FLOAT, None)], {"w": w, "r": r})
        module = irscope.load(data).module()
        expanded = Survey(expand(module)).totals.flops
        assert Survey(module).totals.flops == pytest.approx(expanded, rel=0.05)
        return expanded

    # A loop also counts its steps, and computes where each reads and writes.
    assert flops(32) == pytest.approx(4 * flops(8), rel=0.1)


def test_a_long_loop_counts_its_trips() -> None:
    body = graph([node("Exp", ["s"], ["s2"]), node("Identity", ["c"], ["go"])],
                 [("i", INT64, []), ("c", BOOL, []), ("s", FLOAT, [1000])], [("go", BOOL, []), ("s2", FLOAT, [1000])])
    data = model([node("Loop", ["many", "", "x"], ["y"], body=body)], [("x", FLOAT, [1000])], [("y", FLOAT, None)], {"many": np.array(50)})
    assert Survey(expand(irscope.load(data).module())).totals.flops >= 50 * 1000


@pytest.mark.parametrize("engine", ["reference", "llvm"])
@pytest.mark.parametrize(("length", "backwards"), [(3, 0), (40, 0), (40, 1)])
def test_scan(engine: str, length: int, backwards: int) -> None:
    body = graph([node("Add", ["s", "r"], ["s2"]), node("Mul", ["s2", "k"], ["out"])], [("s", FLOAT, [2]), ("r", FLOAT, [2])],
                 [("s2", FLOAT, [2]), ("out", FLOAT, [2])])
    data = model([node("Scan", ["z", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_directions=[backwards],
                       scan_output_axes=[1])],
                 [("z", FLOAT, [2]), ("x", FLOAT, [length, 2])], [("last", FLOAT, None), ("all", FLOAT, None)], {"k": np.float32(3)})
    x = np.random.default_rng(0).random((length, 2), np.float32)
    last, rows = outputs(data, engine, z=np.zeros(2, np.float32), x=x)
    want = np.cumsum(x[::-1] if backwards else x, 0)
    np.testing.assert_allclose(last, want[-1], rtol=1e-5)
    np.testing.assert_allclose(rows, 3 * want.T, rtol=1e-5)


# ---------------------------------------------------------------------- sizes from data


def test_a_size_is_computed_from_the_inputs() -> None:
    data = model([node("NonZero", ["x"], ["y"])], [("x", FLOAT, [2, 3])], [("y", INT64, None)])
    np.testing.assert_array_equal(outputs(data, x=X)[0], np.nonzero(X))
    with pytest.raises(UserError, match="depends on data"):
        outputs(data)


def test_open_dimensions_are_those_of_the_inputs() -> None:
    data = model([node("Shape", ["x"], ["s"], end=1), node("Concat", ["s", "m"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"])],
                 [("x", FLOAT, ["n", 2, 3])], [("y", FLOAT, None)], {"m": np.array([-1])})
    assert outputs(data, x=np.zeros((5, 2, 3), np.float32))[0].shape == (5, 6)
    bound = irscope.run(data, RunOptions(engine="reference", shapes={"x": (4, 2, 3)}))
    assert bound.outputs[0].shape == (4, 6)
    with pytest.raises(UserError, match="open dimensions") as caught:
        outputs(data)
    assert "--shape x=" in str(caught.value.help)


def test_what_is_not_computed_is_refused_by_name() -> None:
    noise = model([node("RandomNormalLike", ["x"], ["y"])], [("x", FLOAT, [2, 3])], [("y", FLOAT, None)])
    with pytest.raises(UserError, match="RandomNormalLike") as caught:
        outputs(noise, x=X)
    assert "random numbers" in str(caught.value.help)
    other = model([node("Mystery", ["x"], ["y"], domain="lab")], [("x", FLOAT, [2])], [("y", FLOAT, [2])], domains={"lab": 1})
    with pytest.raises(UserError, match=r"%y = lab\.Mystery"):
        outputs(other, x=np.zeros(2, np.float32))


@pytest.mark.parametrize("length", [5, 30])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_recurrent_layer_stops_at_the_end_of_each_sequence(length: int, direction: str) -> None:
    rng = np.random.default_rng(0)
    directions = 2 if direction == "bidirectional" else 1
    x = rng.standard_normal((length, 2, 3)).astype(np.float32)
    w, r = (rng.standard_normal((directions, 4, n)).astype(np.float32) for n in (3, 4))
    lengths = np.array([length, length - 2], np.int32)
    data = model([node("RNN", ["x", "w", "r", "", "n"], ["y", "h"], hidden_size=4, direction=direction)], [("x", FLOAT, x.shape)],
                 [("y", FLOAT, None), ("h", FLOAT, None)], {"w": w, "r": r, "n": lengths})
    y, h = outputs(data, x=x)
    for d in range(directions):
        back = direction == "reverse" or d == 1
        state, want = np.zeros((2, 4), np.float32), np.zeros((length, 2, 4), np.float32)
        for i in reversed(range(length)) if back else range(length):
            new = np.tanh(x[i] @ w[d].T + state @ r[d].T)
            on = (i < lengths)[:, None]
            state, want[i] = np.where(on, new, state), np.where(on, new, 0)
        np.testing.assert_allclose(y[:, d], want, atol=1e-5)
        np.testing.assert_allclose(h[d], state, atol=1e-5)


def test_small_powers_are_products() -> None:
    for exponent, factors in ((2.0, 1), (3.0, 2)):
        data = model([node("Pow", ["x", "n"], ["y"])], [("x", FLOAT, [2, 3])], [("y", FLOAT, None)], {"n": np.float32(exponent)})
        ops = [n.op.name for n in expand(irscope.load(data).module()).main().nodes]
        assert ops.count("multiply") == factors and "power" not in ops
        np.testing.assert_allclose(outputs(data, x=X)[0], X**exponent)


@pytest.mark.parametrize("results", [1, 2])
def test_an_operator_that_is_not_computed_stays_where_a_part_is_enough(results: int) -> None:
    names = [f"u{i}" for i in range(results)]
    data = model([helper.make_node("Mystery", ["x"], names, domain="my.own")], [("x", FLOAT, (2,))], [(name, FLOAT, (2,)) for name in names])
    module = irscope.load(data).module()
    with pytest.raises(UserError, match="irscope does not compute this operator"):
        expand(module)
    made = inferred(module).run_program(module, partial=True).main()
    (kept,) = (n for n in made.nodes if "Mystery" in n.op.name)
    parts = [n.op.name for n in made.nodes if kept in n.operands and n is not made.root]
    assert parts == ["get-tuple-element"] * (results if results > 1 else 0)


@pytest.mark.parametrize("given", ["c", "arg1"])
def test_a_branch_that_depends_on_an_input_that_is_not_given_is_refused(given: str) -> None:
    bodies = {f"{way}_branch": graph([node("Slice", ["x", "a", way], ["z"])], [], [("z", FLOAT, None)]) for way in ("then", "else")}
    constants = {"a": np.array([0]), "then": np.array([1]), "else": np.array([2])}
    data = model([node("If", ["c"], ["y"], **bodies)], [("x", FLOAT, (2, 3)), ("c", BOOL, ())], [("y", FLOAT, None)], constants)
    with pytest.raises(UserError, match=r"%y = If: .*depends on data of the input c, which is not given"):
        outputs(data, x=X)
    np.testing.assert_array_equal(irscope.run(data, RunOptions(engine="llvm"), inputs={"x": X, given: np.array(True)}).outputs[0], X[:1])


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [2**63 - 1, -2**63, 4, 3, 2, 1, 0, -1, -2, -3])
def test_diagonals_outside_of_a_matrix(k: int, upper: int) -> None:
    near = max(-9, min(k, 9))
    np.testing.assert_array_equal(one("Trilu", X, np.int64(k), upper=upper), np.triu(X, near) if upper else np.tril(X, near))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 1 << 62])
def test_a_window_of_channels_beyond_all_channels(size: int) -> None:
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 4, 2)
    low, high = min((size - 1) // 2, 4), min(size // 2, 4)
    squares = np.stack([(x[:, max(c - low, 0):c + high + 1].astype(np.float64) ** 2).sum(1) for c in range(4)], 1)
    want = x / (1 + 0.5 / size * squares) ** 0.75
    np.testing.assert_allclose(one("LRN", x, size=size, alpha=0.5), want, rtol=1e-5)


def test_a_call_of_a_function_may_have_graphs_as_attributes() -> None:
    twice = helper.make_function("lab", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 21)])
    beside = graph([node("Constant", [], ["q"], value_float=7.0)], [], [("q", FLOAT, ())])
    data = model([node("Twice", ["x"], ["y"], domain="lab", beside=beside)], [("x", FLOAT, (2, 3))], [("y", FLOAT, None)],
                 functions=[twice], domains={"lab": 1})
    np.testing.assert_array_equal(outputs(data, x=X)[0], X + X)
