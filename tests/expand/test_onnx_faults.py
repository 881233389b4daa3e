"""Models whose operators do not fit their operands, attributes or bodies are refused at the operator."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from irscope.api import load
from irscope.expand.onnx.interpreter import run_program
from irscope.graph import TensorType
from irscope.graph.dtypes import F32
from irscope.source import UserError
from tests.formats.onnx_models import BOOL, FLOAT, INT64, graph, model, node

helper = pytest.importorskip("onnx.helper")
X = ("x", FLOAT, (2, 3))
Y = ("y", FLOAT, None)
ROW = ("r", FLOAT, (3,))


def loop(inputs: list[Any], outputs: list[Any], trips: str = "n") -> Any:
    """A loop whose body should take a number, a condition and a tensor."""
    body = graph([node("Identity", ["c"], ["d"]), node("Identity", ["v"], ["w"])], inputs, outputs)
    return node("Loop", [trips, "", "x"], ["y"], body=body)


C, D, N, V, W = ("c", BOOL, ()), ("d", BOOL, ()), ("i", INT64, ()), ("v", FLOAT, (2, 3)), ("w", FLOAT, (2, 3))
SCANNED = graph([node("Identity", ["r"], ["w"])], [ROW], [("w", FLOAT, (3,))])
CAST = graph([node("Identity", ["a"], ["b"])], [("a", FLOAT, (2, 3))], [("b", FLOAT, (2, 3))])
TWO = graph([node("Add", ["a", "b"], ["e"])], [("a", FLOAT, (2, 3)), ("b", FLOAT, (2, 3))], [("e", FLOAT, (2, 3))])

MODELS: dict[str, tuple[list[Any], str]] = {
    "Loop with a body that takes too few": ([loop([N, C], [D, W])], "takes 2 operands, but gets 3"),
    "Loop with a body that gives too few": ([loop([N, C, V], [D])], "gives 1 results, but 2 are needed"),
    "Loop over a sequence of trips": ([node("SequenceConstruct", ["x"], ["s"]), loop([N, C, V], [D, W], "s")], "the number of trips"),
    "Scan with axes in words": ([node("Scan", ["x"], ["y"], body=SCANNED, num_scan_inputs=1, scan_input_axes=["a"])],
                                "scan_input_axes has 1 integers"),
    "Scan with a body that takes too many": ([node("Scan", ["x"], ["y"], body=TWO, num_scan_inputs=1)], "takes 2 operands, but gets 1"),
    "SequenceMap over sequences of other lengths": (
        [node("SequenceConstruct", ["x"], ["s"]), node("SequenceConstruct", ["x", "x"], ["t"]), node("SequenceMap", ["s", "t"], ["m"], body=TWO),
         node("SequenceAt", ["m", "n"], ["y"])], "equal lengths"),
    "If with bodies that take operands": ([node("If", ["k"], ["y"], then_branch=CAST, else_branch=CAST)], "takes 1 operands, but gets 0"),
    "Conv of a matrix": ([node("Conv", ["x", "x"], ["y"])], "the operand X is a tensor of 3 or more dimensions, not float"),
    "Cast to a list": ([node("Cast", ["x"], ["y"], to=[1])], r"the attribute to is int\|str, got '\[1\]'"),
    "Einsum of nothing": ([node("Einsum", [], ["y"], equation="i->i")], "at least one operand is needed"),
    "Attention without a key": ([node("Attention", ["x", "", "x"], ["y"])], "takes the operand K, which is missing"),
    "Attention with an attribute of another kind": ([node("Attention", ["x", "x", "x"], ["y"], q_num_heads="a")], "the attribute q_num_heads is int"),
    "Sum without an operand": ([node("Sum", ["x", ""], ["y"])], "takes the operand inputs, which is missing"),
    "Range to infinity": ([node("Range", ["a", "b", "a"], ["y"])], "must be finite real numbers"),
}
CONSTANTS = {"n": np.array(2), "k": np.array(True), "a": np.array(1, np.float32), "b": np.array(np.inf, np.float32)}


@pytest.mark.parametrize("name", MODELS)
def test_a_fault_of_a_model_is_reported_at_its_operator(name: str) -> None:
    nodes, message = MODELS[name]
    data = model(nodes, [X], [Y], CONSTANTS, opset=23)
    with pytest.raises(UserError, match=rf"%\w+ = {name.split()[0]}: .*{message}"):
        run_program(load(data, format="onnx").module())


def test_an_attribute_may_have_the_name_that_irscope_gives_to_versions() -> None:
    data = model([node("Relu", ["x"], ["y"], opset="a")], [X], [Y])
    assert run_program(load(data, format="onnx").module()).main().result().type == TensorType(F32, (2, 3))


def drawn(seed: int) -> bytes:
    """A model with a construct over operands and bodies of any kind and number."""
    draw = random.Random(seed)
    before = [node("SequenceConstruct", ["x"], ["s"]), node("SequenceConstruct", ["x", "x"], ["t"]), node("SequenceEmpty", [], ["e"]),
              node("Less", ["m", "n"], ["l"])]
    pool = ["x", "x", "x", "n", "n", "k", "l", "m", "a", "s", "t", "e", ""]

    def body(takes: int, gives: int) -> Any:
        inputs = [(f"p{i}", draw.choice([FLOAT, INT64, BOOL]), draw.choice([None, (), (2, 3), (3,)])) for i in range(takes)]
        names = [f"p{i}" for i in range(takes)] + (pool[:-1] if draw.random() < 0.5 else ["x", "k", "n"])
        made = [node(draw.choice(["Identity", "Identity", "SequenceConstruct", "Neg", "Not"]), [draw.choice(names)], [f"q{i}"]) for i in range(gives)]
        if gives and draw.random() < 0.6:
            made[0] = node("Identity", [draw.choice(["k", "l", *names[1:2]])], ["q0"])
        return graph(made, inputs, [(f"q{i}", draw.choice([FLOAT, INT64]), draw.choice([None, (2, 3), ()])) for i in range(gives)])
    name, count = draw.choice(["If", "Loop", "Loop", "Scan", "SequenceMap"]), draw.randrange(1, 5)
    operands = [draw.choice(pool) for _ in range(count)]
    if draw.random() < 0.8:
        firsts = {"If": ["k", "l"], "Loop": ["n", "m", ""], "Scan": ["x"], "SequenceMap": ["s", "t", "e"]}[name]
        operands[0] = draw.choice(firsts)
        operands[1:] = operands[1:] if name != "If" else []
        operands[1:2] = [draw.choice(["k", "l", ""])] if name == "Loop" else operands[1:2]
    off = draw.choice([0, 0, 0, 0, 0, 0, 1, -1])
    takes = max((0 if name == "If" else len(operands)) + off, 0)
    results = draw.randrange(1, 4)
    attributes: dict[str, Any] = {}
    for key in ("then_branch", "else_branch") if name == "If" else ("body",):
        attributes[key] = body(takes, max(results + (name == "Loop") + draw.choice([0, 0, 0, 0, 0, 1, -1]), 1))
    if name == "Scan":
        attributes["num_scan_inputs"] = draw.choice([1, 1, 2, 0, 9])
        for key in ("scan_input_axes", "scan_output_axes", "scan_input_directions", "scan_output_directions"):
            if draw.random() < 0.2:
                attributes[key] = draw.choice([[0], [1], [-1], [0, 1], [7], ["a"], [0.5]])
    after = [node("Identity", ["y0"], ["y"])] if draw.random() < 0.8 else [node("SequenceAt", ["y0", "n"], ["y"])]
    made = node(name, operands, [f"y{i}" for i in range(results)], **attributes)
    constants = {**CONSTANTS, "k": np.array(draw.random() < 0.8)}
    return model([*before, made, *after], [X, ("m", INT64, draw.choice([(), (1,)]))], [Y], constants, opset=draw.choice([11, 17, 21]))


def test_constructs_over_any_operands_and_bodies_run_or_say_what_does_not_fit() -> None:
    for seed in range(250):
        try:
            run_program(load(drawn(seed), format="onnx").module())
        except UserError:
            pass
        except Exception as fault:
            raise AssertionError(f"seed {seed}") from fault
