"""The builder's clean-up: dead-code elimination, and forwarding of registers that are read once to their use.

    s3 = r0                      r0 := r0 + s2
    r0 := s3 + s2        ->
"""
from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from irscope.lower.tile import Comment, Expr, Kernel, Let, Register, Stmt
from irscope.lower.traversal import assigned, fold, leaves, walk

if TYPE_CHECKING:
    from irscope.lower.expressions import ExpressionTable


def tidy(kernel: Kernel, table: ExpressionTable) -> None:
    """Run both, in place."""
    _drop_unused(kernel)
    _read_in_place(kernel, table)


def _drop_unused(kernel: Kernel) -> None:
    definitions: dict[Expr | Register, list[Stmt]] = {}
    waiting: list[Stmt] = []
    for statement in walk(kernel.body):
        result = statement.result
        (waiting if result is None else definitions.setdefault(result, [])).append(statement)
    used: set[Expr | Register] = set()
    seen: set[Expr] = set()
    while waiting:
        for leaf in leaves(waiting.pop().operands(), seen):
            name = leaf.value if leaf.op == "reg" else leaf
            if name not in used:
                used.add(name)
                waiting.extend(definitions.get(name, ()))
    _sweep(kernel.body, used)


def _sweep(body: list[Stmt], used: set[Expr | Register]) -> None:
    """Remove statements whose results are unused, then loops and conditions that have become empty."""
    order: list[list[Stmt]] = [body]
    for block in order:
        for statement in block:
            order.extend(statement.blocks())
    for block in reversed(order):
        block[:] = [s for s in block if _stays(s, used)]


def _stays(statement: Stmt, used: set[Expr | Register]) -> bool:
    result = statement.result
    if result is not None:
        return result in used
    return not statement.dead_when_empty or any(not isinstance(s, Comment) for block in statement.blocks() for s in block)


def _read_in_place(kernel: Kernel, table: ExpressionTable) -> None:
    readers = Counter(leaf for statement in walk(kernel.body) for leaf in leaves(statement.operands()))
    order: list[list[Stmt]] = [kernel.body]
    for block in order:
        for statement in block:
            order.extend(statement.blocks())
        _read_in_block(block, readers, table)


def _read_in_block(block: list[Stmt], readers: Counter[Expr], table: ExpressionTable) -> None:
    """Within one block, replace a snapshot that a single later statement reads, with no assignment in between, by the register."""
    pending: dict[Expr, int] = {}
    gone: set[int] = set()
    for place, statement in enumerate(block):
        if isinstance(statement, Let) and statement.value.op == "reg":
            if readers[statement.var] == 1:
                pending[statement.var] = place
            continue
        if not pending:
            continue
        if not statement.blocks():
            swap: dict[Expr, Expr] = {}
            for leaf in leaves(statement.operands()):
                if leaf in pending:
                    at = pending.pop(leaf)
                    let = block[at]
                    assert isinstance(let, Let)
                    swap[leaf] = let.value
                    gone.add(at)
            if swap:
                _substitute(statement, swap, table)
        changed = set(assigned([statement]))
        if changed:
            pending = {var: at for var, at in pending.items() if _register(block[at]) not in changed}
    if gone:
        block[:] = [s for place, s in enumerate(block) if place not in gone]


def _register(statement: Stmt) -> Register:
    assert isinstance(statement, Let)
    register = statement.value.value
    assert isinstance(register, Register)
    return register


def _substitute(statement: Stmt, swap: dict[Expr, Expr], table: ExpressionTable) -> None:
    def rebuilt(x: Expr, args: list[Expr]) -> Expr:
        return x if tuple(args) == x.args else table.make(x.op, tuple(args), x.dtype, x.lanes, x.value)

    statement.replace_operands(lambda x: fold(x, swap, rebuilt))
