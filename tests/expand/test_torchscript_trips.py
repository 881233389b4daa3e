"""The number of trips of a loop is an int, whatever a text calls one."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.expand import bind_types, expand
from irscope.expand.torchscript import Given, run_counted
from irscope.graph import TensorType
from irscope.graph.dtypes import F32
from irscope.ops import hlo
from irscope.source import UserError
from tests.expand.torchscript_runs import graph, module_of, primitive, run
from tests.lower.whole import reference

TRIPS = """
    %true : bool = prim::Constant[value=1]()
    %two : int = prim::Constant[value=2]()
    %none : NoneType = prim::Constant()
    %y : Tensor = prim::Loop(TRIPS, %true, %x)
      block0(%i : int, %v : Tensor):
        %w : Tensor = aten::mul(%v, %two)
        -> (%true, %w)
    return (%y)
"""


@pytest.mark.parametrize(("trips", "type", "sizes"), [("%x", "f32", ()), ("%x", "s64", (2,))])
def test_a_tensor_is_a_number_of_trips_only_where_it_is_an_int(trips: str, type: str, sizes: tuple[int, ...]) -> None:
    """Found by the fuzzer: an operand that the text calls an int may be any tensor."""
    module = module_of(graph(TRIPS.replace("TRIPS", trips)))
    with pytest.raises(UserError, match="number of trips is of type f32" if type == "f32" else "elements"):
        expand(bind_types(module, {"x": sizes}, {"x": type}))


def test_a_tensor_of_one_integer_is_a_number_of_trips() -> None:
    assert run(graph(TRIPS.replace("TRIPS", "%n"), "%x : Tensor, %n : Tensor"), x=np.float32(1.5), n=np.int32(3))[0] == 12


@pytest.mark.parametrize(("trips", "rolled"), [(256, False), (257, True)])
def test_a_loop_of_many_trips_stays_a_loop(trips: int, rolled: bool) -> None:
    """What it gives is the same; a graph does not grow with the number of trips beyond 256."""
    text = graph(TRIPS.replace("TRIPS", "%n").replace("%none :", f"%n : int = prim::Constant[value={trips}]()\n    %none :").replace(
        "aten::mul(%v, %two)", "aten::add(%v, %two, %two)"))
    x = np.zeros(2, np.float32)
    made = primitive(text, {"x": x})
    assert any(node.op is hlo.while_ for node in made.main().nodes) == rolled and (len(made.main().nodes) > 256) == (not rolled)
    assert reference(made, [x])[0].tolist() == [4 * trips, 4 * trips]


def test_runs_are_counted() -> None:
    """Also those of statements in a loop that is unrolled."""
    made, runs = run_counted(module_of(graph(TRIPS.replace("TRIPS", "%two"))), Given({"x": TensorType(F32, (2,))}))
    assert {node.name: count for node, count in runs.items()} == {"true": 1, "two": 1, "none": 1, "y": 1, "w": 2}
    assert [node.op.name for node in made.main().nodes].count("multiply") == 2
