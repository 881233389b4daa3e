"""Every kind of statement and step has a function in what reads them all; a new kind needs none where it is passed through."""
from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from typing import TypeVar

import pytest

from irscope.backends import llvm_main, llvm_statements, stopping
from irscope.graph.dtypes import F32
from irscope.lower import bounds, contents, interpret, printer, verify, work
from irscope.lower.build import KernelBuilder
from irscope.lower.program import Launch, Program, Step, Switch
from irscope.lower.scalar_loops import scalar_loops
from irscope.lower.tidy import tidy
from irscope.lower.tile import BufferAccess, Expr, For, Kernel, Load, Stmt, Store
from irscope.lower.traversal import Visitor, assigned, walk

T = TypeVar("T")


def subclasses(base: type[T]) -> list[type[T]]:
    """Those of irscope. A dataclass with slots is made twice, and the first class is there until Python collects it."""
    return [kind for kind in base.__subclasses__() if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
            and kind.__module__.startswith("irscope.")]


STATEMENTS = [kind for kind in (*subclasses(Stmt), *subclasses(BufferAccess)) if kind is not BufferAccess]
READERS = subclasses(Visitor)


def test_what_reads_tile_ir_is_known() -> None:
    rooms = {kind.__module__.rpartition(".")[2] for kind in READERS}
    assert rooms == {m.__name__.rpartition(".")[2]
                     for m in (bounds, contents, interpret, llvm_main, llvm_statements, printer, verify, work)}


@pytest.mark.parametrize("reader", READERS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_kind_has_a_function(reader: type[Visitor]) -> None:
    of_steps = any(issubclass(kind, Step) for kind in reader.functions)
    for kind in subclasses(Step) if of_steps else STATEMENTS:
        assert callable(reader.functions[kind])


@pytest.mark.parametrize("kind", STATEMENTS)
def test_the_declaration_names_every_field(kind: type[Stmt]) -> None:
    """Whatever holds expressions or statements is a child, but for the variable that a loop or a load defines."""
    types = {f.name: str(f.type) for f in fields(kind)}  # type: ignore[arg-type]
    assert [n for n, t in types.items() if t.startswith("Expr") and n != "var"] == list(kind.operand_fields)
    assert [n for n, t in types.items() if t == "list[Stmt]"] == list(kind.block_fields)


@dataclass(slots=True, eq=False)
class Repeat(Stmt):
    """A kind that irscope does not have: ``body`` runs ``count`` times."""

    operand_fields = ("skip",)
    block_fields = ("body",)

    skip: Expr
    count: int
    body: list[Stmt] = field(default_factory=list)

    @property
    def trips(self) -> int:
        return self.count


def kernel_with_a_new_kind() -> Kernel:
    k = KernelBuilder("new")
    x, y = k.buffer("x", F32, (4,), "in"), k.buffer("y", F32, (4,), "out")
    with k.loop(0, 4) as i:
        r = k.reg(F32, 0.0)
        r.set(k.load(x, i))
        k.store(y, i, r.get())
    loop, = k.kernel.body
    k.kernel.body[:] = [Repeat(k.pred(False), 3, [loop])]
    tidy(k.kernel, k)
    return k.kernel


def test_a_new_kind_is_passed_through() -> None:
    kernel = kernel_with_a_new_kind()
    assert {Repeat, For, Load, Store} <= {type(s) for s in walk(kernel.body)}
    assert len(assigned(kernel.body)) == 1
    assert bounds.unproved(kernel) == []
    assert work.operations(kernel) == 3 * 4
    assert stopping.statements(kernel.body) > 3 * 4
    assert scalar_loops(Program("p", steps=[Launch(kernel, [])]))[0].steps == 12


def test_what_must_know_a_kind_refuses_a_new_one() -> None:
    kernel = kernel_with_a_new_kind()
    for reader in (printer.print_kernel, verify.verify_kernel):
        with pytest.raises(TypeError, match="no function for Repeat"):
            reader(kernel)


def test_steps_inside_of_steps_are_found() -> None:
    kernel = Kernel("k")
    first, second = Launch(kernel, []), Launch(kernel, [])
    program = Program("p", steps=[Switch(None, [[first], [second]])])  # type: ignore[arg-type]
    assert program.launches() == [first, second]
