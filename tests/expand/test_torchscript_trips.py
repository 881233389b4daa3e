"""The number of trips of a loop is an int, whatever a text calls one."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.expand import bind_types, expand
from irscope.source import UserError
from tests.expand.torchscript_runs import graph, module_of, run

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
