"""A module behind a fusion pass as XLA prints it, and the lines of a FileCheck test held against it (for ``xla_fusion_tests.py``)."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.graph import Node, TensorType, Type
from irscope.ops import hlo

PRODUCTS = (hlo.dot, hlo.scaled_dot)
KERNEL = '{"kind":"__triton_gemm"}'
"""What XLA writes down of a Triton kernel of a product."""
Metadata = Callable[[Node], str]


def no_metadata(node: Node) -> str:
    """What is printed of a node where the text is not at hand."""
    return ""


def printed(computations: list[Computation], kind_of: Callable[[Instruction], str], metadata: Metadata = no_metadata) -> str:
    """Bodies of fusions in front of the computation that has them, the entry last; ``metadata`` of products is printed too."""
    names: dict[Instruction, str] = {}
    lines: list[str] = []
    for computation in computations:
        order = computation.post_order()
        for fusion in order:
            if fusion.body is not None:
                params = ", ".join(f"{_name(p, names)}: {_type(p.type, False)}" for p in fusion.body.params)
                lines.append(f"%{_called(fusion)} ({params}) -> {_type(fusion.type, False)} {{")
                lines += [_line(i, fusion.body, names, kind_of, metadata) for i in _parameters_first(fusion.body)]
                lines.append("}")
        entry = computation is computations[-1]
        lines.append(f"{'ENTRY ' if entry else ''}%{computation.name} () -> {_type(computation.root.type, False)} {{")
        lines += [_line(i, computation, names, kind_of, metadata) for i in order]
        lines.append("}")
    return "\n".join(lines)


def _parameters_first(body: Computation) -> list[Instruction]:
    return body.post_order()


def _called(fusion: Instruction) -> str:
    assert fusion.body is not None
    return fusion.body.name or "fused_computation"


def _name(instruction: Instruction, names: dict[Instruction, str]) -> str:
    if instruction not in names:
        base = instruction.node.name if instruction.node is not None else "p" if instruction.op is hlo.parameter else instruction.op.name
        used = set(names.values())
        name, number = base, 1
        while name in used:
            name, number = f"{base}.{number}", number + 1
        names[instruction] = name
    return names[instruction]


def _line(instruction: Instruction, owner: Computation, names: dict[Instruction, str], kind_of: Callable[[Instruction], str],
          metadata: Metadata) -> str:
    op = instruction.op
    operands = ", ".join(f"%{_name(o, names)}" for o in instruction.operands)
    more = ""
    if op is hlo.parameter:
        operands = str(owner.params.index(instruction))
    elif op is hlo.constant:
        operands = "0"
    elif op is hlo.fusion:
        more = f", kind={kind_of(instruction)}, calls=%{_called(instruction)}" if instruction.body is not None else ""
        if instruction.body is not None and any(i.op in PRODUCTS for i in instruction.body.instructions):
            more += f", backend_config={KERNEL}"
    elif op in PRODUCTS:
        more = "".join(f", {key}={{{','.join(map(str, value))}}}" for key, value in instruction.attrs.items() if key.endswith("_dims"))
        told = metadata(instruction.node) if instruction.node is not None else ""
        more += f", metadata={told}" if told else ""
    elif "dimensions" in instruction.attrs:
        more = f", dimensions={{{','.join(map(str, instruction.attrs['dimensions']))}}}"
    if op is hlo.reduce and instruction.bodies:
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
NUMBERED = re.compile(r"(?<=%)[\w-]+\.\d+")
"""A name that XLA made unique."""


def check(lines: list[str], text: str) -> Checked:
    """FileCheck: each line is looked for behind the one before it; ``-NEXT`` on the next line, ``-SAME`` on the same, neighbouring
    ``-DAG`` in any order, ``-NOT`` nowhere between the lines around it."""
    at = 0
    nowhere: list[tuple[str, str]] = []
    together: tuple[int, int] | None = None
    """Where neighbouring ``-DAG`` lines are looked for from, and where the last of them ends."""
    bound: dict[str, str] = {}
    for line in lines:
        found = KEY.match(line)
        if found is None:
            continue
        how, count = found[1] or "", int(found[2] or 1)
        pattern = NUMBERED.sub("{{[^ ,)]+}}", NAMED.sub("{{[^ ]+}}", found[3].replace(CLONE, "")))
        if how == "-NOT":
            nowhere.append((line.strip(), pattern))
            continue
        if how != "-DAG":
            together = None
        for _ in range(count):
            start = together[0] if together is not None else at
            first, last = start, len(text)
            if how in ("-NEXT", "-SAME"):
                ends = [n for n in (text.find("\n", at), text.find("\n", text.find("\n", at) + 1)) if n >= 0]
                first, last = (ends[0] + 1, (*ends, len(text))[1]) if how == "-NEXT" else (at, ends[0])
            hit = re.compile(_regex(pattern, bound)).search(text, first, last)
            if hit is None or any(re.compile(_regex(not_, bound)).search(text, at, hit.start()) for _, not_ in nowhere):
                return Checked(line.strip() if hit is None else nowhere[0][0])
            nowhere = []
            at = max(hit.end(), together[1]) if together is not None else hit.end()
            if how == "-DAG":
                together = start, at
            bound |= {name: value for name, value in hit.groupdict().items() if value is not None}
    if any(re.compile(_regex(not_, bound)).search(text, at) for _, not_ in nowhere):
        return Checked(nowhere[0][0])
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
