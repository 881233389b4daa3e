"""TorchScript programs of constants, inputs and numbers, with inputs and what numpy gives for them."""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.expand.torchscript_texts import Program, X, torch

PROGRAMS = {
    "constants of numbers": torch("""
%f : float = prim::Constant[value=2]()
%b : bool = prim::Constant[value=1]()
%l : int[] = prim::Constant[value=[3, 4]]()
%t : (int, float) = prim::Constant[value=(5, 0.5)]()
%a : int, %h : float = prim::TupleUnpack(%t)
%g : int = aten::__getitem__(%l, %one)
%i : int = aten::Int(%b)
%s : int = aten::add(%g, %a)
%u : int = aten::add(%s, %i)
%v : Tensor = aten::mul(%x, %u)
%w : Tensor = aten::mul(%v, %h)
%y : Tensor = aten::div(%w, %f)
return (%y)""", X * 2.5),
    "constants of tensors": torch("""
%a : Float(3, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value= 1  2  3 [ CPUFloatType{3} ]]()
%b : Double() = prim::Constant[value={2.5}]()
%c : Long() = prim::Constant[value={3}]()
%d : Tensor = aten::mul(%x, %a)
%e : Tensor = aten::add(%d, %b, %one)
%y : Tensor = aten::mul(%e, %c)
return (%y)""", ((X * [1, 2, 3] + 2.5) * 3).astype(np.float32)),
    "constants of tensors without types": torch("""
%b : Tensor = prim::Constant[value={2.5}]()
%c : Tensor = prim::Constant[value={3}]()
%e : Tensor = aten::add(%x, %b, %one)
%y : Tensor = aten::mul(%e, %c)
return (%y, %c, %b)""", ((X + 2.5) * 3).astype(np.float32), np.int64(3), np.float64(2.5)),
    "a tuple as input": torch("""
%a : Tensor, %b : Tensor = prim::TupleUnpack(%t)
%y : Tensor = aten::sub(%a, %b, %one)
return (%y)""", X - 1, inputs="%t : (Tensor, Tensor)", **{"t.0": X, "t.1": np.ones_like(X)}),
    "a list as input": torch("""
%n : int = aten::len(%t)
%a : Tensor = aten::__getitem__(%t, %two)
%y : Tensor = aten::mul(%a, %n)
return (%y)""", np.full(2, 6, np.float32), inputs="%t : Tensor[]",
                            **{"t.0": X, "t.1": X, "t.2": np.full(2, 2, np.float32)}),
    "a list without parts": torch("return (%x)", inputs="%x : Tensor, %t : Tensor[]", x=X),
    "a tuple that lacks a part": torch("return (%x)", inputs="%x : Tensor, %t : (Tensor, Tensor)", **{"x": X, "t.0": X}),
    "a number that is not given": torch("%y : Tensor = aten::mul(%x, %n)\nreturn (%y)", inputs="%x : Tensor, %n : int", x=X),
}


def _number(name: str, kind: str, result: Any, *others: str) -> Program:
    """An operator on a number that depends on data; the input is 2.25."""
    read = f"%n : {kind} = aten::{'Float' if kind == 'float' else 'Int'}(%x)"
    operands = ", ".join(("%n", *others))
    stated = "bool" if isinstance(result, np.bool_) else "int" if isinstance(result, np.int64) else "float"
    return torch(f"{read}\n%h : float = prim::Constant[value=0.5]()\n%r : {stated} = aten::{name}({operands})\n"
                 "%y : Tensor = prim::NumToTensor(%r)\nreturn (%y)", result, x=np.array(2.25))


PROGRAMS.update({f"{name} of a {kind}": _number(name, kind, result, *others) for name, kind, result, others in (
    ("sqrt", "float", np.float64(1.5), ()), ("sqrt", "int", np.sqrt(np.float64(2)), ()), ("exp", "int", np.exp(np.float64(2)), ()),
    ("log", "int", np.log(np.float64(2)), ()), ("sin", "int", np.sin(np.float64(2)), ()), ("cos", "int", np.cos(np.float64(2)), ()),
    ("tan", "int", np.tan(np.float64(2)), ()), ("div", "int", np.float64(2 / 3), ("%three",)), ("pow", "int", np.float64(8), ("%three",)),
    ("add", "float", np.float64(5.25), ("%three",)), ("sub", "int", np.int64(-1), ("%three",)), ("mul", "float", np.float64(1.125), ("%h",)),
    ("floordiv", "int", np.int64(0), ("%three",)), ("remainder", "float", np.float64(0.25), ("%two",)), ("neg", "int", np.int64(-2), ()),
    ("floor", "float", np.int64(2), ()), ("ceil", "float", np.int64(3), ()), ("lt", "float", np.bool_(True), ("%three",)),
    ("ge", "int", np.bool_(False), ("%three",)), ("eq", "int", np.bool_(True), ("%two",)), ("abs", "float", np.float64(2.25), ()),
    ("__round_to_zero_floordiv", "int", np.int64(0), ("%three",)))})
