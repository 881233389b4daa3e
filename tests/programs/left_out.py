"""Programs that no peer judges, because the peer departs from the definition there: decided from the program alone, before it runs.

The same programs do go through the reference and compiled code. What right engines may disagree on is never written in the first place,
see the generators; here stands what the definition settles and a peer gets wrong. Each cause has one predicate over nodes of the graph.
"""
from __future__ import annotations

from collections.abc import Callable

from irscope.api import load
from irscope.graph import Module, Node, TensorType
from tests.programs.numbers import INTEGERS
from tests.programs.program import Program
from tests.programs.torchscript import TORCH

Concerns = Callable[[Node, Module, Program], bool]

MOVES = frozenset(("bitcast", "broadcast", "copy", "pad", "reshape", "reverse", "slice", "transpose"))
"""What XLA moves a dynamic slice through, or drops where it changes nothing."""
WHOLE = frozenset(number for dtype, (_, number) in TORCH.items() if dtype in INTEGERS)
"""Torch's numbers of integer types."""
PRODUCTS = frozenset(("aten::matmul", "aten::linear", "aten::conv2d", "aten::_convolution"))
"""Calls that go to oneDNN."""
PLACED = frozenset(("dynamic-slice", "gather"))
"""Slices whose places are operands. XLA makes a dynamic slice of a gather of one place."""


def cause_of(program: Program) -> str | None:
    """Why a program's peer does not judge it; None where it does, or where irscope cannot read the program."""
    reading = load(program.text(), format=program.format)
    if not reading.ok:
        return None
    module = reading.module()
    for cause, concerns in LEFT_OUT.get(program.format, {}).items():
        if any(concerns(node, module, program) for graph in module.graphs.values() for node in graph.nodes):
            return cause
    return None


def crops_its_data(node: Node, module: Module, program: Program) -> bool:
    """Negative padding crops, by the definition; XLA's CPU code reads memory outside of the array instead, and gives numbers like 1e34."""
    return node.op.name == "convolution" and min((*node.attrs["window"].pad_low, *node.attrs["window"].pad_high), default=0) < 0


def selects_in_padding(node: Node, module: Module, program: Program) -> bool:
    """By the definition ``select`` is asked in lexicographic order of places, which decides among equal elements. XLA peels the part of a
    window that may lie in the padding off its loop and runs it last, so that it asks in another order where the window has two
    dimensions or more."""
    if node.op.name != "select-and-scatter":
        return False
    window = node.attrs["window"]
    return any(window.pad_low + window.pad_high) and sum(n > 1 for n in window.size) > 1


def slices_a_slice(node: Node, module: Module, program: Program) -> bool:
    """Each dynamic slice clamps its own places, by the definition. XLA makes one of two: it adds the places, clamps the inner ones by the
    size of the outer slice and the outer ones not at all before the sum. A scatter becomes a loop that slices its operand."""
    if node.op.name not in (*PLACED, "scatter"):
        return False
    todo, seen = [node.operands[0]], set()
    while todo:
        above = todo.pop()
        if above.op.name in PLACED:
            return True
        if above not in seen and above.op.name in MOVES:
            seen.add(above)
            todo += above.operands
    return False


def spreads_special_numbers(node: Node, module: Module, program: Program) -> bool:
    """A group of a convolution reads its own features alone, by the definition. XLA's CPU compiler makes some grouped convolutions dense
    ones with zeros in the kernel, and zero times NaN spreads the NaN to all features."""
    return program.special and node.op.name == "convolution" and node.attrs.get("feature_group_count", 1) > 1


def counts_zeros_of_a_constant(node: Node, module: Module, program: Program) -> bool:
    """XLA's evaluator, which folds constants, counts the leading zeros of negative numbers wrong (-48 for s16, 4 for s4); its code, which
    runs on inputs, counts none. A parameter of a computation that is called may be a constant."""
    if node.op.name != "count-leading-zeros" or not isinstance(node.type, TensorType) or node.type.dtype.name not in ("s4", "s8", "s16", "s32"):
        return False
    todo, seen = [node], set()
    while todo:
        above = todo.pop()
        if above in module.main().params:
            return False
        if above not in seen:
            seen.add(above)
            todo += above.operands
    return True


def rounds_special_numbers(node: Node, module: Module, program: Program) -> bool:
    """Torch promises nothing of NaN and infinities as integers; irscope does what XLA does. In a block the type may be a parameter."""
    if node.op.name != "aten::to" or not program.special:
        return False
    dtype = node.operands[1]
    return dtype.op.name == "parameter" or dtype.attrs.get("value") in WHOLE


def multiplies_denormals(node: Node, module: Module, program: Program) -> bool:
    """Torch keeps denormals, but its bf16 products of matrices run on instructions that take them for zeros, where the processor has such:
    a denormal times infinity is then NaN."""
    values = (*program.inputs, *(s.value for s in program.statements if s.value is not None))
    return program.special and node.op.name in PRODUCTS and any(value.dtype == "bf16" for value in values)


def writes_what_torch_loses(node: Node, module: Module, program: Program) -> bool:
    """``type_as`` and ``dropout`` may give their operand itself, as torch does when it runs them, but their schemas do not say so.
    The optimiser of torch's executor and tracer drops a write to such a result, or to its operand, when it finds no reader of it."""
    return node.op.name in ("aten::type_as", "aten::dropout") and \
        any(other.op.name.endswith("_") for graph in module.graphs.values() for other in graph.nodes)


LEFT_OUT: dict[str, dict[str, Concerns]] = {
    "hlo": {
        "a convolution with negative padding": crops_its_data,
        "a select-and-scatter whose windows of several dimensions have padding": selects_in_padding,
        "a dynamic slice or gather of another one's result": slices_a_slice,
        "leading zeros of a signed constant": counts_zeros_of_a_constant,
        "a grouped convolution of special numbers": spreads_special_numbers,
    },
    "torchscript": {
        "NaN and infinities as integers": rounds_special_numbers,
        "bf16 products of denormals": multiplies_denormals,
        "a write in place beside type_as or dropout": writes_what_torch_loses,
    },
}
"""By format and cause; `docs/reliability.md` lists them."""
