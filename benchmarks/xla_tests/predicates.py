"""What XLA's tests of gpu_fusible.cc ask of functions, answered by irscope's functions of the same meaning.

For ``xla_fusion_tests.py``.
"""
from __future__ import annotations

import re
from collections.abc import Callable

from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.gpu_kinds import kind_with, traits
from irscope.fusion.xla.gpu_launch import unroll_factor
from irscope.fusion.xla.gpu_outputs import can_give, is_input_reduction, is_output_root, is_turning, one_loop
from irscope.fusion.xla.gpu_rules import shared_memory
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.stage import computations
from irscope.fusion.xla.transposes import moves_minor
from irscope.graph import Module
from irscope.ops import hlo

ONE: dict[str, Callable[[Instruction], bool]] = {
    "TransposesMinorDimension": moves_minor,
    "IsPhysicallyTransposing": is_turning,
    "IsFusibleAsMultiOutputFusionRoot": is_output_root,
    "IsReduceInputFusion": lambda i: i.body is not None and is_input_reduction(i),
    "IsInputFusibleReduction": is_input_reduction,
    "IsProducerMultiOutputFusible": can_give,
    "MayCausePerformanceDropIfUnrolled": lambda i: traits(i).unroll_stops,
}
CALL = re.compile(r"^\s*EXPECT_(TRUE|FALSE)\((\w+)\(\s*\*?([\w>()-]+?)(?:,\s*\*?([\w>()-]+?))?\)\)$")
UNROLLED = re.compile(r"(?:config(_on_b200)?, |H100SXM.*?, (?=\d+\)$)|(B200SXM).*?, )(\d+)\)$", re.DOTALL)
OPERAND = re.compile(r"^(\w+)->operand\((\d+)\)$")
SHORT = {"dus": "dynamic-update-slice", "div": "divide", "exp": "exponential"}
TRUTH = {"TRUE": True, "FALSE": False}


def is_answered(assertion: str) -> bool:
    """Whether an assertion states an outcome, and is no step of the test."""
    return assertion.lstrip().startswith("EXPECT")


def answer(assertion: str, module: Module, test: str) -> str | None:
    """What irscope answers otherwise: empty where it agrees, None where an assertion is not read."""
    entry = Computation.of(module.main())
    if "GetComputationWithName" in assertion:
        names = set(re.findall(r'GetComputationWithName\("(\w+)"\)', assertion)) | {module.main().name}
        return _told(assertion, {g.name for g in computations(module)}, names)
    if "GetSharedMemoryUsage" in assertion:
        sizes = {"sizeof(int8_t)": 1, "sizeof(int32_t)": 4, "kMaxVectorSize": 4}
        product = assertion.split(",", 1)[1].rstrip().removesuffix(")").strip()
        for word, number in sizes.items():
            product = product.replace(word, str(number))
        return _told(assertion, shared_memory(entry.root), eval(product, {"__builtins__": {}}))
    if "ChooseFusionKind" in assertion:
        return _told(assertion, kind_with(entry.root, entry.root.operands[0]), "kInput")
    unrolled = UNROLLED.search(assertion)
    if unrolled:
        device = DEVICES["b200" if unrolled[1] or unrolled[2] else "h100"]
        return _told(assertion, unroll_factor(device, None, entry.root), int(unrolled[3]))
    found = CALL.match(assertion.strip())
    if found is None:
        return None
    first = _named(found[3], entry)
    second = _named(found[4], entry) if found[4] else None
    if first is None:
        return None
    wanted = TRUTH[found[1]]
    if found[2] == "ShapesCompatibleForMultiOutputFusion" and second is not None:
        return _told(assertion, one_loop(first, second), wanted)
    if found[2] not in ONE:
        return None
    return _told(assertion, ONE[found[2]](first), wanted)


def _told(assertion: str, ours: object, wanted: object) -> str:
    return "" if ours == wanted else f"{ours}: {' '.join(assertion.split())[:110]}"


def _named(name: str, entry: Computation) -> Instruction | None:
    """The instruction that a variable of the test stands for: by its name in the text, by its place, or by what it is."""
    operand = OPERAND.match(name)
    if operand:
        outer = _named(operand[1], entry)
        return outer.operands[int(operand[2])] if outer is not None else None
    by_name = {i.node.name: i for i in entry.instructions if i.node is not None}
    given = list(entry.root.operands) if entry.root.op is hlo.tuple else [entry.root]
    results = list(dict.fromkeys(i.operands[0] if i.op is hlo.get_tuple_element else i for i in given))
    fusions = [i for i in results if i.op is hlo.fusion]
    if name in ("root", "tuple", "fusion_adaptor"):
        return entry.root
    if name in ("fusion_1", "fusion_2") and len(fusions) == 2:
        return fusions[int(name[-1]) - 1]
    if name in ("producer", "consumer") and len(results) == 2:
        return results[1] if name == "producer" else results[0]
    if name in by_name:
        return by_name[name]
    near = [i for n, i in by_name.items() if n.startswith(name)]
    near += [i for i in entry.instructions if i.op.name.startswith(SHORT.get(name, name))]
    return next(iter(near or ([entry.root] if name in ("scatter_inst", "reduce") else [])), None)
