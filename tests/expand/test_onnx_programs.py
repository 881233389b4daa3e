"""Control flow, sequences and refusals of ONNX models: what they give, and their primitives in a golden file."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.api.options import RunOptions
from irscope.expand import bind_types, expand
from irscope.source import UserError
from tests.expand.test_expansions import listed
from tests.formats.onnx_models import BOOL, FLOAT, INT64, graph, model, node

helper = pytest.importorskip("onnx.helper")
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
C = np.array(True)
sequence = helper.make_tensor_sequence_value_info


def chosen(then: Any, other: Any, outputs: list[str], condition: Any = None) -> bytes:
    constants = {"k": np.float32(2), **({"c": condition} if condition is not None else {})}
    return model([node("If", ["c"], outputs, then_branch=then, else_branch=other)], [*([("c", BOOL, [])] if condition is None else []), ("x", FLOAT, [2, 3])],
                 [(name, FLOAT, None) for name in outputs], constants)


TWO = graph([node("Mul", ["x", "k"], ["a"]), node("Neg", ["x"], ["b"])], [], [("a", FLOAT, None), ("b", FLOAT, None)])
BACK = graph([node("Abs", ["x"], ["d"]), node("Identity", ["x"], ["e"])], [], [("d", FLOAT, None), ("e", FLOAT, None)])
STEP = graph([node("Add", ["s", "x"], ["s2"]), node("Mul", ["s2", "k"], ["row"]), node("Identity", ["c"], ["go"])],
             [("i", INT64, []), ("c", BOOL, []), ("s", FLOAT, [2, 3])], [("go", BOOL, []), ("s2", FLOAT, [2, 3]), ("row", FLOAT, [2, 3])])
COUNT = graph([node("Cast", ["i"], ["f"], to=FLOAT), node("Add", ["s", "f"], ["s2"]), node("Identity", ["c"], ["go"])],
              [("i", INT64, []), ("c", BOOL, []), ("s", FLOAT, [2, 3])], [("go", BOOL, []), ("s2", FLOAT, [2, 3])])


def looped(trips: int, body: Any, names: list[str], condition: str = "yes") -> bytes:
    return model([node("Loop", ["n", condition, "x"], names, body=body)], [("x", FLOAT, [2, 3])], [(name, FLOAT, None) for name in names],
                 {"n": np.array(trips), "k": np.float32(2), "yes": np.array(True), "no": np.array(False)})


def scanned(length: int, **attributes: Any) -> bytes:
    body = graph([node("Add", ["s", "r"], ["s2"]), node("Sub", ["s2", "q"], ["out"])], [("s", FLOAT, [2]), ("r", FLOAT, [2]), ("q", FLOAT, [2])],
                 [("s2", FLOAT, [2]), ("out", FLOAT, [2])])
    return model([node("Scan", ["z", "x", "y"], ["last", "all"], body=body, num_scan_inputs=2, **attributes)],
                 [("z", FLOAT, [2]), ("x", FLOAT, [length, 2]), ("y", FLOAT, [2, length])], [("last", FLOAT, None), ("all", FLOAT, None)])


def rows_of_matrices(length: int, axis: int) -> bytes:
    body = graph([node("Add", ["s", "r"], ["s2"]), node("Neg", ["s2"], ["out"])], [("s", FLOAT, [2, 4]), ("r", FLOAT, [2, 4])],
                 [("s2", FLOAT, [2, 4]), ("out", FLOAT, [2, 4])])
    return model([node("Scan", ["z", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_axes=[axis], scan_output_axes=[axis])],
                 [("z", FLOAT, [2, 4]), ("x", FLOAT, [*[2, 4][:axis], length, *[2, 4][axis:]])], [("last", FLOAT, None), ("all", FLOAT, None)])


def mapped() -> bytes:
    body = graph([node("Add", ["a", "b"], ["ab"]), node("Mul", ["ab", "k"], ["r"]), node("Sub", ["r", "t"], ["m"]), node("Neg", ["a"], ["n"])],
                 [("a", FLOAT, None), ("b", FLOAT, None), ("t", FLOAT, None)], [("m", FLOAT, None), ("n", FLOAT, None)])
    return model([node("SequenceConstruct", ["x", "w"], ["s"]), node("SequenceConstruct", ["w", "x"], ["u"]),
                  node("SequenceMap", ["s", "u", "x"], ["ms", "ns"], body=body), node("ConcatFromSequence", ["ms"], ["y"], axis=0),
                  node("SequenceAt", ["ns", "one"], ["z"])], [("x", FLOAT, [2, 3]), ("w", FLOAT, [2, 3])], [("y", FLOAT, None), ("z", FLOAT, None)],
                 {"k": np.float32(3), "one": np.array(1)})


SCAN = {"z": np.zeros(2, np.float32), "x": np.arange(6, dtype=np.float32).reshape(3, 2), "y": np.ones((2, 3), np.float32)}
LONG = {"z": np.zeros(2, np.float32), "x": np.arange(80, dtype=np.float32).reshape(40, 2), "y": np.arange(80, dtype=np.float32).reshape(2, 40)}
PROGRAMS: dict[str, tuple[Callable[[], bytes], Mapping[str, Any], list[Any]]] = {
    "two results of a branch": (lambda: chosen(TWO, BACK, ["p", "q"]), {"c": C, "x": X}, [2 * X, -X]),
    "two results of the other branch": (lambda: chosen(TWO, BACK, ["p", "q"]), {"c": ~C, "x": X}, [np.abs(X), X]),
    "a branch that is known": (lambda: chosen(TWO, BACK, ["p", "q"], np.array(False)), {"x": X}, [np.abs(X), X]),
    "a few trips": (lambda: looped(3, STEP, ["y", "rows"]), {"x": X}, [4 * X, np.stack([4 * X, 6 * X, 8 * X])]),
    "one trip": (lambda: looped(1, STEP, ["y", "rows"]), {"x": X}, [2 * X, np.stack([4 * X])]),
    "many trips": (lambda: looped(40, STEP, ["y", "rows"]), {"x": X}, [41 * X, np.stack([2 * (i + 2) * X for i in range(40)])]),
    "no trip": (lambda: looped(0, STEP, ["y", "rows"]), {"x": X}, [X, np.zeros((0, 2, 3), np.float32)]),
    "a condition that fails at once": (lambda: looped(5, STEP, ["y", "rows"], "no"), {"x": X}, [X, np.zeros((0, 2, 3), np.float32)]),
    "the number of the trip": (lambda: looped(4, COUNT, ["y"]), {"x": X}, [X + 6]),
    "the number of many trips": (lambda: looped(40, COUNT, ["y"]), {"x": X}, [X + sum(range(40))]),
    "two inputs of a scan": (lambda: scanned(3, scan_input_axes=[0, 1]), SCAN, [SCAN["x"].sum(0), SCAN["x"].cumsum(0) - 1]),
    "a scan from the end": (lambda: scanned(3, scan_input_axes=[0, 1], scan_input_directions=[1, 0], scan_output_directions=[1]), SCAN,
                            [SCAN["x"].sum(0), (SCAN["x"][::-1].cumsum(0) - 1)[::-1]]),
    "a scan along the last axis": (lambda: scanned(3, scan_input_axes=[0, -1], scan_output_axes=[-1]), SCAN, [SCAN["x"].sum(0), (SCAN["x"].cumsum(0) - 1).T]),
    **{f"a scan of {n} matrices along axis {axis}": (
        partial(rows_of_matrices, n, axis), {"z": np.zeros((2, 4), np.float32), "x": np.moveaxis(np.arange(8 * n, dtype=np.float32).reshape(n, 2, 4), 0, axis)},
        [np.arange(8 * n, dtype=np.float32).reshape(n, 2, 4).sum(0), np.moveaxis(-np.arange(8 * n, dtype=np.float32).reshape(n, 2, 4).cumsum(0), 0, axis)])
       for n, axis in ((3, 1), (3, 2), (40, 1))},
    "a long scan": (lambda: scanned(40, scan_input_axes=[0, 1]), LONG, [LONG["x"].sum(0), LONG["x"].cumsum(0) - LONG["y"].T]),
    "a map over sequences": (mapped, {"x": X, "w": X + 1}, [np.concatenate([3 * (2 * X + 1) - X] * 2), -(X + 1)]),
    "an output that nothing wants": (lambda: model([node("Dropout", ["x"], ["y", ""]), node("TopK", ["y", "one"], ["", "at"], axis=1)], [("x", FLOAT, [2, 3])],
                                                   [("at", INT64, None)], {"one": np.array([1])}), {"x": X}, [np.array([[2], [2]])]),
    "an operand that is left out": (lambda: model([node("Clip", ["x", "", "one"], ["y"])], [("x", FLOAT, [2, 3])], [("y", FLOAT, None)], {"one": np.float32(1)}),
                                    {"x": X}, [np.minimum(X, 1)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_model_gives_what_numpy_gives(name: str) -> None:
    make, given, wanted = PROGRAMS[name]
    got = irscope.run(make(), RunOptions(engine="reference"), inputs=dict(given)).outputs
    assert len(got) == len(wanted)
    for one, want in zip(got, wanted, strict=True):
        assert one.dtype == want.dtype
        np.testing.assert_allclose(one, want, rtol=1e-5)


def test_primitives_of_models(golden: Callable[[str, str], None]) -> None:
    golden("onnx.txt", "".join(f"==== {name}\n{listed(expand(irscope.load(make()).module()))}" for name, (make, _, _) in PROGRAMS.items()))


NESTED = graph([node("SequenceInsert", ["rows", "x"], ["more"]), node("Identity", ["c"], ["go"])], [("n", INT64, []), ("c", BOOL, [])],
               [("go", BOOL, []), ("more", FLOAT, None)])
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "scan lengths": (lambda: scanned(3), r"the tensors have \[2, 3\] slices"),
    "scan axes": (lambda: scanned(3, scan_input_axes=[0]), "scan_input_axes has 2 integers"),
    "a string": (lambda: model([node("StringNormalizer", ["x"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])]), "does not compute this operator"),
    "an input that is a sequence": (lambda: _sequence_input(), "the input s is .*, not a tensor"),
    "a scan of an older version": (lambda: model([node("Scan", ["", "z", "x"], ["last", "all"], num_scan_inputs=1, body=graph(
        [node("Add", ["s", "r"], ["s2"]), node("Identity", ["s2"], ["out"])], [("s", FLOAT, [2]), ("r", FLOAT, [2])], [("s2", FLOAT, [2]), ("out", FLOAT, [2])]))],
        [("z", FLOAT, [1, 2]), ("x", FLOAT, [1, 3, 2])], [("last", FLOAT, None), ("all", FLOAT, None)], opset=8), "Scan of version 8 is not supported"),
    "a map over a tensor": (lambda: model([node("SequenceMap", ["x"], ["s"], body=graph([node("Neg", ["a"], ["b"])], [("a", FLOAT, None)], [("b", FLOAT, None)])),
                                           node("ConcatFromSequence", ["s"], ["y"], axis=0)], [("x", FLOAT, [2])], [("y", FLOAT, None)]),
                            "its first operand is a sequence"),
}


def _sequence_input() -> bytes:
    made = helper.make_graph([node("SequenceAt", ["s", "i"], ["y"])], "g", [sequence("s", FLOAT, None)], [helper.make_tensor_value_info("y", FLOAT, None)],
                             [helper.make_tensor("i", INT64, [], [0])])
    data: bytes = helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()
    return data


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_is_refused(name: str) -> None:
    make, said = REFUSED[name]
    with pytest.raises(UserError, match=said):
        expand(irscope.load(make()).module())


def test_named_dimensions_are_those_of_the_inputs() -> None:
    data = model([node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), node("Add", ["a", "w"], ["y"])], [("x", FLOAT, ["n", 4]), ("w", FLOAT, ["n", "m"])],
                 [("y", FLOAT, ["n", "m"]), ("b", FLOAT, None)])
    module = irscope.load(data).module()
    made = bind_types(module, {"x": (3, 4), "w": (3, 2)})
    types = {n.name: str(n.type) for n in made.main().nodes}
    assert (types["x"], types["w"], types["y"], types["a"], types["b"]) == ("f32[3,4]", "f32[3,2]", "f32[3,2]", "f32[3,2]", "f32[3,2]")
    assert str(module.main().params[0].type) == "f32[n,4]"
    with pytest.raises(UserError, match=r"the input x is f32\[n,4\], but f32\[3\] is given"):
        bind_types(module, {"x": (3,)})
