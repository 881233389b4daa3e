"""Traversal of statements, steps and expressions by the fields that their classes declare, and dispatch by class.

Code that reads a whole kernel is a :class:`Visitor`: one function per kind of statement. Kinds that it only passes through need none.

    class Names(Visitor):
        @visits(Load, GatherLoad)
        def load(self, s: Load | GatherLoad) -> None:
            self.names.append(s.buffer.name)

        @visits(Stmt)
        def other(self, s: Stmt) -> None:           # every kind without a function of its own
            for block in s.blocks():
                self.block(block)
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from irscope.lower.tile import Assign, Comment, Expr, Register, Stmt

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class _Nested(Protocol):
    """A statement or a step."""

    def blocks(self) -> Sequence[Sequence[Any]]: ...


N = TypeVar("N", bound=_Nested)


# ---- by kind


def visits(*kinds: type) -> Callable[[F], F]:
    """Marks the method of a :class:`Visitor` that is called for these classes, and for subclasses without a method of their own."""
    def mark(function: F) -> F:
        function.__dict__["kinds"] = kinds
        return function
    return mark


class _Functions(dict[type, Callable[..., object]]):
    """The function of each class; that of a base where a class has none."""

    def __missing__(self, kind: type) -> Callable[..., object]:
        for base in kind.__mro__[1:]:
            if base in self:
                self[kind] = self[base]
                return self[kind]
        raise TypeError(f"no function for {kind.__name__}")


class Visitor:
    """Calls a function for each statement or step, by its class. A class without a function raises TypeError.

    A :class:`Comment` is skipped, unless the visitor has a function for it.
    """

    __slots__ = ()
    functions: ClassVar[_Functions] = _Functions()

    def __init_subclass__(cls) -> None:
        cls.functions = _Functions({kind: function for base in reversed(cls.__mro__) for function in vars(base).values()
                                    for kind in getattr(function, "kinds", ())})

    @visits(Comment)
    def skip_comment(self, s: Comment, *args: object) -> None:
        """Does nothing."""

    def visit(self, node: object, *args: object) -> object:
        """The result of the function of its class for a statement or step."""
        return self.functions[type(node)](self, node, *args)

    def block(self, body: Sequence[Any], *args: Any) -> None:
        """Visit statements or steps in order. Blocks nest as loops do, so recursion is as deep as the loops of a kernel."""
        functions = self.functions
        for node in body:
            functions[type(node)](self, node, *args)


# ---- statements and steps


def walk(body: Sequence[N]) -> Iterator[N]:
    """Every statement or step, however deep, in text order."""
    stack = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        blocks = node.blocks()
        if blocks:
            for block in reversed(blocks):
                stack.extend(reversed(block))


def assigned(body: Sequence[Stmt]) -> list[Register]:
    """The registers that statements set, each once, in order."""
    return list({s.register: None for s in walk(body) if isinstance(s, Assign)})


# ---- expressions


def subexpressions(roots: Iterable[Expr], seen: set[Expr] | None = None) -> Iterator[Expr]:
    """The expressions themselves and all that they are computed from, each once; skips those in ``seen``, and adds the others to it."""
    seen = set() if seen is None else seen
    stack = list(roots)
    while stack:
        x = stack.pop()
        if x not in seen:
            seen.add(x)
            yield x
            stack.extend(x.args)


def leaves(roots: Iterable[Expr], seen: set[Expr] | None = None) -> list[Expr]:
    """The ``var`` and ``reg`` expressions below some expressions, each once."""
    seen = set() if seen is None else seen
    found, stack = [], list(roots)
    while stack:  # subexpressions() inlined: the builder calls this for every statement
        x = stack.pop()
        if x not in seen:
            seen.add(x)
            if x.op in ("var", "reg"):
                found.append(x)
            else:
                stack.extend(x.args)
    return found


def fold(root: Expr, known: dict[Expr, T], make: Callable[[Expr, list[T]], T]) -> T:
    """The result of ``make`` for an expression, computed from its results for the operands. ``known`` caches the results."""
    stack = [root]
    while stack:
        x = stack[-1]
        waiting = [a for a in x.args if a not in known] if x not in known else []
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        if x not in known:
            known[x] = make(x, [known[a] for a in x.args])
    return known[root]
