"""Linting is linear: ten times the layers take about ten times the calls, and what is equal is planned once."""

from __future__ import annotations

import irscope
from irscope.lint import Context
from irscope.lint.run import lint_context
from irscope.lint.settings import Settings
from irscope.lint.stages import stages
from tests.effort import calls_in
from tests.lint.test_claims import layers


def linted(n: int) -> tuple[int, Context]:
    """The calls that linting of so many layers makes, and what they leave."""
    context = Context(irscope.load(layers(n), format="hlo").module())
    calls = calls_in(lint_context, context)
    assert len(lint_context(context)) >= n
    return calls, context


def test_work_grows_with_the_graph_and_no_faster() -> None:
    small, _ = linted(10)
    large, context = linted(100)
    assert large < 11 * small
    assert context.costs.claims is not None
    assert len(context.costs.claims._known) < 40


def test_work_grows_with_the_depth_of_calls_and_no_faster() -> None:
    """Each computation holds a value twice, and its number is found once for all computations that call it."""
    def depth(n: int) -> int:
        inner = [f"g{i} {{ p = f32[] parameter(0)\n a = f32[] call(p), to_apply=g{i - 1}\n b = f32[] call(p), to_apply=g{i - 1}\n"
                 " ROOT s = f32[] add(a, b) }" for i in range(1, n)]
        text = "HloModule m\ng0 { p = f32[] parameter(0)\n ROOT t = f32[] tanh(p) }\n" + "\n".join(inner) + \
            f"\nENTRY e {{ p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=g{n - 1} }}\n"
        context = Context(irscope.load(text, format="hlo").module())
        return calls_in(lint_context, context)

    assert depth(1000) < 11 * depth(100)


def shared_numbers(n: int) -> str:
    """Layers that all read the same numbers, each with a value that two kernels want."""
    lines = ["HloModule m", "", "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }", "", "ENTRY e {",
             "x0 = f32[64,64]{1,0} parameter(0)", "zero = f32[] constant(0)", "k = f32[] constant(0.5)"]
    for i in range(n):
        lines += [f"s{i} = f32[64]{{0}} reduce(x{i}, zero), dimensions={{1}}, to_apply=sum",
                  f"k{i} = f32[64]{{0}} broadcast(k), dimensions={{}}", f"m{i} = f32[64]{{0}} multiply(s{i}, k{i})",
                  f"b{i} = f32[64,64]{{1,0}} broadcast(m{i}), dimensions={{0}}", f"d{i} = f32[64,64]{{1,0}} subtract(x{i}, b{i})",
                  f"y{i} = f32[64,64]{{1,0}} dot(d{i}, d{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                  f"x{i + 1} = f32[64,64]{{1,0}} tanh(y{i})"]
    return "\n  ".join(lines) + f"\n  ROOT r = f32[64,64]{{1,0}} negate(x{n})\n}}\n"


def test_numbers_that_all_kernels_hold_make_them_no_neighbours() -> None:
    def table(n: int) -> int:
        context = Context(irscope.load(shared_numbers(n), format="hlo").module(), Settings(policy="xla-cpu"))
        return calls_in(stages, context)

    assert table(200) < 11 * table(20)
