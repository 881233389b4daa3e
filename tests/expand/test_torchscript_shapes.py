"""Shapes given for the inputs of a TorchScript text, and all that follows from them."""
from __future__ import annotations

import pytest

from irscope.expand import bind_types
from irscope.expand.torchscript import Given, TypesSeen, run_program
from irscope.formats.torchscript.printer import print_module
from irscope.graph import Module, TensorType
from irscope.graph.dtypes import F32
from irscope.source import UserError
from tests.expand.torchscript_runs import graph, module_of

NET = module_of(graph("""
    %w : Tensor = prim::GetAttr[name="weight"](%self)
    %two : int = prim::Constant[value=2]()
    %none : NoneType = prim::Constant()
    %a : Tensor = aten::mm(%x, %x)
    %n : int = aten::dim(%a)
    %odd : bool = aten::gt(%n, %two)
    %y : Tensor = prim::If(%odd)
      block0():
        %b : Tensor = aten::neg(%a)
        -> (%b)
      block1():
        -> (%a)
    %pair : (Tensor, Tensor) = prim::TupleConstruct(%y, %a)
    return (%pair)
""", "%self : __torch__.M, %x : Tensor"))


def types(module: Module) -> dict[str, str]:
    return {node.name: str(node.type) for graph in module.graphs.values() for node in graph.nodes}


def test_what_follows_from_a_shape_is_known() -> None:
    found = types(bind_types(NET, {"x": (3, 3)}))
    assert found["x"] == found["a"] == found["y"] == "Float(3, 3)"
    assert found["b"] == "Tensor", "the branch that is not taken says nothing"
    assert found["n"] == "int"


def test_the_element_type_is_given_or_float32_and_argn_is_a_name() -> None:
    assert types(bind_types(NET, {"arg0": (3, 3)}, {"arg0": "f64"}))["a"] == "Double(3, 3)"


def test_the_typed_text_can_be_read_again() -> None:
    text = print_module(bind_types(NET, {"x": (3, 3)}))
    assert "%a : Float(3, 3) = aten::mm(%x, %x)" in text
    assert types(module_of(text))["a"] == "Float(3, 3)"


@pytest.mark.parametrize(("shapes", "dtypes", "words"), [
    ({"x": (3, 4)}, {}, "mm"), ({"z": (3,)}, {}, "there is no input 'z'"), ({}, {"x": "f64"}, "does not say the shape of input x"),
])
def test_what_does_not_fit_is_told(shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        bind_types(NET, shapes, dtypes)


def test_what_cannot_run_leaves_the_rest_known() -> None:
    module = module_of(graph("""
        %a : Tensor = aten::relu(%x)
        %b : Tensor = my::own(%a)
        return (%b)
    """))
    found = types(bind_types(module, {"x": (2, 5)}))
    assert found["a"] == "Float(2, 5)"
    assert found["b"] == "Tensor"


def test_a_shape_that_changes_with_the_trips_is_not_told() -> None:
    module = module_of(graph("""
        %three : int = prim::Constant[value=3]()
        %zero : int = prim::Constant[value=0]()
        %true : bool = prim::Constant[value=1]()
        %y : Tensor = prim::Loop(%three, %true, %x)
          block0(%i : int, %acc : Tensor):
            %xs : Tensor[] = prim::ListConstruct(%acc, %x)
            %next : Tensor = aten::cat(%xs, %zero)
            -> (%true, %next)
        return (%y)
    """))
    found = types(bind_types(module, {"x": (2, 5)}))
    assert found["y"] == "Float(8, 5)"
    assert found["next"] == "Tensor"


SEEN = graph("""
    %zero : int = prim::Constant[value=0]()
    %one : int = prim::Constant[value=1]()
    %a : Tensor = aten::mm(%x, %x)
    %v : Tensor = aten::select(%a, %zero, %one)
    %n : Tensor = aten::neg(%v)
    WRITE
    return (%n)
""", "%x : Float(3, 3)")


def test_types_of_views_are_noted_at_the_end_of_a_run_that_is_kept() -> None:
    """A view that was written to later has no type that is sure."""
    seen = TypesSeen()
    module = module_of(SEEN.replace("WRITE", ""))
    run_program(module, Given({"x": TensorType(F32, (3, 3))}), seen.later)
    found = seen.types()
    assert found is not None
    assert {node.name: str(type) for node, type in found.items()} == {"a": "Float(3, 3)", "v": "Float(3)", "n": "Float(3)"}
    seen = TypesSeen()
    run_program(module_of(SEEN.replace("WRITE", "%w : Tensor = aten::add_(%v, %one, %one)")), Given({"x": TensorType(F32, (3, 3))}), seen.later)
    assert seen.types() is None


def test_types_of_weights_are_noted_once_their_readers_say_them() -> None:
    module = module_of("""graph(%self : __torch__.Net, %x : Float(2, 6)):
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %b : Tensor = prim::GetAttr[name="bias"](%self)
  %y : Float(2, 4) = aten::linear(%x, %w, %b)
  return (%y)
""")
    seen = TypesSeen()
    run_program(module, Given(), seen.later)
    found = seen.types()
    assert found is not None
    assert {node.name: str(type) for node, type in found.items()} == {"w": "Float(4, 6)", "b": "Float(4)"}
