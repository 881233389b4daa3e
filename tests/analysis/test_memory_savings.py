"""Changes that lower the peak of memory: each is made in the text, and the peak of the new text is no higher than was said."""
from __future__ import annotations

import random
import re

import pytest

from irscope.analysis.memory_savings import MemorySaving, memory_savings
from tests.analysis.texts import survey

RECOMPUTE = """HloModule m, is_scheduled=true
ENTRY main {
  p = f32[64] parameter(0)
  q = f32[256] parameter(1)
  a = f32[64] exponential(p)
  b = f32[64] reverse(a), dimensions={0}
  w = f32[256] reverse(q), dimensions={0}
  v = f32[256] reverse(w), dimensions={0}
  s = f32[64] slice(v), slice={[0:64]}
  c = f32[64] add(a, b)
  ROOT d = f32[64] add(c, s)
}
"""
LATER = RECOMPUTE.replace("b = f32[64] reverse(a), dimensions={0}", "b = f32[64] reverse(p), dimensions={0}")
DONATE = """HloModule m, is_scheduled=true
ENTRY main {
  w = f32[256] parameter(0)
  g = f32[256] parameter(1)
  s = f32[256] subtract(w, g)
  t = f32[256] reverse(s), dimensions={0}
  ROOT r = (f32[256], f32[256]) tuple(s, t)
}
"""


RETURNED = """HloModule m, is_scheduled=true
ENTRY main {
  w = f32[256] parameter(0)
  g = f32[64] parameter(1)
  s = f32[256] concatenate(g, g, g, g), dimensions={0}
  ROOT r = (f32[256], f32[256]) tuple(w, s)
}
"""


def found(text: str) -> list[MemorySaving]:
    facts = survey(text)
    return memory_savings(facts, facts.module.main())


def peak(text: str) -> int:
    facts = survey(text)
    return facts.memory.graphs[facts.module.main()].peak


def names(savings: list[MemorySaving]) -> list[tuple[str, str, int]]:
    return [(s.kind, " ".join(n.name for n in s.nodes), s.peak) for s in savings]


def test_a_value_between_two_uses_is_computed_again() -> None:
    assert peak(RECOMPUTE) == 4 * (64 + 64 + 256 + 256)
    best, *_ = [s for s in found(RECOMPUTE) if s.kind == "recompute"]
    assert (best.nodes[0].name, best.user and best.user.name, best.peak, best.flops) == ("a", "c", 4 * (64 + 256 + 256), 64)


def test_a_value_that_is_used_after_the_peak_alone_is_computed_later() -> None:
    assert {("later", "a"), ("later", "b")} == {(kind, name) for kind, name, _ in names(found(LATER))}
    assert all(bytes == 4 * (64 + 256 + 256) and s.flops == 0 for s in found(LATER) for bytes in [s.peak])


def test_a_value_whose_operand_is_overwritten_is_not_moved() -> None:
    """b is made of w's memory no longer once w is dead: nothing is proposed for what needs it."""
    text = """HloModule m, is_scheduled=true
ENTRY main {
  q = f32[256] parameter(0)
  w = f32[64] slice(q), slice={[0:64]}
  b = f32[64] reverse(w), dimensions={0}
  x = f32[256] reverse(q), dimensions={0}
  y = f32[256] reverse(x), dimensions={0}
  s = f32[64] slice(y), slice={[0:64]}
  ROOT c = f32[64] add(b, s)
}
"""
    assert names(found(text)) == []


@pytest.mark.parametrize(("text", "expected"), [
    (DONATE, [("donate", "g w", 0)]),
    (DONATE.replace("subtract(w, g)", "reverse(w), dimensions={0}").replace("reverse(s), dimensions={0}", "reverse(g), dimensions={0}"), [("donate", "w", 1024)]),
    (DONATE.replace("is_scheduled=true", "is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }"), []),
    (DONATE.replace("is_scheduled=true", "is_scheduled=true, buffer_donor={ (0, {}) }"), []),
    (DONATE.replace("f32[256]", "f32[?]"), []),
], ids=["element by element", "still read", "aliased already", "donated already", "sizes unknown"])
def test_parameters_that_are_dead_take_results(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert names([s for s in found(text) if s.kind == "donate"]) == expected


@pytest.mark.parametrize("seed", range(60))
def test_the_peak_after_a_change_is_no_higher_than_said(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.choice((64, 64, 256)) for _ in range(14)]
    lines = [f"  p{n} = f32[{n}] parameter({i})" for i, n in enumerate((64, 256))]
    values = {64: ["p64"], 256: ["p256"]}
    for i, n in enumerate(sizes):
        x, y = (rng.choice(values[n]) for _ in range(2))
        lines.append(f"  v{i} = f32[{n}] " + (f"add({x}, {y})" if rng.random() < 0.5 else f"reverse({x}), dimensions={{0}}"))
        values[n].append(f"v{i}")
    small = "64" if len(values[64]) > 1 else "256"
    lines.append(f"  ROOT r = f32[{small}] add({values[int(small)][-1]}, {values[int(small)][1]})")
    text = "\n".join(["HloModule m", "ENTRY main {", *lines, "}"])
    before = peak(text)
    for saving in found(text):
        assert saving.peak < before
        if saving.kind != "donate":
            assert saving.user is not None
            changed = _changed(lines, saving.nodes[0].name, saving.user.name)
            assert peak("\n".join(["HloModule m", "ENTRY main {", *changed, "}"])) <= saving.peak


def _changed(lines: list[str], name: str, user: str) -> list[str]:
    """The lines with a value computed again right before a user, for it and all later ones; without the first where nothing reads it."""
    at = next(i for i, line in enumerate(lines) if f" {user} = " in line)
    own = next(i for i, line in enumerate(lines) if line.startswith(f"  {name} = "))
    again = lines[own].replace(f"{name} = ", f"{name}x = ", 1)
    after = [re.sub(rf"\b{name}\b(?=[,)])", f"{name}x", line) for line in lines[at:]]
    read = any(re.search(rf"\b{name}\b", line) for line in lines[own + 1:at])
    return [*lines[:own], *([lines[own]] if read else []), *lines[own + 1:at], again, *after]


@pytest.mark.parametrize("text", [RETURNED, RETURNED.replace("tuple(w, s)", "tuple(x, s)").replace("  ROOT", "  x = f32[256] bitcast(w)\n  ROOT")])
def test_a_parameter_that_is_a_result_is_not_donated(text: str) -> None:
    assert names(found(text)) == []
