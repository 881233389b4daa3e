"""The loops of a scheduler node: sizes, index expressions, and the scalar operations of one iteration.

    class op0_loop_body:
        var_ranges = {p0: 32, p1: 128}
        index0 = 128*p0 + p1
        def body(self, ops):
            get_index = self.get_index('index0')
            load = ops.load('primals_3', get_index)
            reduction = ops.reduction(torch.float32, torch.float32, 'sum', load)
            store_reduction = ops.store_reduction('buf0', get_index_1, reduction)
            return None
"""
from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import dedent

from irscope.formats.inductor.python_text import PythonFault, dotted, parse_module, text_of
from irscope.formats.syntax import SyntaxFault
from irscope.source.budget import tick

NO_WORK = frozenset(
    "load store store_reduction index_expr constant get_index indirect_indexing check_bounds placeholder output to_dtype_bitcast "
    "device_assert_async set_indirect masked_subblock getitem".split())
"""Operations that move or name a value and compute none; ``to_dtype`` is a conversion and counts."""
REDUCTIONS = {"reduction": "reduction", "store_reduction": "reduction", "scan": "scan", "sort": "sort", "dot": "reduction"}
"""Operations that make a loop more than pointwise."""

MOST_ITERATIONS = 1 << 256
"""Loops of more iterations are refused: their work exceeds the range of floats."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: the name of its result, what it calls, and its operands as written."""

    result: str
    name: str
    operands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.result} = {self.name}({', '.join(self.operands)})"


@dataclass(slots=True)
class LoopBody:
    """``ranges`` are the loops, outermost first; ``indices`` the index expressions; ``blocks`` the operations of each block by name.

    The first block is ``body``; the others run where a mask is set.
    """

    ranges: dict[str, str] = field(default_factory=dict)
    indices: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, list[Operation]] = field(default_factory=dict)

    def operations(self) -> Iterator[Operation]:
        """The operations of all blocks."""
        for block in self.blocks.values():
            yield from block

    @property
    def kind(self) -> str:
        """``pointwise``, ``reduction``, ``scan`` or ``sort``."""
        return next((REDUCTIONS[operation.name] for operation in self.operations() if operation.name in REDUCTIONS), "pointwise")

    def iterations(self) -> int:
        """The product of the loops; an open size counts as 1."""
        count = 1
        for size in self.ranges.values():
            count *= int(size) if size.isdecimal() and len(size) < 19 else 1
        return count

    def flops(self) -> float:
        """The scalar operations of all iterations."""
        work = sum(operation.name.rstrip("0123456789") not in NO_WORK for operation in self.operations())
        return float(work * self.iterations())

    def __str__(self) -> str:
        loops = ", ".join(f"{name} < {size}" for name, size in self.ranges.items())
        return f"for {loops}: " + "; ".join(map(str, self.operations()))


def read_body(lines: list[tuple[int, str]], end: int, faults: list[SyntaxFault], owner: str) -> LoopBody:
    """The loops in the indented lines after ``class NAME_loop_body:``; what is wrong with them is added to ``faults``."""
    body = LoopBody()
    while lines and not lines[-1][1].strip():
        lines = lines[:-1]
    text = dedent("\n".join(line for _, line in lines))
    if not text:
        faults.append(SyntaxFault(end, f"the text ends inside the loop body of {owner}"))
        return body
    try:
        tree = parse_module(text)
    except PythonFault as fault:
        number = min(max(fault.line, 1), len(lines)) - 1
        ends, broken = f"the text ends inside the loop body of {owner}", f"the loop body of {owner} is not Python: {fault.message}"
        words = ends if fault.cut else broken
        offset, line = lines[number]
        faults.append(SyntaxFault(offset, words, length=max(1, len(line))))
        return body
    for statement in tree.body:
        tick()
        if isinstance(statement, ast.FunctionDef):
            body.blocks[statement.name] = _block(statement, lines, faults, owner)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if name == "var_ranges" and isinstance(statement.value, ast.Dict):
                body.ranges = {text_of(key): text_of(value) for key, value in zip(statement.value.keys, statement.value.values) if key}
            else:
                body.indices[name] = text_of(statement.value)
    if body.iterations() > MOST_ITERATIONS:
        body.ranges = {}
        faults.append(SyntaxFault(lines[0][0], f"the loops of {owner} run more than 2**256 times", length=max(1, len(lines[0][1]))))
    if "body" not in body.blocks:
        faults.append(SyntaxFault(lines[-1][0], f"the text ends inside the loop body of {owner}: it has no operations"))
    return body


def _block(function: ast.FunctionDef, lines: list[tuple[int, str]], faults: list[SyntaxFault], owner: str) -> list[Operation]:
    """The operations of one function of a body."""
    found: list[Operation] = []
    for statement in function.body:
        tick()
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            found.append(_operation(statement.targets[0].id, statement.value))
        elif isinstance(statement, ast.Expr):
            found.append(_operation("", statement.value))
        elif not isinstance(statement, ast.Return | ast.Pass):
            offset, line = lines[min(statement.lineno, len(lines)) - 1]
            faults.append(SyntaxFault(offset, f"an operation is expected in the loop body of {owner}", length=max(1, len(line))))
    if not isinstance(function.body[-1], ast.Return):
        faults.append(SyntaxFault(lines[-1][0], f"the text ends inside the loop body of {owner}: {function.name} returns nothing",
                                  length=max(1, len(lines[-1][1]))))
    return found


def _operation(result: str, value: ast.expr) -> Operation:
    if isinstance(value, ast.Call):
        operands = [text_of(argument) for argument in value.args]
        operands += [f"{word.arg}={text_of(word.value)}" for word in value.keywords]
        return Operation(result, dotted(value.func).rpartition(".")[2] or "call", tuple(operands))
    if isinstance(value, ast.Subscript):
        return Operation(result, "getitem", (text_of(value.value), text_of(value.slice)))
    return Operation(result, "constant", (text_of(value),))
