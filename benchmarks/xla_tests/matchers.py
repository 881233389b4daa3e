"""The matchers of XLA's tests (``m::Fusion(m::Parameter(), ...)``), read and held against instructions."""
from __future__ import annotations

import re

from irscope.fusion.xla.instructions import Instruction
from irscope.ops import hlo

NAMES = {"Exp": "exponential", "Sqrt": "sqrt", "Abs": "abs", "Slice": "slice"}
PREDICATE = re.compile(r"\s*\.WithPredicate\((\w+)\)?")
EITHER = "ParamOrBitcastParam"
"""A matcher of XLA's test: a parameter, or a bitcast of one."""
ANY = "op"
"""What every instruction is."""
TILED = "tiled-fusion"
"""A fusion that says how it is tiled."""


def opcode(name: str) -> str:
    """``GetTupleElement``: get-tuple-element."""
    return NAMES.get(name) or re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def parsed(text: str) -> tuple[str, str, list[object]]:
    """A matcher as (opcode, name that it binds, operands); what follows it is left."""
    made, _ = _matcher(text, 0)
    return made


def _matcher(text: str, at: int) -> tuple[tuple[str, str, list[object]], int]:
    found = re.compile(r"\s*(?:(?:op|m)::)?(\w+)\(").match(text, at)
    assert found is not None, text[at:]
    at, bound, operands = found.end(), "", list[object]()
    while text[at] != ")":
        if text[at] in ", \n":
            at += 1
        elif text.startswith(("m::", "op::", EITHER), at):
            one, at = _matcher(text, at)
            operands.append(one)
        elif text[at] == "(":
            one, at = _matcher(text, at + 1)
            operands.append(one)
            at += 1
        else:
            word = re.compile(r"&?\w+|/\*.*?\*/").match(text, at)
            assert word is not None, text[at:]
            bound, at = (word[0][1:] if word[0][0] == "&" else bound), word.end()
    at += 1
    predicate = PREDICATE.match(text, at)
    if predicate is None:
        return (opcode(found[1]), bound, operands), at
    assert opcode(found[1]) == "fusion" and predicate[1] == "HasBlockLevelFusionConfig", text
    return (TILED, bound, operands), predicate.end()


def fits(instruction: Instruction, wanted: tuple[str, str, list[object]], bound: dict[str, Instruction]) -> bool:
    op, name, operands = wanted
    if op == TILED:
        if instruction.op is not hlo.fusion or instruction.kind != "triton" or not instruction.tile:
            return False
    elif op == opcode(EITHER):
        return "parameter" in (instruction.op.name, *(o.op.name for o in instruction.operands if instruction.op is hlo.bitcast))
    elif op not in (instruction.op.name, ANY):
        return False
    if name:
        bound[name] = instruction
    if not operands:
        return True
    return len(operands) == len(instruction.operands) and all(
        fits(o, w, bound) for o, w in zip(instruction.operands, operands, strict=True))  # type: ignore[arg-type]
