"""Triton kernels are timed by tiles, and the best tile is searched: times and tiles that XLA logged for programs of our own."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.fusion.xla import gpu
from irscope.fusion.xla.creation import by_age
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.tile_places import Cut, Place, Places, Root, below
from irscope.fusion.xla.tiling import TileModel
from irscope.fusion.xla_gpu import marked
from irscope.ops import hlo
from tests.fusion.xla_texts import module


def config(*tile: object, warps: int = 1) -> str:
    sizes = ",".join(f'"{size}"' for size in tile)
    return 'kind=kCustom, backend_config={"fusion_backend_config":{"kind":"__triton","block_level_fusion_config":' \
        f'{{"num_warps":"{warps}","output_tiles":[{{"sizes":[{sizes}]}}]}}}}}}'


REDUCERS = """add { a = f32[] parameter(0)
                    b = f32[] parameter(1)
                    ROOT r = f32[] add(a, b) }
              max { a = f32[] parameter(0)
                    b = f32[] parameter(1)
                    ROOT r = f32[] maximum(a, b) }
           """
ODD = """lowered { p = f32[2,3,17,17] parameter(0)
                   i = f32[] constant(-inf)
                   m = f32[2,3,17] reduce(p, i), dimensions={3}, to_apply=max
                   b = f32[2,3,17,17] broadcast(m), dimensions={0,1,2}
                   ROOT s = f32[2,3,17,17] subtract(p, b) }
         divided { p = f32[2,3,17,17] parameter(0)
                   z = f32[] constant(0)
                   r = f32[2,3,17] reduce(p, z), dimensions={3}, to_apply=add
                   b = f32[2,3,17,17] broadcast(r), dimensions={0,1,2}
                   ROOT d = f32[2,3,17,17] divide(p, b) }"""
ODD_SOFTMAX = f"""x = f32[2,3,17,17] parameter(0)
        l = f32[2,3,17,17] fusion(x), calls=lowered, {config(1, 1, 2, 17)}
        e = f32[2,3,17,17] exponential(l)
        ROOT d = f32[2,3,17,17] fusion(e), calls=divided, {config(1, 1, 1, 16)}"""
NORM = """norm { p = bf16[4,256,512] parameter(0)
                 w = f32[4,256,512] convert(p)
                 q = f32[4,256,512] multiply(w, w)
                 z = f32[] constant(0)
                 r = f32[4,256] reduce(q, z), dimensions={2}, to_apply=add
                 k = f32[] constant(0.001953125)
                 v = f32[4,256] broadcast(k), dimensions={}
                 m = f32[4,256] multiply(r, v)
                 c = f32[] constant(1e-6)
                 o = f32[4,256] broadcast(c), dimensions={}
                 a = f32[4,256] add(m, o)
                 t = f32[4,256] rsqrt(a)
                 h = bf16[4,256] convert(t)
                 b = bf16[4,256,512] broadcast(h), dimensions={0,1}
                 ROOT n = bf16[4,256,512] multiply(p, b) }"""
NORMED = f"""x = bf16[4,256,512] parameter(0)
        y = bf16[4,256,512] parameter(1)
        n = bf16[4,256,512] fusion(x), calls=norm, {config(1, 4, 512, warps=4)}
        a = bf16[2,512,512] bitcast(n)
        b = bf16[1024,512] bitcast(n)
        m = bf16[4,256,512] multiply(n, y)
        ROOT t = (bf16[2,512,512], bf16[1024,512], bf16[4,256,512]) tuple(a, b, m)"""


def computation(text: str, header: str) -> tuple[Computation, dict[str, Instruction]]:
    made = module(text, REDUCERS + header)
    main = marked(made, Computation.of(made.main()))
    return main, {i.name: i for i in main.instructions}


@pytest.mark.parametrize("text, header, producer, apart, fused", [
    # rows of 17 take the registers of 32, and a kernel may compute fewer elements of a row than it reads for its sum
    (ODD_SOFTMAX, ODD, "l", 2.026, 1.014),
    (ODD_SOFTMAX, ODD, "e", 2.0275, 1.02625),
    # beside a bitcast a Triton kernel is timed as a loop would be, which adds a row up for each element
    (NORMED, NORM, "n", 5.57125, 132.70325)])
def test_times_are_those_that_xla_logged(text: str, header: str, producer: str, apart: float, fused: float) -> None:
    _, named = computation(text, header)
    assert [t / 1000 for t in CostModel(DEVICES["h100"]).gain(named[producer])] == [apart, fused]


def test_the_tile_of_a_kernel_is_searched_again_when_it_takes_something_in() -> None:
    main, named = computation(ODD_SOFTMAX, ODD)
    best = CostModel(DEVICES["h100"]).tiles.together(named["l"], named["e"])
    assert best is not None
    gpu.run(main, DEVICES["h100"])
    kernel = main.root
    assert kernel.kind == "triton" and len(kernel.operands) == 1
    assert (kernel.tile, kernel.warps) != ((1, 1, 1, 16), 1)


def test_readers_that_look_alike_are_timed_once() -> None:
    """Whatever they read, as XLA does: a product with itself beside one with an array costs as much."""
    _, named = computation(NORMED.replace("bitcast(n)", "negate(n)").replace("bf16[2,512,512]", "bf16[4,256,512]")
                           .replace("bf16[1024,512] negate(n)", "bf16[4,256,512] multiply(n, n)").replace("bf16[1024,512]", "bf16[4,256,512]"),
                           NORM)
    tiles = CostModel(DEVICES["h100"]).tiles
    first, second = tiles.together(named["n"], named["m"]), tiles.together(named["n"], named["b"])
    assert first is not None and first is second
    other = CostModel(DEVICES["h100"]).tiles.together(named["n"], named["b"])
    assert other is not None and other.time < first.time


def test_of_readers_that_look_alike_the_one_that_reads_more_is_timed() -> None:
    """XLA times one of them for all; in which order the text has them, does not matter."""
    square, product = "s = bf16[4,256,512] multiply(n, n)", "m = bf16[4,256,512] multiply(n, y)"
    gains = []
    for first, second in ((square, product), (product, square)):
        _, named = computation(f"""x = bf16[4,256,512] parameter(0)
        y = bf16[4,256,512] parameter(1)
        n = bf16[4,256,512] fusion(x), calls=norm, {config(1, 4, 512, warps=4)}
        {first}
        {second}
        ROOT t = (bf16[4,256,512], bf16[4,256,512]) tuple(s, m)""", NORM)
        cost = CostModel(DEVICES["h100"])
        gains.append(cost.gain(named["n"])[1])
        dearer = CostModel(DEVICES["h100"]).tiles.together(named["n"], named["m"])
        assert dearer is not None and gains[-1] == 2 * 1000 + 2 * dearer.time
    assert gains[0] == gains[1]


def test_a_kernel_that_has_changed_looks_otherwise() -> None:
    """What was found for a producer does not hold when it has taken in what it read: then it reads less."""
    main, named = computation(f"""x = f32[2,3,17,17] parameter(0)
        y = f32[17] parameter(1)
        b = f32[2,3,17,17] broadcast(y), dimensions={{3}}
        a = f32[2,3,17,17] add(x, b)
        ROOT l = f32[2,3,17,17] fusion(a), calls=lowered, {config(1, 1, 2, 17)}""", ODD)
    queue = gpu._Queue(main, DEVICES["h100"])
    before = queue.cost.gain(named["a"])[1]
    queue.number = {i: n for n, i in enumerate(main.post_order())}
    wider = queue._into(named["b"], named["a"])
    assert queue.cost.gain(wider)[1] < before


@pytest.mark.parametrize("shape, wanted, tile, place", [
    ("4,8,64", "32,64", (2, 64), (1, 2, 64)), ("4,8,64", "32,64", (16, 64), (2, 8, 64)), ("32,64", "4,8,64", (1, 2, 64), (2, 64)),
    ("32,64", "4,8,64", (2, 8, 64), (16, 64)), ("1,32,1,64", "32,64", (4, 8), (1, 4, 1, 8))])
def test_a_reshape_is_read_by_tiles_of_its_operand(shape: str, wanted: str, tile: tuple[int, ...], place: tuple[int, ...]) -> None:
    _, named = computation(f"x = f32[{shape}] parameter(0)\n ROOT r = f32[{wanted}] bitcast(x)", "")
    root = named["r"]
    below_it = below(root, 0, tuple(Root(d) for d in range(len(root.dims))))
    assert below_it is not None
    found, = Places(np.array([tile]), root.dims).different(frozenset((below_it,)))
    assert bool(found.valid[0]) and tuple(int(size[0]) for size in found.sizes) == place


def test_a_part_of_two_dimensions_that_become_one_has_no_simple_shape() -> None:
    _, named = computation("x = f32[32,64] parameter(0)\n ROOT r = f32[4,8,64] bitcast(x)", "")
    below_it = below(named["r"], 0, (Root(0), Root(1), Root(2)))
    assert below_it is not None
    found, = Places(np.array([(2, 4, 64)]), named["r"].dims).different(frozenset((below_it,)))
    assert not found.valid[0]


def test_of_two_that_gain_alike_the_younger_goes_first() -> None:
    """Names of one stem are numbered as they are made; operands are older than their users where the numbers allow it."""
    text = """x = f32[8] parameter(0)
        mul.4 = f32[8] multiply(x, x)
        add.2 = f32[8] add(mul.4, x)
        mul.3 = f32[8] multiply(add.2, x)
        ROOT add.1 = f32[8] add(mul.3, x)"""
    main, _ = computation(text, "")
    assert [i.name for i in by_age(main, main.post_order())] == ["x", "add.1", "add.2", "mul.3", "mul.4"]


def test_a_part_of_a_part_is_a_part_of_the_whole_however_often_it_is_cut() -> None:
    lines = ["x0 = f32[4000] parameter(0)", *(f"x{i + 1} = f32[{3999 - i}] slice(x{i}), slice={{[1:{4000 - i}]}}" for i in range(3000))]
    lines += ["y = f32[334] slice(x3000), slice={[0:1000:3]}", "ROOT z = f32[166] slice(y), slice={[2:334:2]}"]
    place: Place | None = (Root(0),)
    for instruction in reversed(Computation.of(module("\n".join(lines)).main()).post_order()):
        if instruction.op is hlo.slice and place is not None:
            place = below(instruction, 0, place)
    assert place == (Cut(Root(0), 3006, 6),)


def test_what_passes_made_is_younger_than_the_program() -> None:
    """A function that was inlined, a free number that a pass gave, and an instruction that has the name of its opcode come later."""
    text = """x = f32[8] parameter(0)
        neg.2 = f32[8] negate(x), metadata={op_name="jit(f)/jit(g)/neg"}
        multiply.7 = f32[8] multiply(neg.2, x), metadata={op_name="jit(f)/div"}
        mul.31 = f32[8] multiply(multiply.7, x), metadata={op_name="jit(f)/mul"}
        mul.1 = f32[8] multiply(mul.31, x), metadata={op_name="jit(f)/mul"}
        mul.30 = f32[8] multiply(x, x), metadata={op_name="jit(f)/mul"}
        ROOT add.20 = f32[8] add(mul.1, mul.30), metadata={op_name="jit(f)/add"}"""
    main, _ = computation(text, "")
    scopes = {"neg.2": "jit(f)/jit(g)/neg", "multiply.7": "jit(f)/div"}
    main.scopes = lambda node: scopes.get(node.name, f"jit(f)/{node.name.partition('.')[0]}")
    assert [i.name for i in by_age(main, main.post_order())] == ["x", "mul.30", "mul.31", "add.20", "neg.2", "multiply.7", "mul.1"]


def alone(shape: str, *tile: object) -> object:
    """What the model says of a kernel with its own tile."""
    return TileModel(DEVICES["h100"]).alone(kernel(shape, *tile))


def kernel(shape: str, *tile: object) -> Instruction:
    negated = f"negated {{ p = f32[{shape}] parameter(0)\n ROOT n = f32[{shape}] negate(p) }}"
    made = module(f"x = f32[{shape}] parameter(0)\nROOT k = f32[{shape}] fusion(x), calls=negated, {config(*map(str, tile))}", negated)
    return marked(made, Computation.of(made.main())).root


@pytest.mark.parametrize("rows", [0, 10 ** 20, "9" * 5000])
def test_a_tile_of_an_impossible_size_is_none(rows: object) -> None:
    assert alone("8,16", 8, 16) is not None
    assert alone("8,16", rows, 16) is None


@pytest.mark.parametrize("shape", ["9223372036854775807,16", "1000000000000,1000000000000"])
def test_what_does_not_fit_in_64_bits_has_no_tile(shape: str) -> None:
    assert alone(shape, 1, 16) is None


def test_sizes_rounded_up_may_not_fit_in_64_bits() -> None:
    """The padded size is 2**64, of which 64 bits hold 0: that would fit all registers."""
    assert alone(",".join(["3"] * 32), *[3] * 32) is None


def test_too_many_tiles_are_not_searched() -> None:
    found = kernel(",".join(["2"] * 30), *[1] * 30)
    assert TileModel(DEVICES["h100"]).together(found.operands[0], found) is None
