"""Emits the statements of a kernel: loops, conditions, loads with reuse, stores."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from irscope.graph.dtypes import PRED, S32, S64
from irscope.lower.arithmetic import Arithmetic
from irscope.lower.tile import Buffer, Comment, Expr, For, GatherLoad, If, Kernel, Let, Load, Prefetch, Stmt, Store, While


@dataclass(slots=True, eq=False)
class BlockScope:
    """An open block of statements. ``barrier``: loads must not be hoisted out of it, since it may never run."""

    kind: str
    body: list[Stmt] = field(default_factory=list)
    barrier: bool = True
    loads: dict[tuple[object, ...], Expr] = field(default_factory=dict)
    stored: set[Buffer] = field(default_factory=set)
    when: If | bool | None = None


class StatementBuilder(Arithmetic):
    """The half of the builder that writes statements into the innermost open block."""

    def __init__(self, name: str, lanes: int = 16, precision: str = "default") -> None:
        super().__init__()
        self.kernel = Kernel(name, lanes=lanes, precision=precision)
        self.lanes = lanes
        self._scopes = [BlockScope("kernel", self.kernel.body)]
        self._depth: dict[Expr, int] = {}
        self._names: dict[str, int] = {}

    # ---- statements

    def loop(self, low: object, high: object, step: int = 1) -> AbstractContextManager[Expr]:
        """``with k.loop(0, n) as i``: sequential iterations."""
        return self._loop(low, high, step, "for")

    def par(self, low: object, high: object, step: int = 1) -> AbstractContextManager[Expr]:
        """``with k.par(0, n) as i``: independent iterations. Inside anything but ``par`` it is a plain loop."""
        return self._loop(low, high, step, "par" if all(s.kind in ("kernel", "par") for s in self._scopes) else "for")

    @contextmanager
    def _loop(self, low: object, high: object, step: int, kind: str) -> Iterator[Expr]:
        low, high = self.as_index(low), self.as_index(high)
        if step <= 0:
            raise ValueError(f"a loop with step {step}")
        trips = -(-(high.value - low.value) // step) if low.op == high.op == "const" else None
        if trips is not None and trips <= 0:
            with self._nowhere():
                yield low
            return
        if trips == 1:
            yield low
            return
        known = (low.range[0], max(low.range[0], high.range[1] - 1)) if low.range and high.range else None
        if trips is not None:
            known = (low.value, low.value + (trips - 1) * step)
        var = self.variable(self._fresh("i"), S64, known=known)
        with self._block(kind, barrier=trips is None) as scope:
            self._depth[var] = len(self._scopes) - 1
            yield var
        self.emit(For(var, low, high, step, kind, scope.body))

    @contextmanager
    def while_(self, condition: Callable[[], Expr]) -> Iterator[None]:
        """``with k.while_(lambda: ...)``: the condition is computed before each round."""
        with self._block("while") as head:
            holds = condition()
            if holds.dtype is not PRED or holds.lanes != 1:
                raise TypeError(f"a condition of {holds.dtype}x{holds.lanes}")
            with self._block("body") as body:
                yield
        self.emit(While(head.body, holds, body.body))

    @contextmanager
    def when(self, condition: Expr) -> Iterator[None]:
        """``with k.when(c)``; ``with k.otherwise()`` may follow."""
        if condition.dtype is not PRED or condition.lanes != 1:
            raise TypeError(f"a condition of {condition.dtype}x{condition.lanes}")
        if condition.op == "const":
            here = self._scopes[-1]
            with nullcontext() if condition.value else self._nowhere():
                yield
            here.when = bool(condition.value)
            return
        with self._block("if") as scope:
            yield
        statement = If(condition, scope.body)
        self.emit(statement)
        self._scopes[-1].when = statement

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The branch where the condition of the preceding ``when`` does not hold."""
        here = self._scopes[-1]
        before, here.when = here.when, None
        if before is None or (isinstance(before, If) and here.body[-1] is not before):
            raise ValueError("otherwise() follows when() directly")
        if isinstance(before, bool):
            with self._nowhere() if before else nullcontext():
                yield
            return
        with self._block("if") as scope:
            yield
        before.otherwise.extend(scope.body)

    def let(self, value: Expr) -> Expr:
        """The value, computed here and named; a register's value at this moment."""
        var = self.variable(self._fresh("v" if value.lanes > 1 else "s"), value.dtype, value.lanes, value.range)
        self._depth[var] = len(self._scopes) - 1
        self.emit(Let(var, value))
        return var

    def load(self, buffer: Buffer, index: object, lanes: int = 1, mask: Expr | None = None, here: bool = False) -> Expr:
        """One element, or ``lanes`` consecutive ones; where ``mask`` is false nothing is read and the lane is 0.
        ``here``: emit the load in this place, without reuse of an earlier one."""
        index = self.as_index(index)
        if mask is not None:
            mask = self.splat(mask, lanes)
        key = (buffer, index, lanes, mask)
        return self._read(buffer, key, (index, mask), lambda var: Load(var, buffer, index, mask), lanes, here)

    def gather(self, buffer: Buffer, indices: Expr, mask: Expr | None = None) -> Expr:
        """One element per lane, each at its own index (s64 or s32)."""
        if indices.lanes == 1:
            return self.load(buffer, indices, 1, mask)
        if indices.dtype not in (S64, S32):
            raise TypeError(f"gather by {indices.dtype}")
        if mask is not None:
            mask = self.splat(mask, indices.lanes)
        key = (buffer, indices, "gather", mask)
        return self._read(buffer, key, (indices, mask), lambda var: GatherLoad(var, buffer, indices, mask), indices.lanes, False)

    def store(self, buffer: Buffer, index: object, value: object, mask: Expr | None = None, nontemporal: bool = False) -> None:
        """Write one element, or as many consecutive ones as the value has lanes."""
        if buffer.scope in ("in", "const"):
            raise ValueError(f"store to {buffer.name}, which is only read")
        if not isinstance(value, Expr):
            value = self.const(value, buffer.dtype)
        if value.dtype is not buffer.dtype:
            raise TypeError(f"store of {value.dtype} to {buffer.name}, which holds {buffer.dtype}")
        if mask is not None:
            value = self.splat(value, max(mask.lanes, value.lanes))
            mask = self.splat(mask, value.lanes)
        self.emit(Store(buffer, self.as_index(index), value, mask, nontemporal))
        for scope in self._scopes:
            scope.stored.add(buffer)
            for key in [key for key in scope.loads if key[0] is buffer]:
                del scope.loads[key]

    def prefetch(self, buffer: Buffer, index: object) -> None:
        """Prefetch the cache line of an element; an index outside the buffer does no harm."""
        self.emit(Prefetch(buffer, self.as_index(index)))

    def comment(self, text: str) -> None:
        """A comment for readers of the kernel."""
        self.emit(Comment(text))

    # ---- scopes

    def _fresh(self, stem: str) -> str:
        n = self._names.get(stem, -1) + 1
        self._names[stem] = n
        return f"{stem}{n}" if stem in ("i", "r", "v", "s") or n else stem

    def emit(self, statement: Stmt) -> None:
        """Append a statement here."""
        self._scopes[-1].body.append(statement)

    def scope_token(self) -> BlockScope:
        """The innermost open block; only for comparison."""
        return self._scopes[-1]

    def is_open(self, scope: BlockScope) -> bool:
        """Whether a block that :meth:`scope_token` returned is still open."""
        return scope in self._scopes

    @contextmanager
    def _block(self, kind: str, barrier: bool = True) -> Iterator[BlockScope]:
        """Open a block, which is the innermost one until the ``with`` block ends."""
        scope = BlockScope(kind, barrier=barrier)
        self._scopes.append(scope)
        try:
            yield scope
        finally:
            if self._scopes[-1] is not scope:
                raise ValueError("loops are closed in the order they were opened")
            self._scopes.pop()

    @contextmanager
    def _nowhere(self) -> Iterator[None]:
        """Drop the statements of the ``with`` block, and what they record as stored."""
        stored = [set(s.stored) for s in self._scopes]
        try:
            with self._block("nowhere"):
                yield
        finally:
            for outer, before in zip(self._scopes, stored):
                outer.stored = before

    def _level(self, x: Expr | None) -> int:
        """The innermost scope that defines a variable of an expression."""
        if x is None or x.op == "const":
            return 0
        found = self._depth.get(x)
        if found is not None:
            return found
        if x.op == "reg":
            return len(self._scopes) - 1
        stack = [x]
        while stack:
            top = stack[-1]
            waiting = [a for a in top.args if a not in self._depth and a.op != "reg"]
            if waiting:
                stack.extend(waiting)
                continue
            if top not in self._depth:
                inner = len(self._scopes) - 1 if any(a.op == "reg" for a in top.args) else 0
                self._depth[top] = max([self._depth.get(a, inner) for a in top.args], default=0)
            stack.pop()
        return self._depth[x]

    def _read(self, buffer: Buffer, key: tuple[object, ...], inputs: tuple[Expr | None, ...], make: Callable[[Expr], Stmt], lanes: int,
              here: bool) -> Expr:
        fixed = buffer.scope in ("in", "const")
        innermost = len(self._scopes) - 1
        level = innermost
        if not here:
            # Loads of memory that may be written are reused within their own scope and in conditions nested there, which do not repeat.
            reach = level
            while reach > 0 and (fixed or (self._scopes[reach].kind == "if" and buffer not in self._scopes[reach].stored)):
                reach -= 1
            for depth in range(innermost, reach - 1, -1):
                found = self._scopes[depth].loads.get(key)
                if found is not None:
                    return found
            if fixed:
                lowest = max(self._level(x) for x in inputs)
                while level > lowest and not self._scopes[level].barrier:
                    level -= 1
        var = self.variable(self._fresh("v" if lanes > 1 else "s"), buffer.dtype, lanes)
        self._depth[var] = level
        self._scopes[level].body.append(make(var))
        if not here:
            self._scopes[level].loads[key] = var
        return var
