"""What the builder does at the end: statements without use go, and a register that is read once is read where it is used.

    s3 = r0                      r0 := r0 + s2
    r0 := s3 + s2        ->
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from irscope.lower.tile import (
    Assign,
    Comment,
    Declare,
    Expr,
    For,
    GatherLoad,
    If,
    Kernel,
    Let,
    Load,
    Prefetch,
    Register,
    Stmt,
    Store,
    While,
)

if TYPE_CHECKING:
    from irscope.lower.expressions import Expressions


def expressions(statement: Stmt) -> list[Expr]:
    """The expressions that a statement itself evaluates."""
    if isinstance(statement, Load):
        return [statement.index] if statement.mask is None else [statement.index, statement.mask]
    if isinstance(statement, GatherLoad):
        return [statement.indices] if statement.mask is None else [statement.indices, statement.mask]
    if isinstance(statement, Let | Assign):
        return [statement.value]
    if isinstance(statement, Store):
        return [statement.index, statement.value] if statement.mask is None else [statement.index, statement.value, statement.mask]
    if isinstance(statement, Declare):
        return [statement.init]
    if isinstance(statement, For):
        return [statement.low, statement.high]
    if isinstance(statement, While | If):
        return [statement.condition]
    if isinstance(statement, Prefetch):
        return [statement.index]
    return []


def blocks(statement: Stmt) -> tuple[list[Stmt], ...]:
    """The statements inside a statement."""
    if isinstance(statement, For):
        return (statement.body,)
    if isinstance(statement, If):
        return (statement.then, statement.otherwise)
    if isinstance(statement, While):
        return (statement.head, statement.body)
    return ()


def walk(body: list[Stmt]) -> Iterator[Stmt]:
    """Every statement, however deep, in text order."""
    stack = list(reversed(body))
    while stack:
        statement = stack.pop()
        yield statement
        for block in reversed(blocks(statement)):
            stack.extend(reversed(block))


def leaves(roots: Iterable[Expr], seen: set[Expr] | None = None) -> list[Expr]:
    """The ``var`` and ``reg`` expressions below some expressions, each once."""
    seen = set() if seen is None else seen
    found, stack = [], list(roots)
    while stack:
        x = stack.pop()
        if x in seen:
            continue
        seen.add(x)
        if x.op in ("var", "reg"):
            found.append(x)
        else:
            stack.extend(x.args)
    return found


def assigned(body: list[Stmt]) -> list[Register]:
    """The registers that statements set, each once, in order."""
    return list({s.register: None for s in walk(body) if isinstance(s, Assign)})


def tidy(kernel: Kernel, table: Expressions) -> None:
    """Both, in place."""
    _drop_unused(kernel)
    _read_in_place(kernel, table)


def _drop_unused(kernel: Kernel) -> None:
    definitions: dict[Expr | Register, list[Stmt]] = {}
    waiting: list[Stmt] = []
    for statement in walk(kernel.body):
        if isinstance(statement, Load | GatherLoad | Let):
            definitions.setdefault(statement.var, []).append(statement)
        elif isinstance(statement, Assign | Declare):
            definitions.setdefault(statement.register, []).append(statement)
        else:
            waiting.append(statement)
    used: set[Expr | Register] = set()
    seen: set[Expr] = set()
    while waiting:
        for leaf in leaves(expressions(waiting.pop()), seen):
            name = leaf.value if leaf.op == "reg" else leaf
            if name not in used:
                used.add(name)
                waiting.extend(definitions.get(name, ()))
    _sweep(kernel.body, used)


def _sweep(body: list[Stmt], used: set[Expr | Register]) -> None:
    """Remove what defines nothing used, then loops and conditions that have become empty."""
    order: list[list[Stmt]] = [body]
    for block in order:
        for statement in block:
            order.extend(blocks(statement))
    for block in reversed(order):
        block[:] = [s for s in block if _stays(s, used)]


def _stays(statement: Stmt, used: set[Expr | Register]) -> bool:
    if isinstance(statement, Load | GatherLoad | Let):
        return statement.var in used
    if isinstance(statement, Assign | Declare):
        return statement.register in used
    if isinstance(statement, For | If):
        return any(not isinstance(s, Comment) for block in blocks(statement) for s in block)
    return True


def _read_in_place(kernel: Kernel, table: Expressions) -> None:
    readers: dict[Expr, int] = {}
    for statement in walk(kernel.body):
        for leaf in leaves(expressions(statement)):
            readers[leaf] = readers.get(leaf, 0) + 1
    order: list[list[Stmt]] = [kernel.body]
    for block in order:
        for statement in block:
            order.extend(blocks(statement))
        _read_in_block(block, readers, table)


def _read_in_block(block: list[Stmt], readers: dict[Expr, int], table: Expressions) -> None:
    """Within one block: a snapshot that a single later statement reads, with no assignment between, is replaced by the register."""
    pending: dict[Expr, int] = {}
    gone: set[int] = set()
    for place, statement in enumerate(block):
        if isinstance(statement, Let) and statement.value.op == "reg":
            if readers.get(statement.var, 0) == 1:
                pending[statement.var] = place
            continue
        if not pending:
            continue
        if not blocks(statement):
            swap = {}
            for leaf in leaves(expressions(statement)):
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


def _substitute(statement: Stmt, swap: dict[Expr, Expr], table: Expressions) -> None:
    memo = dict(swap)

    def replaced(root: Expr) -> Expr:
        stack = [root]
        while stack:
            x = stack[-1]
            if x in memo:
                stack.pop()
                continue
            waiting = [a for a in x.args if a not in memo]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            args = tuple(memo[a] for a in x.args)
            memo[x] = x if args == x.args else table.make(x.op, args, x.dtype, x.lanes, x.value)
        return memo[root]

    if isinstance(statement, Let | Assign):
        statement.value = replaced(statement.value)
    elif isinstance(statement, Store):
        statement.index, statement.value = replaced(statement.index), replaced(statement.value)
        statement.mask = None if statement.mask is None else replaced(statement.mask)
    elif isinstance(statement, Load):
        statement.index = replaced(statement.index)
        statement.mask = None if statement.mask is None else replaced(statement.mask)
    elif isinstance(statement, GatherLoad):
        statement.indices = replaced(statement.indices)
        statement.mask = None if statement.mask is None else replaced(statement.mask)
    elif isinstance(statement, Declare):
        statement.init = replaced(statement.init)
    elif isinstance(statement, Prefetch):
        statement.index = replaced(statement.index)
