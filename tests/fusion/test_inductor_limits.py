"""Every number that Inductor compares with: a program just within, one just beyond, and both notice when the number changes."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from irscope.expand import expand
from irscope.fusion.inductor import ancestors, products
from irscope.fusion.inductor.limits import CPU, Limits
from irscope.fusion.inductor.policy import POLICY, PreparedProgram
from irscope.fusion.inductor.scheduler import SIMILAR, Score
from irscope.graph import Module
from tests.fusion.inductor_texts import graph, tensor


def lowered(module: Module, limits: Limits = CPU) -> PreparedProgram:
    return POLICY.prepared(expand(module).main(), limits)


def buffers(module: Module, limits: Limits = CPU) -> str:
    """What is stored, a letter each: pointwise, reduction, extern, nop."""
    return "".join(kernel.buffers[0].kind[0] for kernel in lowered(module, limits).scheduler.kernels)


def kernels(module: Module, limits: Limits = CPU) -> str:
    """The kernels at the end, as in Inductor's log."""
    prepared = lowered(module, limits)
    prepared.scheduler.run()
    return " ".join(kernel.label for kernel in prepared.scheduler.kernels)


def chain(count: int, readers: int) -> Module:
    """A value of ``count`` operations and one read, read once or twice."""
    lines = ["v0 = aten::neg(%x)", *(f"v{i} = aten::neg(%v{i - 1})" for i in range(1, count))]
    ends = [f"r{i} = aten::{name}(%v{count - 1})" for i, name in enumerate(("abs", "sign")[:readers])]
    return graph({"x": tensor(8, 64)}, "\n".join(lines + ends), ", ".join(f"r{i}" for i in range(readers)))


def sums(count: int, readers: int) -> Module:
    """A sum of so many inputs, read once or twice."""
    lines = ["v1 = aten::add(%x0, %x1, 1)", *(f"v{i} = aten::add(%v{i - 1}, %x{i}, 1)" for i in range(2, count))]
    ends = [f"r{i} = aten::{name}(%v{count - 1})" for i, name in enumerate(("abs", "sign")[:readers])]
    return graph({f"x{i}": tensor(8, 64) for i in range(count)}, "\n".join(lines + ends), ", ".join(f"r{i}" for i in range(readers)))


def summed(length: int) -> Module:
    return graph({"x": tensor(40, length)}, "s = aten::sum(%x, [1], False, None)\nr = aten::neg(%s)", "r")


def normalised(length: int) -> Module:
    return graph({"x": tensor(4, length), "w": tensor(length), "b": tensor(length)},
                 f"r = aten::layer_norm(%x, [{length}], %w, %b, 1e-05, True)", "r")


def pooled(length: int) -> Module:
    pool = f"p = aten::avg_pool2d(%x, [1, {length}], [1, 1], [0, 0], False, True, None)"
    return graph({"x": tensor(1, 2, 1, 60)}, f"{pool}\nr = aten::neg(%p)", "r")


def results(count: int) -> Module:
    """A chain of which every link is a result."""
    lines = ["v0 = aten::exp(%x)", *(f"v{i} = aten::exp(%v{i - 1})" for i in range(1, count))]
    return graph({"x": tensor(8, 64)}, "\n".join(lines), ", ".join(f"v{i}" for i in range(count)))


def side_by_side(count: int) -> Module:
    """Readers of one input that do not read each other."""
    lines = [f"v{i} = aten::mul(%x, {i + 2})" for i in range(count)]
    return graph({"x": tensor(8, 64)}, "\n".join(lines), ", ".join(f"v{i}" for i in range(count)))


def many_readers(count: int) -> Module:
    """A value, readers of it whose loops fit nothing, and last one whose loops fit."""
    lines = ["y = aten::exp(%x)", *(f"v{i} = aten::add(%z{i}, %y, 1)" for i in range(count)), "r = aten::neg(%y)"]
    inputs = {"x": tensor(64), **{f"z{i}": tensor(i + 2, 64) for i in range(count)}}
    return graph(inputs, "\n".join(lines), ", ".join(["y", *(f"v{i}" for i in range(count)), "r"]))


def two_readers(elements: int) -> Module:
    return graph({"x": tensor(elements)}, "a = aten::neg(%x)\nb = aten::abs(%x)", "a, b")


def far_apart(between: int) -> Module:
    """Two readers of one input with library calls between them."""
    calls = [f"m{i} = aten::mm(%p{i}, %q)" for i in range(between)]
    inputs = {"x": tensor(8, 64), "q": tensor(64, 64), **{f"p{i}": tensor(32, 64) for i in range(between)}}
    names = ["a", *(f"m{i}" for i in range(between)), "b"]
    return graph(inputs, "\n".join(["a = aten::neg(%x)", *calls, "b = aten::abs(%x)"]), ", ".join(names))


def kept_longer(rows: int) -> Module:
    """Two kernels that share one row of four numbers; each reads a product that nobody else reads."""
    return graph({"p": tensor(rows, 64), "q": tensor(64, 4), "s": tensor(rows, 64), "v": tensor(4)}, """
        m = aten::mm(%p, %q)
        n = aten::mm(%s, %q)
        a = aten::sub(%m, %v, 1)
        b = aten::mul(%n, %v)""", "a, b")


THRESHOLDS: list[tuple[str, Callable[..., str], Callable[[int], Module], int, int]] = [
    ("operations", buffers, lambda n: chain(n, 2), 49, 50),
    ("most_operations", buffers, lambda n: chain(n, 1), 99, 100),
    ("reads", buffers, lambda n: sums(n, 2), 4, 5),
    ("accumulated", buffers, lambda n: sums(n, 1), 12, 13),
    ("unrolled", buffers, summed, 7, 8),
    ("two_steps", buffers, normalised, 1024, 1025),
    ("window", buffers, pooled, 25, 26),
    ("group", kernels, results, 64, 65),
    ("horizontal", kernels, side_by_side, 16, 17),
    ("attempts", kernels, many_readers, 63, 64),
    ("shared", kernels, two_readers, 2, 3),
    ("distance", kernels, far_apart, 63, 64),
    ("overhead", kernels, kept_longer, 128, 129),
]
"""A number, what shows its effect, programs by size, and the last size within and the first one beyond."""


@pytest.mark.parametrize(("name", "look", "program", "within", "beyond"), THRESHOLDS, ids=[t[0] for t in THRESHOLDS])
def test_every_threshold_matters(name: str, look: Callable[..., str], program: Callable[[int], Module], within: int, beyond: int) -> None:
    assert beyond == within + 1
    inside, outside = look(program(within)), look(program(beyond))
    step = 4 if name == "shared" else 1  # an element has four bytes
    # Moved by one, the number takes the other program to its other side: both notice.
    up, down = replace(CPU, **{name: getattr(CPU, name) + step}), replace(CPU, **{name: getattr(CPU, name) - step})
    assert look(program(beyond), up) != outside or look(program(beyond), down) != outside
    assert look(program(within), up) != inside or look(program(within), down) != inside


def test_the_scheduler_tries_ten_times_and_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = lowered(far_apart(20)).scheduler
    begun = len(scheduler.kernels)
    monkeypatch.setattr(scheduler, "_round", lambda: scheduler.kernels.pop())
    scheduler.run()
    assert begun - len(scheduler.kernels) == 10 + 1 == CPU.rounds + 1


def test_no_number_is_without_a_test() -> None:
    numbers = {field.name for field in fields(Limits) if field.type == "int"}
    assert numbers == {name for name, *_ in THRESHOLDS} | {"rounds"}


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "sigmoid", "tanh"])
def test_costly_values_that_are_read_twice_are_stored(name: str) -> None:
    def text(operator: str) -> Module:
        return graph({"x": tensor(8, 64)}, f"v = aten::{operator}(%x)\na = aten::neg(%v)\nb = aten::abs(%v)", "a, b")

    assert (buffers(text(name)), buffers(text("sqrt"))) == ("ppp", "pp")


def test_each_heavy_operation_is_one() -> None:
    for left_out in CPU.heavy:
        kept = replace(CPU, heavy=CPU.heavy - {left_out})
        names = {"exponential": "exp", "log": "log", "log-plus-one": "log1p", "logistic": "sigmoid", "tanh": "tanh"}
        text = graph({"x": tensor(8, 64)}, f"v = aten::{names[left_out.name]}(%x)\na = aten::neg(%v)\nb = aten::abs(%v)", "a, b")
        assert buffers(text, kept) == "pp"


def test_scores_far_apart_decide_alone() -> None:
    alike, other = Score(True, 1, 0), Score(False, SIMILAR, 0)
    assert SIMILAR == 16 and other < alike
    assert alike < Score(False, 17, 0)


@pytest.mark.parametrize(("length", "columns", "library"), [(16, 16, False), (17, 16, True), (16, 17, True)])
def test_a_row_times_a_small_matrix_is_a_sum(length: int, columns: int, library: bool) -> None:
    text = graph({"x": tensor(1, length), "w": tensor(columns, length), "b": tensor(columns)}, "r = aten::linear(%x, %w, %b)", "r")
    assert ("e" in buffers(text)) == library and products.SMALL_ROW == 16


@pytest.mark.parametrize(("rows", "library"), [(16, False), (17, True)])
def test_a_column_times_a_short_row_is_a_multiplication(rows: int, library: bool) -> None:
    text = graph({"x": tensor(rows, 1), "y": tensor(1, 16)}, "r = aten::mm(%x, %y)", "r")
    assert ("e" in buffers(text)) == library and products.FEW == 32


def test_ancestors_far_away_are_walked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    text = far_apart(20)
    near = kernels(text)
    monkeypatch.setattr(ancestors, "WINDOW", 2)
    monkeypatch.setattr(ancestors, "MASK", 3)
    assert kernels(text) == near
