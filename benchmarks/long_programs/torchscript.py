"""Long programs of TorchScript, as ``torch.jit.trace`` prints them: every line with its type, constants where they are used."""

from __future__ import annotations

import re

from benchmarks.long_programs.shape import Shape, repeated

TYPES = {
    "F": "Float(64, 128, strides=[128, 1], requires_grad=0, device=cpu)",
    "A": "Float(64, 64, strides=[64, 1], requires_grad=0, device=cpu)",
    "W": "Float(128, 128, strides=[128, 1], requires_grad=0, device=cpu)",
    "V": "Float(128, strides=[1], requires_grad=0, device=cpu)",
    "R": "Float(64, 1, strides=[1, 1], requires_grad=0, device=cpu)",
    "C": "Float(1, 128, strides=[128, 1], requires_grad=0, device=cpu)",
    "S": "Float(16, 16, strides=[16, 1], requires_grad=0, device=cpu)",
    "T": "Float(16, 16, strides=[1, 16], requires_grad=0, device=cpu)",
    "B": "Bool(requires_grad=0, device=cpu)",
    "U": "Float(16, strides=[1], requires_grad=0, device=cpu)",
}
"""Types by the letter that stands for them below: ``%a : F = ...``."""


def typed(text: str) -> str:
    """A text with its types written out, and the scopes that ``# layer.norm 12`` stands for."""
    text = re.sub(r": ([FAWVRCSTBU])(?=[ ,)])", lambda found: ": " + TYPES[found[1]], text)
    return re.sub(r" # (\S+) (\d+)$", r", scope: __module.layers.$/__module.layers.$.\1 # net.py:\2:0", text, flags=re.MULTILINE)


HEAD = """\
graph(%x0 : F,
      %w : W,
      %v : V,
      %y : F,
      %flag : B):
  %one : int = prim::Constant[value=1]()
"""
FOOT = """\
  %out : F = aten::neg(%x$)
  return (%out)
"""

CHAIN = """\
  %k$ : int = prim::Constant[value=1]()
  %a$ : F = aten::add(%x$, %y, %k$)
  %b$ : F = aten::tanh(%a$)
  %c$ : F = aten::mul(%b$, %x$)
  %d$ : F = aten::maximum(%c$, %y)
  %x$+ : F = aten::sub(%d$, %b$, %k$)
"""

LAYER = """\
  %i0$ : int = prim::Constant[value=128]() # norm 12
  %i1$ : int[] = prim::ListConstruct(%i0$) # norm 12
  %i2$ : float = prim::Constant[value=1.0000000000000001e-05]() # norm 12
  %i3$ : bool = prim::Constant[value=1]() # norm 12
  %n$ : F = aten::layer_norm(%x$, %i1$, %v, %v, %i2$, %i3$) # norm 12
  %q$ : F = aten::linear(%n$, %w, %v) # attention.q 21
  %k$ : F = aten::linear(%n$, %w, %v) # attention.k 22
  %d0$ : int = prim::Constant[value=-1]() # attention 23
  %d1$ : int = prim::Constant[value=-2]() # attention 23
  %kt$ : Tensor = aten::transpose(%k$, %d1$, %d0$) # attention 23
  %s1$ : A = aten::matmul(%q$, %kt$) # attention 23
  %d2$ : Double() = prim::Constant[value={8}]() # attention 23
  %s2$ : A = aten::div(%s1$, %d2$) # attention 23
  %d3$ : NoneType = prim::Constant() # attention 24
  %s3$ : A = aten::softmax(%s2$, %d0$, %d3$) # attention 24
  %s4$ : F = aten::matmul(%s3$, %n$) # attention 25
  %d4$ : int = prim::Constant[value=1]() # attention 30
  %r$ : F = aten::add(%x$, %s4$, %d4$) # attention 30
  %m1$ : F = aten::linear(%r$, %w, %v) # mlp.up 31
  %e0$ : str = prim::Constant[value="tanh"]() # mlp 32
  %m2$ : F = aten::gelu(%m1$, %e0$) # mlp 32
  %m3$ : F = aten::linear(%m2$, %w, %v) # mlp.down 33
  %e1$ : int = prim::Constant[value=1]() # mlp 34
  %x$+ : F = aten::add(%r$, %m3$, %e1$) # mlp 34
"""

WIDTH = 16
FAN = "".join((
    "  %p$ : F = aten::tanh(%x$)\n",
    *(f"  %a{k}_$ : F = aten::{('add(%p$, %y, %one)', 'mul(%p$, %y)', 'maximum(%p$, %y)', 'sub(%p$, %y, %one)')[k % 4]}\n"
      for k in range(WIDTH)),
    "  %t0_$ : F = aten::neg(%a0_$)\n",
    *(f"  %t{k}_$ : F = aten::add(%t{k - 1}_$, %a{k}_$, %one)\n" for k in range(1, WIDTH)),
    f"  %x$+ : F = aten::sin(%t{WIDTH - 1}_$)\n",
))  # fmt: skip

REDUCTIONS = """\
  %rows$ : int = prim::Constant[value=1]()
  %i$ : int[] = prim::ListConstruct(%rows$)
  %columns$ : int = prim::Constant[value=0]()
  %j$ : int[] = prim::ListConstruct(%columns$)
  %keep$ : bool = prim::Constant[value=1]()
  %none$ : NoneType = prim::Constant()
  %a$ : F = aten::exp(%x$)
  %b$ : R = aten::sum(%a$, %i$, %keep$, %none$)
  %c$ : F = aten::div(%a$, %b$)
  %d$ : C = aten::amax(%c$, %j$, %keep$)
  %x$+ : F = aten::sub(%c$, %d$, %rows$)
"""

SMALL = """\
graph(%x0 : S,
      %s : S,
      %u : U):
"""
PRODUCTS = """\
  %i$ : int = prim::Constant[value=0]()
  %j$ : int = prim::Constant[value=1]()
  %a$ : S = aten::matmul(%x$, %s)
  %b$ : T = aten::transpose(%a$, %i$, %j$)
  %c$ : S = aten::matmul(%b$, %x$)
  %d$ : S = aten::add(%c$, %u, %j$)
  %x$+ : S = aten::relu(%d$)
"""

CALLS = """\
  %n$ : int = prim::Constant[value=1000]()
  %true$ : bool = prim::Constant[value=1]()
  %a$ : F = prim::Loop(%n$, %true$, %x$)
    block0(%i$ : int, %l$ : F):
      %e$ : F = aten::tanh(%l$)
      %f$ : F = aten::add(%e$, %l$, %one)
      %g$ : F = aten::exp(%f$)
      -> (%true$, %g$)
  %yes$ : bool = aten::Bool(%flag)
  %b$ : F = prim::If(%yes$)
    block0():
      %m$ : F = aten::mul(%a$, %a$)
      %h$ : F = aten::tanh(%m$)
      -> (%h$)
    block1():
      %z$ : F = aten::neg(%a$)
      -> (%z$)
  %x$+ : F = aten::add(%b$, %a$, %one)
"""

READERS = """\
  %r$ : F = aten::add(%p, %x$, %one)
  %x$+ : F = aten::mul(%x$, %r$)
"""

TUPLES = """\
  %a$ : (Tensor, Tensor) = prim::TupleConstruct(%x$, %y)
  %b$ : ((Tensor, Tensor), Tensor) = prim::TupleConstruct(%a$, %x$)
  %c$ : (((Tensor, Tensor), Tensor), Tensor) = prim::TupleConstruct(%b$, %y)
  %d$ : ((Tensor, Tensor), Tensor), %g$ : F = prim::TupleUnpack(%c$)
  %e$ : (Tensor, Tensor), %h$ : F = prim::TupleUnpack(%d$)
  %f$ : F, %z$ : F = prim::TupleUnpack(%e$)
  %s$ : F = aten::add(%f$, %g$, %one)
  %x$+ : F = aten::mul(%s$, %h$)
"""


def _shape(name: str, ops: int, block: str, head: str = HEAD, foot: str = FOOT) -> Shape:
    return repeated(name, ops, typed(head), typed(block), typed(foot))


SHAPES = (
    _shape("chain", 6, CHAIN),
    _shape("layers", 24, LAYER),
    _shape("fans", 2 * WIDTH + 2, FAN),
    _shape("reductions", 11, REDUCTIONS),
    _shape("products", 7, PRODUCTS, SMALL, FOOT.replace(": F", ": S")),
    _shape("calls", 12, CALLS),
    _shape("readers", 2, READERS, HEAD + "  %p : F = aten::tanh(%y)\n"),
    _shape("tuples", 8, TUPLES),
)
