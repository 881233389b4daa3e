"""Constants whose values a text leaves out: fusion needs their types alone, running the program needs the values."""
from __future__ import annotations

import pytest

import irscope
from irscope.expand import expand
from irscope.lint.context import Context
from irscope.lint.fusion import remarks
from irscope.lint.verdicts import verdicts_of
from irscope.source import UserError

TEXT = """graph(%x : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu)):
  %one : int = prim::Constant[value=1]()
  %table : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  %y : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu) = aten::add(%x, %table, %one)
  %z : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu) = aten::tanh(%y)
  return (%z)
"""


@pytest.mark.parametrize("policy", ["irscope", "tvm", "inductor", "xla-cpu", "xla-gpu"])
def test_an_elided_tensor_is_an_input_of_its_type(policy: str) -> None:
    module = irscope.load(TEXT, format="torchscript").module()
    (edge,) = verdicts_of(module, policy)
    assert (*edge.names, edge.fused) == ("y", "z", "all")
    assert remarks(module, policy)[0].startswith("the text elides the values of 1 constants (%table): they are taken for inputs of their types")
    context = Context(module)
    assert context.costs.planned is not None and context.costs.planned.kernels == 1


def test_whole_texts_say_nothing_of_it() -> None:
    whole = irscope.load(TEXT.replace("<Tensor>", "{2}"), format="torchscript").module()
    assert not any("elides" in line for line in remarks(whole, "irscope"))


def test_what_runs_needs_the_values() -> None:
    module = irscope.load(TEXT, format="torchscript").module()
    with pytest.raises(UserError, match="the text elides the value of constant %table"):
        expand(module)
    assert len(expand(module, outline=True).main().params) == 2


def test_a_tensor_without_a_type_cannot_be_one() -> None:
    open_ = TEXT.replace("%table : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu)", "%table : Tensor")
    with pytest.raises(UserError, match="the text elides the value of constant %table"):
        verdicts_of(irscope.load(open_, format="torchscript").module(), "irscope")
