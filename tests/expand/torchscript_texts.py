"""TorchScript and FX programs of the interpreter's own operators, with inputs and what numpy gives for them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irscope.api import load
from irscope.backends.model import ports_of
from irscope.backends.opening import Bindings, opened
from irscope.graph import Module
from tests.expand.torchscript_runs import Array, graph
from tests.lower.whole import reference

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]], np.float32)
V = np.array([3.0, -1.0, 2.0, 0.5], np.float32)
CONSTANTS = """
    %none : NoneType = prim::Constant()
    %m1 : int = prim::Constant[value=-1]()
    %zero : int = prim::Constant[value=0]()
    %one : int = prim::Constant[value=1]()
    %two : int = prim::Constant[value=2]()
    %three : int = prim::Constant[value=3]()
    %true : bool = prim::Constant[value=1]()
    %false : bool = prim::Constant[value=0]()
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A text, its inputs, and its results in order; one without results is refused."""

    text: str
    arrays: Mapping[str, Array]
    results: Sequence[Any] = field(default_factory=tuple)

    def primitives(self) -> Module:
        """The primitive graph for the inputs."""
        reading = load(self.text)
        assert reading.ok, [f.render() for f in reading.findings]
        return opened(reading.module(), Bindings(self.arrays, {}, {}), None)

    def check(self) -> None:
        """The reference run of its primitives gives these results, in their element types."""
        made = self.primitives()
        got = reference(made, [self.arrays[port.name] for port in ports_of(made)[0]])
        assert len(got) == len(self.results)
        for one, want in zip(got, self.results, strict=True):
            assert one.dtype == np.asarray(want).dtype and one.shape == np.shape(want), (one.dtype, one.shape)
            np.testing.assert_allclose(one, want, rtol=1e-5)


def torch(body: str, *results: Any, inputs: str = "%x : Tensor", **arrays: Array) -> Program:
    """A TorchScript graph behind the constants above."""
    lines = "\n".join(f"    {line.strip()}" if not line.strip().startswith(("block", "->")) and not line.startswith("  ") else f"    {line}"
                      for line in body.strip("\n").split("\n"))
    return Program(graph(CONSTANTS + lines, inputs), arrays or {"x": X}, results)


BY_DATA = """%s : Tensor = aten::sum(%x, %none)
%p : Tensor = aten::gt(%s, %zero)
%c : bool = aten::Bool(%p)
"""
PROGRAMS = {
    # ---- tuples, lists and dicts
    "an element of a tuple": torch("""
%n : Tensor = aten::neg(%x)
%t : (Tensor, Tensor, Tensor) = prim::TupleConstruct(%x, %n, %x)
%y : Tensor = prim::TupleIndex(%t, %one)
return (%y)""", -X),
    "a slice of a tuple": torch("""
%n : Tensor = aten::neg(%x)
%e : Tensor = aten::abs(%x)
%t : (Tensor, Tensor, Tensor) = prim::TupleConstruct(%x, %n, %e)
%u : (Tensor, Tensor) = prim::TupleSlice[beg=1, end=3](%t)
%a : Tensor, %b : Tensor = prim::TupleUnpack(%u)
%y : Tensor = aten::sub(%a, %b, %one)
return (%y)""", -X - np.abs(X)),
    "a list of one": torch("""
%l : Tensor[] = prim::ListConstruct(%x)
%a : Tensor = prim::ListUnpack(%l)
%y : Tensor = aten::neg(%a)
return (%y)""", -X),
    "a dict": torch("""
%k : str = prim::Constant[value="a"]()
%j : str = prim::Constant[value="b"]()
%n : Tensor = aten::neg(%x)
%d : Dict(str, Tensor) = prim::DictConstruct(%k, %x, %j, %n)
%y : Tensor = aten::__getitem__(%d, %j)
return (%y)""", -X),
    "sizes as a list": torch("""
%s : int[] = prim::shape(%x)
%a : int, %b : int = prim::ListUnpack(%s)
%m : int = aten::mul(%a, %b)
%l : int[] = prim::ListConstruct(%m)
%y : Tensor = aten::reshape(%x, %l)
return (%y)""", X.reshape(6)),
    "a list of a range": torch("""
%r : int[] = prim::rangelist(%three)
%k : int = aten::__getitem__(%r, %two)
%y : Tensor = aten::add(%x, %k, %one)
return (%y)""", X + 2),
    "chunks": torch("""
%a : Tensor, %b : Tensor, %c : Tensor = prim::ConstantChunk[chunks=3, dim=1](%x)
%y : Tensor = aten::sub(%a, %c, %one)
return (%y, %b)""", X[:, :1] - X[:, 2:], X[:, 1:2]),
    "tolist": torch("""
%l : float[][] = prim::tolist(%x, %two, %three)
%r : float[] = aten::__getitem__(%l, %one)
%k : float = aten::__getitem__(%r, %two)
%y : Tensor = aten::mul(%x, %k)
return (%y)""", -X),
    "tolist of integers": torch("""
%l : int[] = prim::tolist(%x, %one, %two)
%k : int = aten::__getitem__(%l, %one)
%y : Tensor = aten::mul(%x, %k)
return (%y)""", np.array([15, 25]), x=np.array([3, 5])),
    "tolist of one truth value": torch("""
%k : bool = prim::tolist(%x, %zero, %one)
%y : int = aten::Int(%k)
%z : Tensor = prim::NumToTensor(%y)
return (%z)""", np.int64(1), x=np.array(True)),
    # ---- kinds of values
    "isinstance": torch("""
%l : Tensor[] = prim::ListConstruct(%x)
%a : bool = prim::isinstance[types=[Tensor]](%x)
%b : bool = prim::isinstance[types=[int]](%x)
%c : bool = prim::isinstance[types=[List[Tensor]]](%l)
%d : bool = prim::isinstance[types=[int, float]](%one)
%i : int = aten::Int(%a)
%j : int = aten::Int(%b)
%k : int = aten::Int(%c)
%m : int = aten::Int(%d)
%s : int[] = prim::ListConstruct(%i, %j, %k, %m)
%y : Tensor = aten::tensor(%s, %none, %none, %false)
return (%y)""", np.array([1, 0, 1, 1])),
    "no value": torch("""
%a : bool = aten::__is__(%none, %none)
%b : bool = aten::__isnot__(%x, %none)
%i : int = aten::Int(%a)
%j : int = aten::Int(%b)
%s : int[] = prim::ListConstruct(%i, %j)
%y : Tensor = aten::tensor(%s, %none, %none, %false)
return (%y)""", np.array([1, 1])),
    "facts of tensors": torch("""
%d : int = prim::dtype(%x)
%a : bool = prim::is_cpu(%x)
%b : bool = prim::is_cuda(%x)
%l : int = prim::layout(%x)
%i : int = aten::Int(%a)
%j : int = aten::Int(%b)
%s : int[] = prim::ListConstruct(%d, %i, %j, %l)
%y : Tensor = aten::tensor(%s, %none, %none, %false)
return (%y)""", np.array([6, 1, 0, 0])),
    "detached": torch("%y : Tensor = prim::data(%x)\nreturn (%y)", X),
    "unwrapped": torch("%u : Tensor = aten::_unwrap_optional(%x)\n%y : Tensor = aten::neg(%u)\nreturn (%y)", -X),
    "nothing is unwrapped": torch("%y : Tensor = aten::_unwrap_optional(%none)\nreturn (%y)"),
    "a number as a tensor": torch("""
%f : float = prim::Constant[value=2.5]()
%a : Tensor = prim::NumToTensor(%f)
%b : Tensor = prim::NumToTensor(%two)
%c : Tensor = aten::scalar_tensor(%f, %none, %none, %none, %none)
%six : int = prim::Constant[value=6]()
%d : Tensor = aten::scalar_tensor(%two, %six, %none, %none, %none)
return (%a, %b, %c, %d)""", np.float64(2.5), np.int64(2), np.float32(2.5), np.float32(2)),
    "a number of data as a tensor": torch("""
%s : Tensor = aten::sum(%x, %none)
%f : float = aten::Float(%s)
%a : Tensor = prim::NumToTensor(%f)
%i : int = aten::Int(%f)
%b : Tensor = prim::NumToTensor(%i)
%c : Tensor = prim::NumToTensor(%s)
return (%a, %b, %c)""", np.float64(1.75), np.int64(1), np.float32(1.75)),
    "the truth of a number": torch("""
%c : bool = aten::Bool(%x)
%y : Tensor = prim::If(%c)
  block0():
    %a : Tensor = aten::add(%x, %one, %one)
    -> (%a)
  block1():
    %b : Tensor = aten::sub(%x, %one, %one)
    -> (%b)
return (%y)""", np.float32(3.5), x=np.array(2.5, np.float32)),
    "items": torch("""
%i : Scalar = aten::item(%x)
%y : Tensor = prim::NumToTensor(%i)
return (%y)""", np.int64(7), x=np.array([7])),
    "an object": torch("""
%o : __torch__.Pair = prim::CreateObject()
 = prim::SetAttr[name="first"](%o, %x)
%a : Tensor = prim::GetAttr[name="first"](%o)
%y : Tensor = aten::neg(%a)
return (%y)""", -X),
    "an attribute of a tensor": torch('%y : Tensor = prim::GetAttr[name="first"](%x)\nreturn (%y)'),
    "an attribute is set of a tensor": torch(' = prim::SetAttr[name="first"](%x, %x)\nreturn (%x)'),
    "a Python function": torch("%y : Tensor = ^Swish()(%x)\nreturn (%y)"),
    "a method of a tensor": torch('%y : Tensor = prim::CallMethod[name="forward"](%x)\nreturn (%y)'),
    # ---- branches and loops that carry structures
    "a branch of a tuple": torch(BY_DATA + """%t : (Tensor, Tensor) = prim::If(%c)
  block0():
    %a : Tensor = aten::neg(%x)
    %u : (Tensor, Tensor) = prim::TupleConstruct(%a, %x)
    -> (%u)
  block1():
    %v : (Tensor, Tensor) = prim::TupleConstruct(%x, %x)
    -> (%v)
%p1 : Tensor, %p2 : Tensor = prim::TupleUnpack(%t)
%y : Tensor = aten::sub(%p1, %p2, %one)
return (%y)""", -2 * X),
    "a branch of lists of two lengths": torch(BY_DATA + """%t : Tensor[] = prim::If(%c)
  block0():
    %u : Tensor[] = prim::ListConstruct(%x, %x)
    -> (%u)
  block1():
    %v : Tensor[] = prim::ListConstruct(%x)
    -> (%v)
%y : Tensor = aten::__getitem__(%t, %zero)
return (%y)"""),
    "a branch of dicts": torch(BY_DATA + """%k : str = prim::Constant[value="a"]()
%t : Dict(str, Tensor) = prim::If(%c)
  block0():
    %a : Tensor = aten::neg(%x)
    %u : Dict(str, Tensor) = prim::DictConstruct(%k, %a)
    -> (%u)
  block1():
    %v : Dict(str, Tensor) = prim::DictConstruct(%k, %x)
    -> (%v)
%y : Tensor = aten::__getitem__(%t, %k)
return (%y)""", -X),
    "a branch of dicts with other keys": torch(BY_DATA + """%k : str = prim::Constant[value="a"]()
%j : str = prim::Constant[value="b"]()
%t : Dict(str, Tensor) = prim::If(%c)
  block0():
    %u : Dict(str, Tensor) = prim::DictConstruct(%k, %x)
    -> (%u)
  block1():
    %v : Dict(str, Tensor) = prim::DictConstruct(%j, %x)
    -> (%v)
return (%x)"""),
    "a branch of a string and a tensor": torch(BY_DATA + """%k : str = prim::Constant[value="a"]()
%t : str = prim::If(%c)
  block0():
    -> (%k)
  block1():
    -> (%x)
return (%x)"""),
    "a branch of equal strings and numbers": torch(BY_DATA + """%k : str = prim::Constant[value="a"]()
%j : str = prim::Constant[value="a"]()
%q : int = prim::Constant[value=1]()
%t : str, %n : int = prim::If(%c)
  block0():
    -> (%k, %one)
  block1():
    -> (%j, %q)
%l : int = aten::len(%t)
%m : int = aten::add(%l, %n)
%y : Tensor = aten::mul(%x, %m)
return (%y)""", 2 * X),
    "a branch of two numbers": torch(BY_DATA + """%n : int = prim::If(%c)
  block0():
    -> (%two)
  block1():
    -> (%three)
%y : Tensor = aten::mul(%x, %n)
return (%y)""", 2 * X),
    "a branch of an optional": torch(BY_DATA + """%o : Tensor? = prim::If(%c)
  block0():
    -> (%none)
  block1():
    -> (%x)
%b : bool = aten::__is__(%o, %none)
%y : Tensor = prim::If(%b)
  block0():
    %n : Tensor = aten::neg(%x)
    -> (%n)
  block1():
    %u : Tensor = prim::unchecked_cast(%o)
    -> (%u)
%d : bool = aten::__isnot__(%o, %none)
%z : Tensor = prim::If(%d)
  block0():
    -> (%x)
  block1():
    %e : Tensor = aten::abs(%x)
    -> (%e)
return (%y, %z)""", -X, np.abs(X)),
    "a loop on data that carries a tuple": torch("""
%many : int = prim::Constant[value=9223372036854775807]()
%hundred : int = prim::Constant[value=20]()
%t0 : (Tensor, Tensor) = prim::TupleConstruct(%x, %x)
%t : (Tensor, Tensor) = prim::Loop(%many, %true, %t0)
  block0(%i : int, %acc : (Tensor, Tensor)):
    %a : Tensor, %b : Tensor = prim::TupleUnpack(%acc)
    %d : Tensor = aten::mul(%a, %two)
    %s : Tensor = aten::max(%d)
    %q : Tensor = aten::lt(%s, %hundred)
    %go : bool = aten::Bool(%q)
    %e : Tensor = aten::add(%b, %one, %one)
    %n : (Tensor, Tensor) = prim::TupleConstruct(%d, %e)
    -> (%go, %n)
%y : Tensor, %z : Tensor = prim::TupleUnpack(%t)
return (%y, %z)""", V * 8, V + 3, x=V),
    "a loop on data that sets a value": torch("""
%many : int = prim::Constant[value=9223372036854775807]()
%hundred : int = prim::Constant[value=20]()
%last : Tensor?, %y : Tensor = prim::Loop(%many, %true, %none, %x)
  block0(%i : int, %o : Tensor?, %a : Tensor):
    %d : Tensor = aten::mul(%a, %two)
    %s : Tensor = aten::max(%d)
    %q : Tensor = aten::lt(%s, %hundred)
    %go : bool = aten::Bool(%q)
    -> (%go, %a, %d)
%u : Tensor = prim::unchecked_cast(%last)
return (%u, %y)""", V * 4, V * 8, x=V),
    "a loop on data that carries a dict": torch("""
%many : int = prim::Constant[value=9223372036854775807]()
%hundred : int = prim::Constant[value=20]()
%k : str = prim::Constant[value="a"]()
%d0 : Dict(str, Tensor) = prim::DictConstruct(%k, %x)
%t : Dict(str, Tensor) = prim::Loop(%many, %true, %d0)
  block0(%i : int, %acc : Dict(str, Tensor)):
    %a : Tensor = aten::__getitem__(%acc, %k)
    %d : Tensor = aten::mul(%a, %two)
    %s : Tensor = aten::max(%d)
    %q : Tensor = aten::lt(%s, %hundred)
    %go : bool = aten::Bool(%q)
    %n : Dict(str, Tensor) = prim::DictConstruct(%k, %d)
    -> (%go, %n)
%y : Tensor = aten::__getitem__(%t, %k)
return (%y)""", V * 8, x=V),
    "a loop on data that grows a list": torch("""
%many : int = prim::Constant[value=9223372036854775807]()
%l0 : Tensor[] = prim::ListConstruct(%x)
%t : Tensor[] = prim::Loop(%many, %true, %l0)
  block0(%i : int, %acc : Tensor[]):
    %s : Tensor = aten::max(%x)
    %q : Tensor = aten::lt(%s, %two)
    %go : bool = aten::Bool(%q)
    %n : Tensor[] = prim::ListConstruct(%x, %x)
    -> (%go, %n)
%k : int = aten::len(%t)
%y : Tensor = aten::mul(%x, %k)
return (%y)""", X * 2),
    "a loop that stops at once": torch("""
%y : Tensor = prim::Loop(%three, %false, %x)
  block0(%i : int, %acc : Tensor):
    %d : Tensor = aten::mul(%acc, %two)
    -> (%true, %d)
return (%y)""", X),
    "a loop of negative trips": torch("""
%y : Tensor = prim::Loop(%m1, %true, %x)
  block0(%i : int, %acc : Tensor):
    %d : Tensor = aten::mul(%acc, %two)
    -> (%true, %d)
return (%y)""", X),
    "a loop that a known condition ends": torch("""
%y : Tensor = prim::Loop(%three, %true, %x)
  block0(%i : int, %acc : Tensor):
    %d : Tensor = aten::mul(%acc, %two)
    %go : bool = aten::lt(%i, %one)
    -> (%go, %d)
return (%y)""", X * 4),
}
