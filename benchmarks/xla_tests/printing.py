"""A module behind a fusion pass as XLA prints it, and the lines of a FileCheck test held against it (for ``xla_fusion_tests.py``)."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.graph import TensorType, Type


def printed(computations: list[Computation], kind_of: Callable[[Instruction], str]) -> str:
    """Bodies of fusions in front of the computation that has them, the entry last."""
    names: dict[Instruction, str] = {}
    lines: list[str] = []
    for computation in computations:
        order = computation.post_order()
        for fusion in order:
            if fusion.body is not None:
                params = ", ".join(f"{_name(p, names)}: {_type(p.type, False)}" for p in fusion.body.params)
                lines.append(f"%{_called(fusion)} ({params}) -> {_type(fusion.type, False)} {{")
                lines += [_line(i, fusion.body, names, kind_of) for i in _parameters_first(fusion.body)]
                lines.append("}")
        entry = computation is computations[-1]
        lines.append(f"{'ENTRY ' if entry else ''}%{computation.name} () -> {_type(computation.root.type, False)} {{")
        lines += [_line(i, computation, names, kind_of) for i in order]
        lines.append("}")
    return "\n".join(lines)


def _parameters_first(body: Computation) -> list[Instruction]:
    return body.post_order()


def _called(fusion: Instruction) -> str:
    assert fusion.body is not None
    return fusion.body.name or "fused_computation"


def _name(instruction: Instruction, names: dict[Instruction, str]) -> str:
    if instruction not in names:
        base = instruction.node.name if instruction.node is not None else "p" if instruction.op == "parameter" else instruction.op
        used = set(names.values())
        name, number = base, 1
        while name in used:
            name, number = f"{base}.{number}", number + 1
        names[instruction] = name
    return names[instruction]


def _line(instruction: Instruction, owner: Computation, names: dict[Instruction, str], kind_of: Callable[[Instruction], str]) -> str:
    op = instruction.op
    operands = ", ".join(f"%{_name(o, names)}" for o in instruction.operands)
    more = ""
    if op == "parameter":
        operands = str(owner.params.index(instruction))
    elif op == "constant":
        operands = "0"
    elif op == "fusion":
        more = f", kind={kind_of(instruction)}, calls=%{_called(instruction)}" if instruction.body is not None else ""
    elif "dimensions" in instruction.attrs:
        more = f", dimensions={{{','.join(map(str, instruction.attrs['dimensions']))}}}"
    if op == "reduce" and instruction.bodies:
        more += f", to_apply=%{instruction.bodies[0].name}"
    root = "ROOT " if instruction is owner.root else ""
    return f"  {root}%{_name(instruction, names)} = {_type(instruction.type)} {op}({operands}){more}"


def _type(type_: Type, layout: bool = True) -> str:
    if isinstance(type_, TensorType):
        dims = ",".join(map(str, type_.shape))
        minor = type_.layout.minor_to_major if type_.layout is not None else tuple(range(len(type_.shape) - 1, -1, -1))
        return f"{type_.dtype.name}[{dims}]" + (f"{{{','.join(map(str, minor))}}}" if layout and type_.shape else "")
    return f"({', '.join(_type(leaf, layout) for leaf in type_.leaves())})"


@dataclass
class Checked:
    """The first line that is not met, empty where all are."""

    failed: str = ""


KEY = re.compile(r"^\s*(?://|;)?\s*CHECK(-NEXT|-NOT|-SAME|-DAG|-COUNT-(\d+))?:\s*(.*)$")
CLONE = ".clone.1"
"""What XLA adds to the name of a copy; names are no outcome."""
NAMED = re.compile(r"(?<=[(\s])[\w.]+(?=: )")
"""A parameter in the head of a computation."""


def check(lines: list[str], text: str) -> Checked:
    """FileCheck: each line is looked for behind the one before it; ``-NEXT`` on the next line, ``-NOT`` nowhere behind."""
    module = text.split("\n")
    at = 0
    bound: dict[str, str] = {}
    for line in lines:
        found = KEY.match(line)
        if found is None:
            continue
        how, count, pattern = found[1] or "", int(found[2] or 1), NAMED.sub("{{[^ ]+}}", found[3].replace(CLONE, ""))
        if how == "-NOT":
            if any(re.search(_regex(pattern, bound), rest) for rest in module[at:]):
                return Checked(line.strip())
            continue
        for _ in range(count):
            places = range(at, at + 1) if how == "-NEXT" else range(at, len(module))
            hit = next(((n, m) for n in places if n < len(module) and (m := re.search(_regex(pattern, bound), module[n]))), None)
            if hit is None:
                return Checked(line.strip())
            at = hit[0] + 1
            bound |= {name: value for name, value in hit[1].groupdict().items() if value is not None}
    return Checked()


def _regex(pattern: str, bound: dict[str, str]) -> str:
    made, at = "", 0
    here: set[str] = set()
    for part in re.finditer(r"\{\{(.*?)\}\}|\[\[(\w+):(.*?)\]\](?!\])|\[\[(\w+)\]\]", pattern):
        made += _plain(pattern[at:part.start()])
        if part[1] is not None:
            made += part[1]
        elif part[2] is not None:
            made += f"(?P<{part[2]}>{part[3]})"
            here.add(part[2])
        else:
            made += f"(?P={part[4]})" if part[4] in here else re.escape(bound.get(part[4], ""))
        at = part.end()
    return made + _plain(pattern[at:])


def _plain(text: str) -> str:
    return re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(text).replace("\\ ", " "))
