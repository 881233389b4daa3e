"""The numbers and kinds that decide under the policies irscope and tvm: each, changed by one step, changes what some small program becomes."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

import irscope
from irscope.expand import expand
from irscope.fusion import attention, fits, policy_named, tvm_walk
from irscope.fusion import irscope as own
from irscope.fusion.tvm import POLICY as TVM
from irscope.fusion.tvm_kinds import TvmKind, tvm_kind
from irscope.fusion.tvm_partition import MAX_DEPTH
from irscope.graph import Module, Op
from irscope.ops import get
from tests.lower.test_templates_attention import attention as attending
from tests.lower.whole import ADD, entry, module_of


def kinds(text: str) -> list[str]:
    """The kernels of irscope's compiler, by their kinds."""
    return [group.kind for group in policy_named("irscope").plan(expand(module_of(text)).main()).groups]


def chain(count: int) -> str:
    """Operations one behind the other."""
    lines = ["x = f32[4] parameter(0)", "a0 = f32[4] negate(x)", *(f"a{i} = f32[4] negate(a{i - 1})" for i in range(1, count - 1))]
    return entry("\n".join([*lines, f"ROOT r = f32[4] negate(a{count - 2})"]))


def repeated(*operators: str) -> str:
    """Unary operations whose result is repeated along the outer axis."""
    lines, last = ["x = f32[8] parameter(0)", "y = f32[100,8] parameter(1)"], "x"
    for i, operator in enumerate(operators):
        lines.append(f"e{i} = f32[8] {operator}({', '.join([last] * (2 if operator == 'divide' else 1))})")
        last = f"e{i}"
    return entry("\n".join([*lines, f"b = f32[100,8] broadcast({last}), dimensions={{1}}", "ROOT r = f32[100,8] add(y, b)"]))


def row(length: int) -> str:
    """Rows that are summed and divided by their sum."""
    return entry(f"""
        x = f32[2,{length}] parameter(0)
        zero = f32[] constant(0)
        s = f32[2] reduce(x, zero), dimensions={{1}}, to_apply=sum
        b = f32[2,{length}] broadcast(s), dimensions={{0}}
        ROOT r = f32[2,{length}] divide(x, b)""", ADD)


def pieces(length: int) -> str:
    """A concatenation that is read once."""
    return entry(f"""
        x = f32[{length - 4}] parameter(0)
        y = f32[4] parameter(1)
        a = f32[{length - 4}] negate(x)
        c = f32[{length}] concatenate(a, y), dimensions={{0}}
        ROOT r = f32[{length}] negate(c)""")


def keyed(keys: int) -> str:
    """Attention over so many keys."""
    return attending(2, keys, depth=4, values=4)


Program = Callable[[int], str]
NUMBERS: list[tuple[object, str, Program, int, int]] = [
    # where it stands, its name, programs by size, the last size within and the first beyond
    (fits, "MAX_NODES", chain, 300, 301),
    (fits, "MAX_REPEATED", lambda n: repeated(*["negate"] * n), 4, 5),
    (fits, "MAX_ROW", row, 1 << 16, (1 << 16) + 1),
    (own, "MAX_INLINE", pieces, 64, 65),
    (attention, "MIN_KEYS", keyed, 16, 15),
]


@pytest.mark.parametrize("place, name, program, within, beyond", NUMBERS, ids=[n[1] for n in NUMBERS])
def test_every_threshold_matters(place: object, name: str, program: Program, within: int, beyond: int,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    inside, outside = kinds(program(within)), kinds(program(beyond))
    assert inside != outside and abs(within - beyond) == 1 and getattr(place, name) == within
    # Moved to where the other program stands, the number takes that one in; moved away, it leaves out the one that was in.
    monkeypatch.setattr(place, name, beyond)
    assert kinds(program(beyond)) == inside
    monkeypatch.setattr(place, name, 2 * within - beyond)
    assert kinds(program(within)) == outside


def test_what_an_operation_weighs_decides_what_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = ["map"], ["map", "map"]
    assert kinds(repeated("divide")) == one and kinds(repeated("divide", "negate")) == two and kinds(repeated("exponential")) == two
    monkeypatch.setattr(Op, "__setattr__", object.__setattr__)  # declarations are frozen
    for heavy in ("exponential", "divide"):
        monkeypatch.setattr(get(heavy), "weight", 1)
    assert kinds(repeated("divide", "negate")) == one and kinds(repeated("exponential")) == one
    monkeypatch.setattr(get("divide"), "weight", 5)
    assert kinds(repeated("divide")) == two


# ---------------------------------------------------------------- tvm


REPRESENTATIVES = {
    TvmKind.ELEMWISE: "exp({x})", TvmKind.BROADCAST: "expand_dims({x}, axis=0)", TvmKind.INJECTIVE: "transpose({x})",
    TvmKind.COMM_REDUCE: "sum({x}, axis=[0], keepdims=True)", TvmKind.OUT_ELEMWISE_FUSABLE: "nn.softmax({x})", TvmKind.OPAQUE: "argsort({x})",
}
"""An operator of each kind."""
FUSED: dict[TvmKind, set[TvmKind]] = {
    TvmKind.ELEMWISE: {TvmKind.ELEMWISE, TvmKind.BROADCAST, TvmKind.INJECTIVE, TvmKind.COMM_REDUCE},
    TvmKind.BROADCAST: {TvmKind.ELEMWISE, TvmKind.BROADCAST, TvmKind.INJECTIVE, TvmKind.COMM_REDUCE},
    TvmKind.INJECTIVE: {TvmKind.ELEMWISE, TvmKind.BROADCAST, TvmKind.INJECTIVE},
    TvmKind.COMM_REDUCE: set(), TvmKind.OUT_ELEMWISE_FUSABLE: {TvmKind.ELEMWISE}, TvmKind.OPAQUE: set(),
}
"""What each kind is fused into (src/relay/transforms/fuse_ops.cc): a softmax only into what keeps its shape, which ``expand_dims`` does not."""


@cache
def one_behind_the_other(first: TvmKind, second: TvmKind) -> Module:
    """Two operators of these kinds, the second of which reads the first."""
    producer, consumer = (REPRESENTATIVES[kind].format(x=x) for kind, x in ((first, "%x"), (second, "%0")))
    return irscope.load(f"def @main(%x: Tensor[(8, 8), float32]) {{\n  %0 = {producer};\n  {consumer}\n}}\n", format="relay").module()


def fused() -> dict[TvmKind, set[TvmKind]]:
    found: dict[TvmKind, set[TvmKind]] = {}
    for first in REPRESENTATIVES:
        found[first] = set()
        for second in REPRESENTATIVES:
            (plan,) = TVM.plan_module(one_behind_the_other(first, second))
            if len(plan.groups) == 1:
                found[first].add(second)
    return found


def test_each_kind_is_fused_into_what_tvm_fuses_it_into() -> None:
    assert fused() == FUSED


@pytest.mark.parametrize("kind", REPRESENTATIVES, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("other", REPRESENTATIVES, ids=lambda kind: kind.name.lower())
def test_every_kind_matters(kind: TvmKind, other: TvmKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator taken for one of another kind is noticed; but an elementwise one is a broadcast that keeps the shape."""
    name = REPRESENTATIVES[kind].partition("(")[0]
    assert tvm_kind(get(name, "relay")) is kind
    monkeypatch.setattr(tvm_walk, "tvm_kind", lambda op: other if op.name == name else tvm_kind(op))
    same = kind is other or (kind, other) == (TvmKind.ELEMWISE, TvmKind.BROADCAST)
    assert (fused() == FUSED) == same


def test_a_group_holds_so_many_operators() -> None:
    def groups(count: int) -> int:
        lines = [f"  %{i} = exp({f'%{i - 1}' if i else '%x'});" for i in range(count)]
        text = "\n".join(["def @main(%x: Tensor[(4), float32]) {", *lines, f"  %{count - 1}", "}", ""])
        (plan,) = TVM.plan_module(irscope.load(text, format="relay").module())
        return len(plan.groups)

    assert (groups(256), groups(257)) == (1, 2) and MAX_DEPTH == 256
