"""Updates in place, and other steps that XLA decides on instructions by themselves: conflicts, floats, layouts, what Triton supports."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.gpu_floats import widen_floats
from irscope.fusion.xla.gpu_kinds import KernelEmitter
from irscope.fusion.xla.gpu_launch import launch
from irscope.fusion.xla.gpu_outputs import is_nested_variadic
from irscope.fusion.xla.grouping import group_reductions
from irscope.fusion.xla.inplace import (
    CONSUMER_MOVES,
    SAME_BUFFER_TWICE,
    SEVERAL_MOVES,
    SEVERAL_UPDATES,
    SLICE_INDEX,
    SLICE_SHAPE,
    SLICE_SHARED,
    conflict,
)
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.reuse import fusion_reuses
from irscope.fusion.xla.tile_places import Cut, Place, Places, Root, Whole, below
from irscope.fusion.xla.transposes import moves_minor
from irscope.fusion.xla.triton import lacking
from irscope.fusion.xla_gpu import marked
from irscope.ops import hlo
from irscope.ops.attributes import Reduce
from tests.fusion.xla_texts import ADD, BOTH, module


def named(instructions: str, header: str = "") -> dict[str, Instruction]:
    """The instructions of the entry by name."""
    return {i.name: i for i in Computation.of(module(instructions, header).main()).instructions}


# ---------------------------------------------------------------- updates in place


BUFFER = """b = f32[16] parameter(0)
    u = f32[4] parameter(1)
    k = s32[] constant(2)
    s = f32[4] slice(b), slice={[2:6]}
    n = f32[16] negate(b)
    """


def both(lines: str) -> str:
    """A kernel of a buffer ``p`` and another array ``q`` of four numbers; ``w`` is one of all 16."""
    return f"both {{ p = f32[16] parameter(0)\n q = f32[4] parameter(1)\n w = f32[16] parameter(2)\n c = s32[] constant(2)\n {lines} }}\n"


CALL = "ROOT f = f32[16] fusion(b, s, n), kind=kLoop, calls=both"
CONFLICTS: list[tuple[str, str, str, str, str]] = [
    ("the buffer is read as itself", BUFFER + "ROOT f = f32[16] dynamic-update-slice(n, n, k)", "", "n f", SAME_BUFFER_TWICE),
    ("the buffer is read by another kernel", BUFFER + "ROOT f = f32[16] dynamic-update-slice(n, u, k)", "", "n f", ""),
    ("the piece is written where it was read", BUFFER + CALL, both("ROOT d = f32[16] dynamic-update-slice(p, q, c)"), "s f", ""),
    ("the piece is also read in another order", BUFFER + CALL,
     both("r = f32[4] reverse(q), dimensions={0}\n a = f32[4] add(q, r)\n ROOT d = f32[16] dynamic-update-slice(p, a, c)"), "s f", SLICE_SHARED),
    ("the piece is also read as it is", BUFFER + CALL,
     both("r = f32[4] negate(q)\n a = f32[4] add(q, r)\n ROOT d = f32[16] dynamic-update-slice(p, a, c)"), "s f", ""),
    ("two updates", BUFFER + CALL.replace("= f32[16]", "= (f32[16], f32[16])"),
     both("d = f32[16] dynamic-update-slice(p, q, c)\n e = f32[16] dynamic-update-slice(w, q, c)\n ROOT t = (f32[16], f32[16]) tuple(d, e)"),
     "s f", SEVERAL_UPDATES),
    ("elements that the update moves are computed from the buffer", BUFFER + CALL,
     both("m = f32[4] slice(w), slice={[0:4]}\n a = f32[4] add(q, m)\n ROOT d = f32[16] dynamic-update-slice(p, a, c)"), "n f", CONSUMER_MOVES),
    ("... through another step", BUFFER + CALL,
     both("e = f32[16] abs(w)\n m = f32[4] slice(e), slice={[0:4]}\n ROOT d = f32[16] dynamic-update-slice(p, m, c)"), "n f", CONSUMER_MOVES),
    ("what is written is computed from the buffer where it is", BUFFER + CALL,
     both("e = f32[16] abs(w)\n ROOT d = f32[16] dynamic-update-slice(p, e, c)"), "n f", ""),
    ("the piece is written without a step between", BUFFER + "ROOT f = f32[16] dynamic-update-slice(b, s, k)", "", "s f", ""),
    ("another piece is written", BUFFER.replace("[2:6]", "[3:7]") + "ROOT f = f32[16] dynamic-update-slice(b, s, k)", "", "s f", SLICE_INDEX),
    ("less is written than was read", BUFFER + CALL,
     both("m = f32[2] slice(q), slice={[0:2]}\n ROOT d = f32[16] dynamic-update-slice(p, m, c)"), "s f", SLICE_SHAPE),
    ("a piece is written to another buffer", BUFFER.replace("[2:6]", "[3:7]") + "v = f32[16] parameter(2)\n "
     "ROOT f = f32[16] dynamic-update-slice(v, s, k)", "", "s f", ""),
    ("a kernel moves elements twice", BUFFER + "g = f32[4] fusion(b), kind=kLoop, calls=turned\n ROOT f = f32[16] dynamic-update-slice(b, g, k)",
     "turned { p = f32[16] parameter(0)\n r = f32[16] reverse(p), dimensions={0}\n ROOT s = f32[4] slice(r), slice={[2:6]} }", "g f",
     SEVERAL_MOVES),
    ("a kernel moves elements once", BUFFER + "g = f32[4] fusion(b), kind=kLoop, calls=cut\n ROOT f = f32[16] dynamic-update-slice(b, g, k)",
     "cut { p = f32[16] parameter(0)\n r = f32[16] negate(p)\n ROOT s = f32[4] slice(r), slice={[2:6]} }", "g f", ""),
    ("a scatter writes elsewhere", """b = f32[16] parameter(0)
        i = s32[4,1] parameter(1)
        s = f32[4] slice(b), slice={[2:6]}
        ROOT f = f32[16] scatter(b, i, s), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
            index_vector_dim=1, to_apply=add""", ADD, "s f", ""),
]


@pytest.mark.parametrize(("instructions", "header", "edge", "words"), [c[1:] for c in CONFLICTS], ids=[c[0] for c in CONFLICTS])
def test_fusing_must_not_read_what_was_overwritten(instructions: str, header: str, edge: str, words: str) -> None:
    found = named(instructions, header)
    producer, consumer = (found[name] for name in edge.split())
    assert conflict(producer, consumer) == words


@pytest.mark.parametrize(("lines", "blocks"), [
    ("ROOT d = f32[64,32] dynamic-update-slice(x, e, i, z)", 1),
    ("d = f32[64,32] dynamic-update-slice(x, e, i, z)\n ROOT r = f32[2048] bitcast(d)", 1),
    ("d = f32[64,32] dynamic-update-slice(x, e, i, z)\n n = f32[64,32] negate(d)\n r = f32[2048] bitcast(d)\n "
     "ROOT t = (f32[2048], f32[64,32]) tuple(r, n)", 16),
    # what is read of the buffer is what is written, and nothing else
    ("s = f32[4,32] dynamic-slice(x, i, z), dynamic_slice_sizes={4,32}\n a = f32[4,32] add(s, e)\n "
     "ROOT d = f32[64,32] dynamic-update-slice(x, a, i, z)", 1),
    ("s = f32[4,32] dynamic-slice(x, z, z), dynamic_slice_sizes={4,32}\n a = f32[4,32] add(s, e)\n "
     "ROOT d = f32[64,32] dynamic-update-slice(x, a, i, z)", 16),
])
def test_a_kernel_that_updates_in_place_loops_over_what_it_writes(lines: str, blocks: int) -> None:
    body = f"""update {{ x = f32[64,32] parameter(0)
        u = f32[4,32] parameter(1)
        i = s32[] parameter(2)
        z = s32[] constant(0)
        e = f32[4,32] exponential(u)
        {lines} }}"""
    result = "f32[2048]" if "ROOT r" in lines else "(f32[2048], f32[64,32])" if "tuple" in lines else "f32[64,32]"
    text = f"""x = f32[64,32] parameter(0)
        u = f32[4,32] parameter(1)
        i = s32[] parameter(2)
        ROOT f = {result} fusion(x, u, i), kind=kLoop, calls=update"""
    kernel = Computation.of(module(text, body).main()).root
    assert launch(DEVICES["h100"], None, kernel, KernelEmitter.LOOP) == (blocks, 128)


# ---------------------------------------------------------------- what is read again


@pytest.mark.parametrize(("lines", "again"), [
    ("ROOT r = f32[8] negate(p)", False),
    ("d = f32[8] reverse(p), dimensions={0}\n ROOT r = f32[8] add(d, p)", False),
    ("d = f32[4,8] broadcast(p), dimensions={1}\n ROOT r = f32[8] negate(p)", False),
    ("d = f32[8] negate(p)\n ROOT r = f32[4,8] broadcast(d), dimensions={1}", True)])
def test_a_kernel_reads_again_what_its_result_needs_again(lines: str, again: bool) -> None:
    """What nobody reads does not count."""
    result = "f32[4,8]" if "ROOT r = f32[4,8]" in lines else "f32[8]"
    found = named(f"x = f32[8] parameter(0)\n ROOT f = {result} fusion(x), kind=kLoop, calls=one", f"one {{ p = f32[8] parameter(0)\n {lines} }}")
    kernel = next(i for i in found.values() if i.body is not None)
    assert fusion_reuses(kernel, 0) is again


# ---------------------------------------------------------------- floats on a GPU


def converted(instructions: str, device: str = "h100") -> list[str]:
    """The steps of a program with floats as wide as the device computes them: each with its type, and what it reads."""
    computation = Computation.of(module(instructions).main())
    widen_floats(computation, DEVICES[device])
    return [f"{i.op} {i.dtype} of {' '.join(o.dtype for o in i.operands)}" for i in computation.post_order() if i.op is not hlo.parameter]


def test_conversions_there_and_back_are_left_out() -> None:
    there = "x = f32[8] parameter(0)\n a = bf16[8] convert(x)\n b = f32[8] convert(a)\n ROOT n = f32[8] negate(b)"
    assert converted(there) == ["negate f32 of f32"]


def test_of_two_conversions_one_is_left() -> None:
    steps = "x = bf16[8] parameter(0)\n a = f32[8] convert(x)\n b = f64[8] convert(a)\n ROOT n = f64[8] negate(b)"
    assert converted(steps) == ["convert f64 of bf16", "negate f64 of f64"]
    numbers = "x = s32[8] parameter(0)\n a = f32[8] convert(x)\n b = f64[8] convert(a)\n ROOT n = f64[8] negate(b)"
    assert converted(numbers) == ["convert f32 of s32", "convert f64 of f32", "negate f64 of f64"], "integers are rounded on the way"


def test_older_devices_compute_short_floats_wide() -> None:
    text = "x = bf16[8] parameter(0)\n a = bf16[8] add(x, x)\n ROOT m = bf16[8] multiply(a, x)"
    assert converted(text) == ["add bf16 of bf16 bf16", "multiply bf16 of bf16 bf16"]
    assert converted(text, "a100") == ["convert f32 of bf16", "add f32 of f32 f32", "multiply f32 of f32 f32", "convert bf16 of f32"]


# ---------------------------------------------------------------- reductions, layouts, and kernels


@pytest.mark.parametrize(("shape", "dimensions", "over"), [("4,5,6]", "1,2", (1,)), ("4,5,6]", "0,1", (0,)), ("4,5,6,7]", "0,2,3", (0, 2)),
                                                           ("4,5,6]", "0,2", (0, 2)), ("4,5,6]{0,1,2}", "1,2", (1, 2))])
def test_neighbours_that_are_reduced_are_one_dimension_in_memory(shape: str, dimensions: str, over: tuple[int, ...]) -> None:
    sizes = shape.partition("]")[0].split(",")
    kept = ",".join(n for d, n in enumerate(sizes) if str(d) not in dimensions.split(","))
    computation = Computation.of(module(f"x = f32[{shape} parameter(0)\n z = f32[] constant(0)\n "
                                        f"ROOT r = f32[{kept}] reduce(x, z), dimensions={{{dimensions}}}, to_apply=add", ADD).main())
    group_reductions(computation)
    root = computation.root
    assert Reduce.of(root).dimensions == over and root.dims == tuple(map(int, kept.split(",")))
    assert (root.operands[0].op is hlo.bitcast) == (len(over) < len(dimensions.split(",")))
    assert root.operands[0].elements == 120 * (7 if "7" in sizes else 1)


def test_only_what_moves_elements_puts_another_dimension_last() -> None:
    found = named("x = f32[4,8] parameter(0)\n n = f32[4,8] negate(x)\n t = f32[8,4] transpose(n), dimensions={1,0}\n"
                  "c = f32[8,4]{0,1} copy(t)\n ROOT k = f32[8,4]{0,1} copy(c)")
    assert [moves_minor(found[name]) for name in ("x", "n", "t", "c", "k")] == [False, False, True, True, False]


@pytest.mark.parametrize(("length", "nested"), [(32, False), (31, True)])
def test_a_short_reduction_of_several_results_is_computed_in_a_loop(length: int, nested: bool) -> None:
    found = named(f"x = f32[64,{length}] parameter(0)\n y = f32[64,{length}] parameter(1)\n z = f32[] constant(0)\n "
                  "ROOT r = (f32[64], f32[64]) reduce(x, y, z, z), dimensions={1}, to_apply=both", BOTH)
    assert is_nested_variadic(found["r"]) is nested
    assert not is_nested_variadic(found["x"])


def test_a_copy_of_an_instruction_begins_as_any_other() -> None:
    """Tiles and readers are those of a kernel, not of what is like it."""
    original = named("x = f32[8] parameter(0)\n ROOT n = f32[8] negate(x)")["n"]
    original.tile, original.warps, original.kind = (8,), 2, "triton"
    made = original.clone()
    assert (made.tile, made.warps, made.kind, made.operands, list(made.users)) == ((), 4, "triton", [], [])
    assert (made.op, made.node, made.dims, made.size) == (hlo.negate, original.node, (8,), 32)
    other = original.clone(hlo.parameter)
    assert (other.op, other.node, other.tile, other.kind) == (hlo.parameter, None, (), "")


@pytest.mark.parametrize(("config", "tile", "warps"), [
    ('"num_warps":"2","output_tiles":[{"sizes":["1","64"]}]', (1, 64), 2), ('"output_tiles":[{"sizes":["1","64"]}]', (1, 64), 4),
    ('"num_warps":"2"', (), 2), (f'"num_warps":"{"9" * 19}","output_tiles":[{{"sizes":["1","64"]}}]', (1, 64), 4),
    (f'"num_warps":"2","output_tiles":[{{"sizes":["1","{"9" * 19}"]}}]', (), 2), (f'"num_warps":"{"9" * 18}"', (), 10 ** 18 - 1)])
def test_tiles_and_warps_are_read_as_far_as_they_are_given(config: str, tile: tuple[int, ...], warps: int) -> None:
    text = "x = f32[4,64] parameter(0)\n ROOT f = f32[4,64] fusion(x), kind=kCustom, calls=one, backend_config={" \
        f'"fusion_backend_config":{{"kind":"__triton","block_level_fusion_config":{{{config}}}}}}}'
    made = module(text, "one { p = f32[4,64] parameter(0)\n ROOT n = f32[4,64] negate(p) }")
    kernel = marked(made, Computation.of(made.main())).root
    assert (kernel.kind, kernel.tile, kernel.warps) == ("triton", tile, warps)


# ---------------------------------------------------------------- what Triton supports


@pytest.mark.parametrize(("dtype", "told"), [
    ("f32", ""), ("u8", "Unsupported output data type."), ("f8e4m3fn", "F8E4M3FN and F8E5M2 are not supported for reductions."),
    ("f8e5m2", "F8E4M3FN and F8E5M2 are not supported for reductions.")])
def test_triton_reduces_rows_of_some_types(dtype: str, told: str) -> None:
    found = named(f"x = {dtype}[4,64] parameter(0)\n z = {dtype}[] constant(0)\n "
                  f"ROOT r = {dtype}[4] reduce(x, z), dimensions={{1}}, to_apply=add", ADD.replace("f32", dtype))
    assert lacking(found["r"]) == told


@pytest.mark.parametrize(("line", "told"), [
    ("x = f8e5m2[8] parameter(0)\n ROOT r = f8e5m2[8] abs(x)", ""),
    ("x = f8e5m2[8] parameter(0)\n ROOT r = f8e5m2[8] negate(x)", "Unsupported elementwise operation."),
    ("x = s4[8] parameter(0)\n ROOT r = s4[8] abs(x)", "Unsupported elementwise operation."),
    ("x = s8[8] parameter(0)\n ROOT r = s8[8] abs(x)", "")])
def test_triton_computes_little_in_few_bits(line: str, told: str) -> None:
    assert lacking(named(line)["r"]) == told


# ---------------------------------------------------------------- the places that tiles need


def place_of(line: str, shape: str) -> Place | None:
    """The place of the operand that the result of a line needs for its own tile."""
    root = named(f"x = f32[{shape}] parameter(0)\n ROOT {line}")["r"]
    return below(root, 0, tuple(Root(d) for d in range(len(root.dims))))


def test_a_transpose_needs_each_dimension_where_it_was() -> None:
    """Dimension 0 of the result is dimension 2 of the operand."""
    assert place_of("r = f32[6,4,5] transpose(x), dimensions={2,0,1}", "4,5,6") == (Root(1), Root(2), Root(0))


def test_a_reshape_there_and_back_needs_what_it_began_with() -> None:
    found = named("x = f32[4,8,6] parameter(0)\n a = f32[32,6] reshape(x)\n ROOT r = f32[4,8,6] reshape(a)")
    place = (Root(0), Root(1), Root(2))
    there = below(found["r"], 0, place)
    assert there is not None and len(there) == 2 and there[1] == Root(2)
    assert below(found["a"], 0, there) == place


def test_all_of_a_reshaped_array_is_all_of_its_operand() -> None:
    root = named("x = f32[4,8,6] parameter(0)\n ROOT r = f32[32,6] reshape(x)")["r"]
    assert below(root, 0, (Whole(32), Root(1))) == (Whole(4), Whole(8), Root(1))
    assert below(root, 0, (Cut(Root(0), 2, 1), Root(1))) != (Whole(4), Whole(8), Root(1))


def test_two_parts_of_an_array_are_two_places_for_every_tile() -> None:
    first, second = (Cut(Root(0), 0, 1),), (Cut(Root(0), 4, 1),)
    places = Places(np.array([(2,), (4,)]), (4,))
    assert [one.sizes[0].tolist() for one in places.different(frozenset((first,)))] == [[2, 4]]
    assert [one.counts.tolist() for one in places.different(frozenset((first, second)))] == [[True, True], [True, True]]
    # All of the rows and the tile's own rows are the same place where a tile has all of them.
    counts = sorted(one.counts.tolist() for one in places.different(frozenset(((Root(0),), (Whole(4),)))))
    assert counts == [[True, False], [True, True]]
