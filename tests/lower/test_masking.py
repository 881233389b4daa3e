"""Which scores a mask excludes, read from the selection that applies it."""
from __future__ import annotations

import pytest

from irscope.api import load
from irscope.fusion import Group
from irscope.lower.build import KernelBuilder
from irscope.lower.templates.masking import Linear, Mask, mask_of
from tests.lower.running import entry

INF = float("inf")


def found(conditions: str, select: str = "select(keep, s, w)", shape: str = "2,6,6", other: str = "-inf", without: str = "") -> Mask | None:
    """The mask of ``select``: queries are counted along dimension 1, keys along dimension 2."""
    text = entry(f"""
      s = f32[{shape}] parameter(0)
      p = pred[{shape}] parameter(1)
      q = s32[{shape}] iota(), iota_dimension=1
      k = s32[{shape}] iota(), iota_dimension=2
      one = s32[] constant(1)
      two = s32[{shape}] broadcast(one), dimensions={{}}
      c = f32[] constant({other})
      w = f32[{shape}] broadcast(c), dimensions={{}}
      {conditions}
      ROOT r = f32[{shape}] {select}""".replace("\n\n", "\n"))
    computation = load(text).module().main()
    nodes = [node for node in computation.nodes if node.name not in without.split()]
    scores = computation.result()
    return mask_of(scores, Group("map", nodes, [scores], []))


def compared(direction: str, a: str = "q", b: str = "k", shape: str = "2,6,6") -> str:
    return f"keep = pred[{shape}] compare({a}, {b}), direction={direction}"


ABOVE, BELOW = Linear((0, 1, -1)), Linear((0, -1, 1))


@pytest.mark.parametrize(("direction", "kept", "dropped"), [
    ("GE", [ABOVE], [Linear((0, -1, 1), -1)]), ("LT", [Linear((0, -1, 1), -1)], [ABOVE]), ("GT", [Linear((0, 1, -1), -1)], [BELOW]),
    ("LE", [BELOW], [Linear((0, 1, -1), -1)]), ("EQ", [ABOVE, BELOW], []), ("NE", [], [ABOVE, BELOW]),
])
def test_comparisons_of_indices(direction: str, kept: list[Linear], dropped: list[Linear]) -> None:
    """Scores are kept where each of the needs is not negative; ``select`` may keep them on its other side too."""
    assert found(compared(direction)) == (Mask(-INF, tuple(kept)) if kept else None)
    assert found(compared(direction), "select(keep, w, s)") == (Mask(-INF, tuple(dropped)) if dropped else None)


@pytest.mark.parametrize(("conditions", "needs"), [
    (f"t = s32[2,6,6] add(q, two)\n{compared('GE', 't')}", [Linear((0, 1, -1), 1)]),
    (f"t = s32[2,6,6] subtract(k, two)\n{compared('GE', 'q', 't')}", [Linear((0, 1, -1), 1)]),
    (f"t = s32[2,6,6] subtract(two, k)\nu = s32[2,6,6] add(t, q)\n{compared('GE', 'u', 'two')}", [Linear((0, 1, -1), 0)]),
    (f"t = s64[2,6,6] convert(q)\nu = s64[2,6,6] convert(k)\n{compared('GE', 't', 'u')}", [ABOVE]),
    (f"t = s32[2,6,6] multiply(q, two)\n{compared('GE', 't')}", None),
    (f"t = f32[2,6,6] convert(q)\nu = f32[2,6,6] convert(k)\n{compared('GE', 't', 'u')}", None),
    (f"h = s32[6] iota(), iota_dimension=0\nt = s32[2,6,6] broadcast(h), dimensions={{1}}\n{compared('GE', 't')}", [ABOVE]),
    (f"h = s32[6] iota(), iota_dimension=0\nb = s32[6] reverse(h), dimensions={{0}}\nt = s32[2,6,6] broadcast(b), dimensions={{1}}\n{compared('GE', 't')}",
     [Linear((0, -1, -1), 5)]),
    ("a = pred[2,6,6] compare(q, k), direction=GE\nb = pred[2,6,6] compare(k, two), direction=GE\nkeep = pred[2,6,6] and(a, b)", [Linear((0, 0, 1), -1), ABOVE]),
    ("a = pred[2,6,6] compare(q, k), direction=GE\nb = pred[2,6,6] compare(k, two), direction=GE\nkeep = pred[2,6,6] or(a, b)", None),
    ("a = pred[2,6,6] compare(q, k), direction=LT\nb = pred[2,6,6] compare(k, two), direction=LT\nc2 = pred[2,6,6] or(a, b)\nkeep = pred[2,6,6] not(c2)",
     [Linear((0, 0, 1), -1), ABOVE]),
    ("a = pred[2,6,6] compare(q, k), direction=GE\nkeep = pred[2,6,6] and(a, p)", [ABOVE]),
    ("keep = pred[2,6,6] not(p)", None),
    ("big = s32[] constant(16777217)\nt = s32[2,6,6] broadcast(big), dimensions={}\n" + compared("GE", "q", "t"), None),
    ("big = s32[] constant(-16777216)\nt = s32[2,6,6] broadcast(big), dimensions={}\n" + compared("GE", "q", "t"), [Linear((0, 1, 0), 16777216)]),
    ("x = s32[2,6,6] iota(), iota_dimension=0\n" + compared("GE", "x"), [Linear((1, 0, -1))]),
])
def test_conditions(conditions: str, needs: list[Linear] | None) -> None:
    mask = found(conditions)
    assert (mask and set(mask.needs)) == (needs and set(needs))


def test_what_is_no_mask() -> None:
    assert found(compared("GE"), other="nan") is None
    assert found(compared("GE"), other="-1") == Mask(-1.0, (ABOVE,))
    assert found(compared("GE"), "add(s, w)") is None
    assert found(compared("GE"), "select(keep, s, s)") is None
    assert found(compared("GE"), without="keep") is None, "a condition outside of the group is not examined"
    assert found(compared("GE"), without="k") is None
    assert found("h = s32[6] iota(), iota_dimension=0\nt = s32[2,6,6] broadcast(h), dimensions={1}\n" + compared("GE", "t"), without="h") is None
    assert found("f = u32[2,6,6] iota(), iota_dimension=1\ng = u32[2,6,6] iota(), iota_dimension=2\n" + compared("GE", "f", "g")) is None


def test_dimensions_beyond_the_most_count_are_not_added_up() -> None:
    for n, known in ((1 << 24, True), ((1 << 24) + 1, False)):
        shape = f"1,1,{n}"
        assert (found(compared("GE", shape=shape), shape=shape) is not None) is known


@pytest.mark.parametrize(("count", "known"), [(63, True), (64, False)])
def test_only_small_masks_are_examined(count: int, known: bool) -> None:
    """The comparison of a sum: each of its terms is a node."""
    steps = "\n".join(f"t{i} = s32[2,6,6] add({f't{i - 1}' if i else 'q'}, two)" for i in range(count // 2))
    last = f"t{count // 2 - 1}"
    assert (found(f"{steps}\n{compared('GE', last)}") is not None) is known


def test_a_box_is_excluded_by_its_largest_value() -> None:
    k = KernelBuilder("k")
    box = [(0, 0), (3, 5), (7, 9)]
    assert str(ABOVE.largest(k, box)) == str(k.index(0) + 5 - 7)
    assert str(Linear((0, -2, 1), 4).largest(k, box)) == str(k.index(4) + 3 * -2 + 9)
    assert ABOVE.plus(Linear((1, 1, 0), 3), -2) == Linear((-2, -1, -1), -6) and ABOVE.plus(BELOW) == Linear((0, 0, 0))
