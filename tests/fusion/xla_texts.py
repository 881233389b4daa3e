"""Small HLO computations for the tests of the XLA policies, and what a policy says of one edge."""
from __future__ import annotations

from functools import cache

from irscope.api import load
from irscope.fusion import EdgeVerdict
from irscope.graph import Module
from irscope.lint.verdicts import verdicts_of

BOTH = """
both { a = f32[] parameter(0)
       b = f32[] parameter(1)
       c = f32[] parameter(2)
       d = f32[] parameter(3)
       s = f32[] add(a, c)
       t = f32[] add(b, d)
       ROOT r = (f32[], f32[]) tuple(s, t) }
"""
ADD = "add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\n"


@cache
def module(instructions: str, header: str = "") -> Module:
    """The module whose entry has these instructions."""
    reading = load(f"HloModule m\n{header}\nENTRY e {{\n{instructions}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module()


def verdicts(policy: str, instructions: str, header: str = "", device: str | None = None) -> dict[tuple[str, str], EdgeVerdict]:
    """All edges of the entry."""
    return {v.names: v for v in verdicts_of(module(instructions, header), policy, device) if v.graph.name == "e"}


def why(policy: str, instructions: str, edge: str, header: str = "", device: str | None = None) -> str:
    """The rule that keeps ``a b`` apart; "fused" when none does, "some" when it is fused for a part of the readers."""
    producer, consumer = edge.split()
    verdict = verdicts(policy, instructions, header, device)[producer, consumer]
    if verdict.fused == "none":
        assert verdict.cause, verdict
        return verdict.rule
    return "fused" if verdict.fused == "all" else "some"


def many_slices(count: int) -> str:
    """A value that is read at ``count`` different places."""
    lines = ["x = f32[400] parameter(0)", "p = f32[400] negate(x)"]
    lines += [f"cut{i} = f32[50] slice(p), slice={{[{i}:{50 + i}]}}" for i in range(count)]
    lines += [f"a{i} = f32[50] add({'cut0' if i == 1 else f'a{i - 1}'}, cut{i})" for i in range(1, count)]
    return "\n".join(lines[:-1] + ["ROOT " + lines[-1]])


def many_reductions(count: int, rows: int = 32, columns: int = 16) -> str:
    """``count`` reductions of different arrays, multiplied with each other."""
    lines = ["z = f32[] constant(0)"]
    for i in range(count):
        lines += [f"x{i} = f32[{rows},{columns}] parameter({i})",
                  f"r{i} = f32[{rows}] reduce(x{i}, z), dimensions={{1}}, to_apply=add"]
    lines += [f"m{i} = f32[{rows}] multiply({'r0' if i == 1 else f'm{i - 1}'}, r{i})" for i in range(1, count)]
    return "\n".join(lines[:-1] + ["ROOT " + lines[-1]])


def concatenation(pieces: int, size: int, axis: int, rows: int = 2) -> str:
    """Pieces of ``rows`` by ``size``, concatenated along an axis and negated."""
    lines = [f"x{i} = f32[{rows},{size}] parameter({i})" for i in range(pieces)]
    lines += [f"n{i} = f32[{rows},{size}] exponential(x{i})" for i in range(pieces)]
    shape = f"{rows},{size * pieces}" if axis else f"{rows * pieces},{size}"
    lines.append(f"c = f32[{shape}] concatenate({', '.join(f'n{i}' for i in range(pieces))}), dimensions={{{axis}}}")
    return "\n".join([*lines, f"ROOT r = f32[{shape}] negate(c)"])


def read_by_many(count: int) -> str:
    """A value with ``count`` readers that are all results."""
    lines = ["x = f32[256] parameter(0)", "p = f32[256] negate(x)"]
    for i in range(count):
        lines += [f"k{i} = f32[] constant({i})", f"b{i} = f32[256] broadcast(k{i}), dimensions={{}}", f"a{i} = f32[256] add(p, b{i})",
                  f"d{i} = f32[256] abs(a{i})"]
    names = ", ".join(f"d{i}" for i in range(count))
    return "\n".join([*lines, f"ROOT t = ({', '.join(['f32[256]'] * count)}) tuple({names})"])
