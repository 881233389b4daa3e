"""Kernels that XLA computed side by side in one: what it joined, what it left, and what two releases ask otherwise."""
from __future__ import annotations

import pytest

from irscope.fusion.xla import horizontal_loops
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.horizontal_loops import join_side_by_side, sliced_out
from irscope.fusion.xla.horizontal_reductions import join_reductions
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.older_gpu import join_all
from irscope.fusion.xla.releases import GPU_0_4_35, GPU_0_4_38, SideBySide
from irscope.ops import hlo
from tests.fusion.xla_texts import ADD, module

assert GPU_0_4_35.sides is not None and GPU_0_4_38.sides is not None
EARLIER: SideBySide = GPU_0_4_35.sides
LATER: SideBySide = GPU_0_4_38.sides
H100 = DEVICES["h100"]


def joined(instructions: str, release: SideBySide, header: str = "") -> Computation:
    computation = Computation.of(module(instructions, header).main())
    join_side_by_side(computation, release)
    return computation


def kernels(computation: Computation) -> list[list[str]]:
    """The results of the kernels that were made, by the names in the text."""
    return sorted([_name(o) for o in k.body.root.operands] for k in computation.post_order()
                  if k.body is not None and k.body.root.op is hlo.tuple)


def _name(output: Instruction) -> str:
    return sliced_out(output).name


def several(*kinds: tuple[str, str], shared: bool = False, dtype: str = "f32") -> str:
    """Instructions of one operand, each by its shape and opcode, and a tuple of all; ``shared``: they read one parameter."""
    lines = [f"x{i} = {dtype}[{shape}] parameter({i})" for i, (shape, _) in enumerate(kinds) if i == 0 or not shared]
    lines += [f"n{i} = {dtype}[{shape}] {op}(x{0 if shared else i})" for i, (shape, op) in enumerate(kinds)]
    types, names = ", ".join(f"{dtype}[{shape}]" for shape, _ in kinds), ", ".join(f"n{i}" for i in range(len(kinds)))
    return "\n".join([*lines, f"ROOT t = ({types}) tuple({names})"])


def loops(count: int, length: int = 8, bodies: int = 1) -> tuple[str, str]:
    """Kernels of one shape, each of a parameter, with bodies of two lengths where ``bodies`` is 2."""
    header = "".join(f"c{i} {{ p = f32[{length}] parameter(0)\n a = f32[{length}] negate(p)\n"
                     + (f"b = f32[{length}] abs(a)\n ROOT r = f32[{length}] negate(b) }}\n" if i % bodies else
                        f"ROOT r = f32[{length}] abs(a) }}\n") for i in range(count))
    lines = [f"x{i} = f32[{length}] parameter({i})\n n{i} = f32[{length}] fusion(x{i}), kind=kLoop, calls=c{i}" for i in range(count)]
    names = ", ".join(f"n{i}" for i in range(count))
    return "\n".join([*lines, f"ROOT t = ({', '.join([f'f32[{length}]'] * count)}) tuple({names})"]), header


@pytest.mark.parametrize("release", [EARLIER, LATER], ids=["0.4.35", "0.4.38"])
def test_loops_of_one_shape_become_one_loop(release: SideBySide) -> None:
    made = joined(several(("4,6", "negate"), ("4,6", "abs")), release)
    [fusion] = [i for i in made.instructions if i.body is not None]
    assert fusion.kind == "kLoop" and kernels(made) == [["n0", "n1"]]
    assert [o.op.name for o in made.root.operands] == ["bitcast", "bitcast"] and made.root.operands[0].operands[0].op is hlo.get_tuple_element


@pytest.mark.parametrize("release", [EARLIER, LATER], ids=["0.4.35", "0.4.38"])
def test_kernels_of_several_shapes_write_one_array(release: SideBySide) -> None:
    made = joined(several(("4,6", "negate"), ("7", "abs")), release)
    [fusion] = [i for i in made.instructions if i.body is not None]
    assert fusion.kind == "kInput" and fusion.body is not None
    root = fusion.body.root
    assert [o.attrs["slice"] for o in root.operands] == [((0, 7, 1),), ((7, 31, 1),)]
    assert [p.op.name for p in root.operands[0].operands[0].operands] == ["abs", "reshape"]
    assert kernels(made) == [["n1", "n0"]]
    assert [o.op.name for o in made.root.operands] == ["bitcast", "get-tuple-element"]


LEFT = [
    ("two types", "x = f32[4] parameter(0)\n y = f16[4] parameter(1)\n a = f32[4] negate(x)\n b = f16[4] negate(y)\n"
                  "ROOT t = (f32[4], f16[4]) tuple(a, b)"),
    ("another reader", "x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n a = f32[4] negate(x)\n b = f32[4] negate(y)\n"
                       "c = f32[4] add(a, b)\n d = f32[4] custom-call(a), custom_call_target=\"opaque\"\n"
                       "ROOT t = (f32[4], f32[4]) tuple(c, d)"),
    ("no loop", "x = f32[4,4] parameter(0)\n y = f32[4,4] parameter(1)\n a = f32[4,4] dot(x, y), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0}\n b = f32[4,4] negate(x)\n ROOT t = (f32[4,4], f32[4,4]) tuple(a, b)"),
    ("a parameter that slices would share", "x = f32[4] parameter(0)\n a = f32[4] negate(x)\n b = f32[8] fusion(x), kind=kLoop, calls=twice\n"
                                            "ROOT t = (f32[4], f32[8]) tuple(a, b)"),
]
TWICE = "twice { p = f32[4] parameter(0)\n ROOT c = f32[8] concatenate(p, p), dimensions={0} }\n"


@pytest.mark.parametrize("release", [EARLIER, LATER], ids=["0.4.35", "0.4.38"])
@pytest.mark.parametrize("text", [case[1] for case in LEFT], ids=[case[0] for case in LEFT])
def test_what_is_left(text: str, release: SideBySide) -> None:
    assert kernels(joined(text, release, TWICE)) == []


def test_who_shares_nothing_writes_slices() -> None:
    text = LEFT[3][1].replace("a = ", "y = f32[4] parameter(1)\n a = ").replace("negate(x)", "negate(y)")
    assert kernels(joined(text, LATER, TWICE)) == [["a", "c"]]


def test_a_loop_may_share_a_parameter_later() -> None:
    text = several(("4", "negate"), ("4", "abs"), shared=True)
    assert kernels(joined(text, EARLIER)) == [] and kernels(joined(text, LATER)) == [["n0", "n1"]]


def test_bitcasts_on_the_way_do_not_matter_later() -> None:
    text = "x = f32[4,2] parameter(0)\n y = f32[4,2] parameter(1)\n a = f32[4,2] negate(x)\n b = f32[4,2] abs(y)\n" \
           "c = f32[8] bitcast(a)\n d = f32[8] bitcast(b)\n ROOT t = (f32[8], f32[8]) tuple(c, d)"
    assert kernels(joined(text, EARLIER)) == [] and kernels(joined(text, LATER)) == [["a", "b"]]


def test_kernels_of_as_many_instructions_go_together_at_first() -> None:
    assert [len(names) for names in kernels(joined(loops(4, bodies=2)[0], EARLIER, loops(4, bodies=2)[1]))] == [2, 2]
    assert [len(names) for names in kernels(joined(loops(4, bodies=2)[0], LATER, loops(4, bodies=2)[1]))] == [4]


def test_only_what_lies_row_by_row_goes_together_at_first() -> None:
    text = several(("4,6", "negate"), ("4,6", "abs")).replace("f32[4,6]", "f32[4,6]{0,1}")
    assert kernels(joined(text, EARLIER)) == [] and kernels(joined(text, LATER)) == [["n0", "n1"]]


@pytest.mark.parametrize("release, limit", [(EARLIER, 8), (LATER, 32)], ids=["0.4.35", "0.4.38"])
def test_a_loop_of_kernels_has_a_limit_of_results(release: SideBySide, limit: int) -> None:
    assert [len(names) for names in kernels(joined(*_swap(loops(limit - 1), release)))] == [limit - 1]
    assert sorted(len(names) for names in kernels(joined(*_swap(loops(limit + 1), release)))) == [2, limit - 1]


def _swap(texts: tuple[str, str], release: SideBySide) -> tuple[str, SideBySide, str]:
    return texts[0], release, texts[1]


def counts(text: str, release: SideBySide = EARLIER, header: str = "") -> list[int]:
    return sorted(len(names) for names in kernels(joined(text, release, header)))


def test_a_loop_of_single_instructions_takes_more(monkeypatch: pytest.MonkeyPatch) -> None:
    text = several(*[("4", "negate")] * 65)
    assert counts(text) == [2, 63]
    monkeypatch.setattr(horizontal_loops, "MAX_RESULTS_PLAIN", 65)
    assert counts(text) == [64]
    monkeypatch.setattr(horizontal_loops, "MAX_RESULTS_PLAIN", 63)
    assert counts(text) == [3, 62]


def test_slices_of_one_array_are_less_than_32(monkeypatch: pytest.MonkeyPatch) -> None:
    text = several(*[(str(4 + i), "negate") for i in range(33)])
    assert counts(text) == [2, 31]
    monkeypatch.setattr(horizontal_loops, "MAX_RESULTS_SLICED", 33)
    assert counts(text) == [32]
    monkeypatch.setattr(horizontal_loops, "MAX_RESULTS_SLICED", 31)
    assert counts(text) == [3, 30]


@pytest.mark.parametrize("step", [-1, 0, 1])
def test_large_results_are_worth_a_launch_of_their_own(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(horizontal_loops, "MAX_ELEMENTS", 16 + step)
    monkeypatch.setattr(horizontal_loops, "MAX_ELEMENTS_SLICED", 15)
    assert bool(kernels(joined(several(("16", "negate"), ("16", "abs")), EARLIER))) is (step >= 0)
    monkeypatch.setattr(horizontal_loops, "MAX_ELEMENTS_SLICED", 16 + step)
    assert bool(kernels(joined(several(("16", "negate"), ("9", "abs")), EARLIER))) is (step >= 0)


def test_the_largest_results_are_as_xla_has_them() -> None:
    assert kernels(joined(several(("8192,8192", "negate"), ("8192,8192", "abs")), EARLIER))
    assert not kernels(joined(several(("8193,8192", "negate"), ("8193,8192", "abs")), EARLIER))
    assert kernels(joined(several(("128,2048", "negate"), ("4", "abs")), EARLIER))
    assert not kernels(joined(several(("129,2048", "negate"), ("4", "abs")), EARLIER))


def long(count: int, lengths: tuple[int, int]) -> tuple[str, str]:
    """Two kernels of so many instructions each, parameters counted."""
    header = "".join(f"c{i} {{ p0 = f32[{n}] parameter(0)\n"
                     + "".join(f"p{k} = f32[{n}] negate(p{k - 1})\n" for k in range(1, count - 1))
                     + f"ROOT r = f32[{n}] negate(p{count - 2}) }}\n" for i, n in enumerate(lengths))
    lines = [f"x{i} = f32[{n}] parameter({i})\n n{i} = f32[{n}] fusion(x{i}), kind=kLoop, calls=c{i}" for i, n in enumerate(lengths)]
    return "\n".join([*lines, f"ROOT t = (f32[{lengths[0]}], f32[{lengths[1]}]) tuple(n0, n1)"]), header


@pytest.mark.parametrize("lengths, limit, name", [((8, 8), 128, "MAX_INSTRUCTIONS"), ((8, 9), 30, "MAX_INSTRUCTIONS_SLICED")])
def test_long_kernels_are_worth_a_launch_of_their_own(lengths: tuple[int, int], limit: int, name: str,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(horizontal_loops, "MAX_ELEMENTS_SLICED", 7 if lengths[0] == lengths[1] else 9)
    assert kernels(joined(*_swap(long(limit, lengths), EARLIER)))
    assert not kernels(joined(*_swap(long(limit + 1, lengths), EARLIER)))
    monkeypatch.setattr(horizontal_loops, name, limit + 1)
    assert kernels(joined(*_swap(long(limit + 1, lengths), EARLIER)))
    monkeypatch.setattr(horizontal_loops, name, limit - 1)
    assert not kernels(joined(*_swap(long(limit, lengths), EARLIER)))


def test_the_pointers_of_a_kernel_fit_into_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    text = several(*[("4", "negate")] * 9)
    monkeypatch.setattr(horizontal_loops, "MAX_PARAMETERS", 9 * 2 * 8 + 1)
    assert counts(text) == [9]
    monkeypatch.setattr(horizontal_loops, "MAX_PARAMETERS", 9 * 2 * 8)
    assert counts(text) == [8]
    monkeypatch.setattr(horizontal_loops, "POINTER", 9)
    assert counts(text) == [2, 7]
    monkeypatch.setattr(horizontal_loops, "POINTER", 7)
    assert counts(text) == [9]


def test_what_the_joined_kernels_read_is_joined_next() -> None:
    header = "w { p = f32[] parameter(0)\n c = f32[4] broadcast(p), dimensions={}\n ROOT n = f32[4] negate(c) }\n"
    text = "x = f32[] parameter(0)\n y = f32[] parameter(1)\n a = f32[] sqrt(x)\n b = f32[] sqrt(y)\n" \
           "e = f32[4] fusion(a), kind=kLoop, calls=w\n f = f32[4] fusion(b), kind=kLoop, calls=v\n ROOT t = (f32[4], f32[4]) tuple(e, f)"
    assert kernels(joined(text, EARLIER, header + header.replace("w {", "v {"))) == [["a", "b"], ["n", "n"]]


def test_kernels_of_several_results_are_joined_result_by_result() -> None:
    header = "".join(f"{name} {{ p = f32[{n}] parameter(0)\n a{name} = f32[{n}] negate(p)\n b{name} = f32[{n}] abs(p)\n"
                     f"ROOT r = (f32[{n}], f32[{n}]) tuple(a{name}, b{name}) }}\n" for name, n in (("c", 4), ("d", 5)))
    text = """
        x = f32[4] parameter(0)
        y = f32[5] parameter(1)
        f = (f32[4], f32[4]) fusion(x), kind=kLoop, calls=c
        g = (f32[5], f32[5]) fusion(y), kind=kLoop, calls=d
        f0 = f32[4] get-tuple-element(f), index=0
        f1 = f32[4] get-tuple-element(f), index=1
        g0 = f32[5] get-tuple-element(g), index=0
        ROOT t = (f32[4], f32[4], f32[5]) tuple(f0, f1, g0)"""
    made = joined(text, EARLIER, header)
    assert kernels(made) == [["ac", "bc", "ad", "bd"]]
    parts = [o.attrs["index"] for o in made.root.operands]
    assert parts == [0, 1, 2]


def sums(*shapes: tuple[str, str, str]) -> str:
    """Sums of different arrays, each by its shape, dimensions and result."""
    lines = ["z = f32[] constant(0)"]
    for i, (shape, dimensions, result) in enumerate(shapes):
        lines.append(f"x{i} = f32[{shape}] parameter({i})\n"
                     f"r{i} = f32[{result}] reduce(x{i}, z), dimensions={{{dimensions}}}, to_apply=add")
    types, names = ", ".join(f"f32[{s[2]}]" for s in shapes), ", ".join(f"r{i}" for i in range(len(shapes)))
    return "\n".join([*lines, f"ROOT t = ({types}) tuple({names})"])


ROWS, OTHER, COLUMNS = ("64,128", "1", "64"), ("32,128", "1", "32"), ("64,128", "0", "128")


@pytest.mark.parametrize("shapes, wanted", [
    ((ROWS, ROWS), [["r0", "r1"]]), ((ROWS, OTHER), []), ((ROWS, COLUMNS), []), ((ROWS, OTHER, ROWS), [["r0", "r2"]]),
    ((ROWS,) * 9, [[f"r{i}" for i in range(8)]])])
def test_reductions_of_one_form_become_one_kernel(shapes: tuple[tuple[str, str, str], ...], wanted: list[list[str]]) -> None:
    computation = Computation.of(module(sums(*shapes), ADD).main())
    pairs = join_reductions(computation, H100)
    assert kernels(computation) == wanted and len(pairs) == sum(len(names) - 1 for names in wanted)


def test_an_early_release_joins_loops_in_the_entry_alone() -> None:
    text = several(("4", "negate"), ("4", "abs"))
    for release, entry, count in ((EARLIER, True, 1), (EARLIER, False, 0), (LATER, False, 1)):
        assert len(join_all(Computation.of(module(text).main()), H100, release, entry)) == count


def test_updates_in_place_must_not_share_a_part_of_a_tuple_later() -> None:
    text = """
        s = (s32[], f32[8], f32[8]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        a = f32[8] get-tuple-element(s), index=1
        b = f32[8] get-tuple-element(s), index=2
        u = f32[1] constant({1})
        f = f32[8] fusion(a, u, i), kind=kLoop, calls=c
        g = f32[8] fusion(b, u, i), kind=kLoop, calls=d
        ROOT t = (f32[8], f32[8]) tuple(f, g)"""
    update = "{name} {{ p = f32[8] parameter(0)\n q = f32[1] parameter(1)\n r = s32[] parameter(2)\n ROOT {name}0 = f32[8] {op} }}\n"
    header = "".join(update.format(name=n, op="dynamic-update-slice(p, q, r)") for n in "cd")
    assert kernels(joined(text, LATER, header)) == [] and kernels(joined(text, EARLIER, header)) == [["c0", "d0"]]
    plain = "".join(update.format(name=n, op="negate(p)") for n in "cd")
    assert kernels(joined(text, LATER, plain)) == [["c0", "d0"]]


def pieces(kind: str) -> tuple[str, str]:
    """Two kernels that end in concatenations, of parameters of their own."""
    header = "".join(f"{name} {{ p = f32[4] parameter(0)\n ROOT {name}0 = f32[8] concatenate(p, p), dimensions={{0}} }}\n" for name in "cd")
    text = f"""
        x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        f = f32[8] fusion(x), kind={kind}, calls=c
        g = f32[8] fusion(y), kind={kind}, calls=d
        ROOT t = (f32[8], f32[8]) tuple(f, g)"""
    return text, header


def test_kernels_made_for_a_concatenation_are_taken_later(monkeypatch: pytest.MonkeyPatch) -> None:
    for release, kind, wanted in ((EARLIER, "kInput", []), (LATER, "kInput", [["c0", "d0"]]), (EARLIER, "kLoop", [["c0", "d0"]])):
        assert kernels(joined(*_swap(pieces(kind), release))) == wanted
    plain = pieces("kInput")[1].replace("concatenate(p, p), dimensions={0}", "pad(p, q), padding=2_2").replace("ROOT", "q = f32[] constant(0)\n ROOT")
    assert kernels(joined(pieces("kInput")[0], LATER, plain)) == []
    monkeypatch.setattr(horizontal_loops, "MAX_ELEMENTS_SLICED", 7)
    assert kernels(joined(*_swap(pieces("kInput"), LATER))) == [] and kernels(joined(*_swap(pieces("kLoop"), LATER))) == [["c0", "d0"]]


def test_every_step_of_a_kernel_lies_row_by_row_at_first() -> None:
    text, header = loops(2)
    turned = "".join(f"c{i} {{ p = f32[8] parameter(0)\n a = f32[4,2]{{0,1}} bitcast(p)\n ROOT r = f32[8] bitcast(a) }}\n" for i in range(2))
    assert counts(text, EARLIER, header) == [2] and counts(text, EARLIER, turned) == [] and counts(text, LATER, turned) == [2]


def test_the_largest_slices_are_as_xla_has_them() -> None:
    assert counts(several(("262144", "negate"), ("4", "abs"))) == [2] and counts(several(("262145", "negate"), ("4", "abs"))) == []


def test_what_has_an_order_of_its_own_is_left() -> None:
    text = several(("4", "negate"), ("4", "abs"))
    assert counts(text) == [2] and counts(text.replace("abs(x1)", "abs(x1), control-predecessors={n0}")) == []


def test_a_loop_that_reduces_several_arrays_at_once_is_left() -> None:
    header = """
        two { a = f32[] parameter(0)
              b = f32[] parameter(1)
              c = f32[] parameter(2)
              d = f32[] parameter(3)
              s = f32[] add(a, c)
              m = f32[] add(b, d)
              ROOT t = (f32[], f32[]) tuple(s, m) }
        """ + "".join(f"c{i} {{ p = f32[4,2] parameter(0)\n z = f32[] constant(0)\n ROOT r{i} = (f32[2], f32[2]) "
                      "reduce(p, p, z, z), dimensions={0}, to_apply=two }\n" for i in range(2))
    text = """
        x = f32[4,2] parameter(0)
        y = f32[4,2] parameter(1)
        f = (f32[2], f32[2]) fusion(x), kind=kLoop, calls=c0
        g = (f32[2], f32[2]) fusion(y), kind=kLoop, calls=c1
        f0 = f32[2] get-tuple-element(f), index=0
        g0 = f32[2] get-tuple-element(g), index=0
        ROOT t = (f32[2], f32[2]) tuple(f0, g0)"""
    assert counts(text, EARLIER, header) == [] and counts(text, LATER, header) == []


def test_the_array_that_is_written_has_one_dimension() -> None:
    made = joined(several(("4,6", "negate"), ("7", "abs")), LATER)
    [fusion] = [i for i in made.instructions if i.body is not None]
    assert fusion.body is not None
    whole = fusion.body.root.operands[0].operands[0]
    assert (whole.op.name, whole.dims, whole.minor, whole.attrs["dimensions"]) == ("concatenate", (31,), (0,), (0,))
    assert [(p.op.name, p.dims, p.minor) for p in whole.operands] == [("abs", (7,), (0,)), ("reshape", (24,), (0,))]


def test_a_slice_of_the_text_is_what_it_is() -> None:
    text = "x = f32[4] parameter(0)\n c = f32[8] concatenate(x, x), dimensions={0}\n ROOT s = f32[4] slice(c), slice={[4:8]}"
    root = Computation.of(module(text).main()).root
    assert sliced_out(root) is root and sliced_out(root.operands[0]) is root.operands[0]
