"""The scheduler of the policy inductor: tests that refuse a pair late, positions that are known, and what the generated functions take."""
from __future__ import annotations

import pytest

from irscope.api import load
from irscope.expand import expand
from irscope.fusion.inductor import ancestors, report
from irscope.fusion.inductor.ancestors import Ancestors
from irscope.fusion.inductor.forms import Form, at, is_indirect
from irscope.fusion.inductor.kernels import Kernel, fused
from irscope.fusion.inductor.policy import POLICY, PreparedProgram
from irscope.fusion.inductor.scheduler import SIMILAR, Score
from irscope.graph import Module
from tests.fusion.inductor_texts import graph, plan, tensor, verdict
from tests.fusion.test_inductor_calls import kinds
from tests.fusion.test_inductor_products import stored

SQUARE = tensor(64, 64)


def scheduled(module: Module) -> PreparedProgram:
    prepared = POLICY.prepared(expand(module).main())
    prepared.scheduler.run()
    return prepared


def hlo(instructions: str, header: str = "") -> Module:
    reading = load(f"HloModule m\n{header}\nENTRY e {{\n{instructions}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module()


def test_a_kernel_that_grew_comes_after_what_it_reads() -> None:
    """``a`` is joined with ``d``, which reads ``b``; then ``b`` is tried as the later of the two, and once more as the first."""
    made = scheduled(graph({"x": SQUARE, "y": SQUARE, "z": SQUARE}, """
        p = aten::add(%x, %y, 1)
        a = aten::mul(%p, %z)
        b = aten::exp(%x)
        c = aten::add(%b, %y, 1)
        d = aten::add(%c, %z, 1)""", "a, b, d")).scheduler
    assert made.joined == [("op0", "op2"), ("op1", "op0_op2")]
    assert made.said == ["cannot fuse op0_op2 with op1: node1 must go before node2"]


CIRCLE = """
    p = aten::exp(%x)
    m = aten::mm(%p, %w)
    h = aten::add(%z, %v, 1)
    r = aten::relu(%h)
    n = aten::mm(%r, %w)
    k = aten::mul(%z, %v)
    u = aten::mul(%k, %m)
    c = aten::mul({0}, %n)"""


def test_kernels_that_need_each_other_stay_apart() -> None:
    """``r`` and ``u`` share two arrays and are joined first; ``c`` needs the product of ``r``, and ``u`` that of ``p``."""
    inputs = {"x": SQUARE, "w": SQUARE, "z": SQUARE, "v": SQUARE}
    module = graph(inputs, CIRCLE.format("%p"), "u, c")
    assert set(scheduled(module).scheduler.said) == {"cannot fuse op0 with op5: will create cycle"}
    told = verdict(plan(module), "p", "c")
    assert (told.fused, told.rule, told.reason) == ("none", "cycle", "will create cycle")
    assert told.cause == "another kernel needs %p and is needed by %c: joining both would close a cycle"
    # Where they share the input alone, neither reads the other, and they are in each other's way all the same.
    assert set(scheduled(graph(inputs, CIRCLE.format("%x"), "u, c")).scheduler.said) == {"cannot fuse op0 with op5: will create cycle"}


def test_memory_that_would_be_kept_is_told() -> None:
    """Between the sum of one product and its use with the other, the memory of the first could be that of something else."""
    told = verdict(plan(graph({"q": SQUARE, "r": SQUARE, "w": SQUARE}, """
        m = aten::mm(%q, %w)
        n = aten::mm(%r, %w)
        s = aten::sum(%m, [0, 1], True, None)
        c = aten::mul(%s, %n)""", "c")), "s", "c")
    assert (told.fused, told.rule, told.reason) == ("none", "peak-memory", "Fusion will increase peak memory")
    assert told.cause == "memory that could be reused between the two would be kept: 4096 > 32 * 4 elements"


def test_a_kernel_that_is_full_is_told() -> None:
    lines = ["v0 = aten::exp(%x)", *(f"v{i} = aten::exp(%v{i - 1})" for i in range(1, 66))]
    made = plan(graph({"x": tensor(8, 64)}, "\n".join(lines), ", ".join(f"v{i}" for i in range(66))))
    [apart] = [v for v in made.verdicts if v.fused == "none"]
    assert (apart.rule, apart.reason) == ("group-size", "exceeds max fusion")
    assert apart.cause == "the kernel would have too many operations: 66 > 64"


def test_scores_are_equal_where_neither_is_better() -> None:
    assert Score(True, 64, -1) == Score(True, 64, -1)
    assert Score(True, 64, -1) != Score(True, 64, -2) and Score(True, 64, -1) != Score(True, 65, -1)
    assert Score(True, 64, -1) != (True, 64, -1)
    assert Score(False, SIMILAR, 0) != Score(True, 1, 0)


def reached(kernels: list[Kernel]) -> set[tuple[int, int]]:
    """Pairs of operations of which the second needs the first, directly or not."""
    place = {name: kernel.low for kernel in kernels for name in kernel.names}
    found: set[tuple[int, int]] = set()
    for kernel in kernels:
        for need in {place[d.buffer] for d in kernel.needs}:
            found |= {(need, kernel.low), *((one, kernel.low) for one, other in found if other == need)}
    return found


@pytest.mark.parametrize("window", [1, 2, 3, 5, 4096])
def test_a_dependence_is_found_however_far_away(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chains of products that meet at the end, and pairs of operations that were joined."""
    lines = [f"a{i} = aten::mm({f'%a{i - 2}' if i > 1 else '%x'}, %w)" for i in range(9)]
    module = graph({"x": SQUARE, "w": SQUARE}, "\n".join([*lines, "m = aten::mm(%a7, %a8)", "n = aten::mm(%x, %w)"]), "m, n")
    kernels = POLICY.prepared(expand(module).main()).scheduler.kernels
    monkeypatch.setattr(ancestors, "WINDOW", window)
    monkeypatch.setattr(ancestors, "MASK", (1 << window) - 1)
    known, found = Ancestors(kernels), reached(kernels)
    assert 10 < len(found) < 55
    for first in kernels:
        for second in kernels:
            assert known.before(first, second) == ((first.low, second.low) in found), (first.label, second.label)
    joined = [fused(one, other) for one, other in zip(kernels, kernels[3:])]
    for first in joined:
        for second in joined:
            if not first.names & second.names:
                wanted = any((a.low, b.low) in found for a in first.parts for b in second.parts)
                assert known.before(first, second) == wanted, (first.label, second.label)


ADD = "add { p = s32[] parameter(0)\n q = s32[] parameter(1)\n ROOT s = s32[] add(p, q) }\n"
THREE = "c = s32[] constant(3)\n b = s32[8] broadcast(c), dimensions={}\n z = s32[] constant(0)\n"


@pytest.mark.parametrize(("lines", "places"), [
    ("k = s32[8] copy(i)", [0, 1, 2, 3, 4, 5, 6, 7]),
    ("l = s64[8] convert(i)\n k = s32[8] convert(l)", [0, 1, 2, 3, 4, 5, 6, 7]),
    (f"{THREE} k = s32[8] multiply(i, b)", [0, 3, 6, 9, 12, 15, 18, 21]),
    (f"{THREE} k = s32[8] multiply(b, i)", [0, 3, 6, 9, 12, 15, 18, 21]),
    (f"{THREE} k = s32[8] multiply(b, b)", [9] * 8),
    (f"{THREE} k = s32[8] add(i, b)", [3, 4, 5, 6, 7, 8, 9, 10]),
    (f"{THREE} j = s32[8] multiply(i, b)\n k = s32[8] subtract(j, i)", [0, 2, 4, 6, 8, 10, 12, 14]),
    (f"{THREE} k = s32[8] reduce-window(b, z), window={{size=8 pad=7_0}}, to_apply=add", [3, 6, 9, 12, 15, 18, 21, 24]),
])
def test_elements_at_positions_that_the_loops_determine_are_read_there(lines: str, places: list[int]) -> None:
    form = read_at(lines)
    assert not is_indirect(form) and [at(form, (n,)) for n in range(8)] == places


@pytest.mark.parametrize("lines", ["k = s32[8] multiply(i, i)", f"{THREE} k = s32[8] divide(i, b)", f"{THREE} k = s32[8] maximum(i, b)"])
def test_other_positions_are_computed_first(lines: str) -> None:
    assert is_indirect(read_at(lines))


@pytest.mark.parametrize(("pad", "combiner", "is_known"), [("7_0", "add", True), ("0_7", "add", False), ("7_0", "most", False)])
def test_prefix_sums_of_a_number_are_its_multiples_and_other_scans_are_calls(pad: str, combiner: str, is_known: bool) -> None:
    """A sum from the end falls, and a running maximum of one number is the number."""
    most = ADD.replace("add", "most", 1).replace("add(", "maximum(")
    kernels = POLICY.prepared(expand(hlo(f"""
        x = f32[64] parameter(0)
        {THREE} k = s32[8] reduce-window(b, z), window={{size=8 pad={pad}}}, to_apply={combiner}
        r = s32[8,1] reshape(k)
        ROOT g = f32[8] gather(x, r), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1,
            slice_sizes={{1}}""", ADD + most)).main()).scheduler.kernels
    assert (len(kernels) == 1) == is_known


def read_at(lines: str) -> Form:
    """Where the last of ``lines``, computed from the positions ``i`` of eight numbers, takes elements."""
    [kernel] = POLICY.prepared(expand(hlo(f"""
        x = f32[64] parameter(0)
        i = s32[8] iota(), iota_dimension=0
        {lines}
        r = s32[8,1] reshape(k)
        ROOT g = f32[8] gather(x, r), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1,
            slice_sizes={{1}}""", ADD)).main()).scheduler.kernels
    assert kernel.single is not None and kernel.single.buffers == ("buf0", "%x")
    return kernel.single.forms[1]


def test_the_places_of_an_element_are_read_where_they_are() -> None:
    """Two arrays of positions need not stand side by side in memory, unless the program returns them so."""
    text = """x = f32[16,16] parameter(0)
        i = s32[8,1] parameter(1)
        j = s32[8,1] parameter(2)
        {0}c = s32[8,2] concatenate(i, j), dimensions={{1}}
        {1}g = f32[8] gather(x, c), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{0,1}}, index_vector_dim=1,
            slice_sizes={{1,1}}"""
    assert stored(hlo(text.format("", "ROOT "))) == [("pointwise", ("%i", "%j", "%x"))]
    whole = hlo(text.format("", "") + "\n ROOT t = (f32[8], s32[8,2]) tuple(g, c)")
    assert stored(whole) == [("pointwise", ("%i",)), ("pointwise", ("%j",)), ("nop", ("buf0", "buf1")), ("pointwise", ("%x", "buf2"))]
    positions = tensor(8, dtype="Long")
    taken = graph({"x": tensor(16, 16), "i": positions, "j": positions}, "g = aten::index(%x, [%i, %j])\nr = aten::neg(%g)", "r")
    assert stored(taken) == [("pointwise", ("%i", "%j", "%x"))]


def test_places_that_are_scattered_to_are_read_where_they_are() -> None:
    text = """x = s32[16,16] parameter(0)
        i = s32[8,1] parameter(1)
        j = s32[8,1] parameter(2)
        c = s32[8,2] concatenate(i, j), dimensions={1}
        u = s32[8] parameter(3)
        ROOT s = s32[16,16] scatter(x, %s, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1},
            index_vector_dim=1, to_apply=add"""
    assert stored(hlo(text % "c", ADD))[-1] == ("scatter", ("%i", "%j", "%u", "buf0"))


def test_what_a_window_reads_often_is_stored_if_it_reads_much() -> None:
    """The sum of two images would be read from memory four times each; an image times a number is computed anew."""
    image = tensor(1, 2, 8, 8)

    def kernels(line: str) -> int:
        return len(stored(graph({"x": image, "y": image}, f"a = {line}\n"
                                "p = aten::avg_pool2d(%a, [2, 2], [2, 2], [0, 0], False, True, None)", "p")))

    assert kernels("aten::add(%x, %y, 1)") == 2
    assert kernels("aten::mul(%x, 2.0)") == 1


def test_a_boolean_mask_is_made_numbers_before_attention() -> None:
    shape = tensor(2, 4, 16, 8)
    module = graph({"q": shape, "k": shape, "v": shape, "m": tensor(16, 16, dtype="Bool")},
                   "z = aten::scaled_dot_product_attention(%q, %k, %v, %m, 0.0, False, None, False)", "z")
    assert stored(module)[:2] == [("pointwise", ("%m",)), ("extern", ("%k", "%q", "%v", "buf0"))]


def test_a_view_by_strides_is_a_view_of_memory() -> None:
    lines = "e = aten::neg(%x)\ns = aten::{0}\nr = aten::abs(%s)"
    assert stored(graph({"x": tensor(8, 8)}, lines.format("as_strided(%e, [4, 4], [8, 1], 0)"), "r")) == [
        ("pointwise", ("%x",)), ("pointwise", ("buf0",))]
    assert stored(graph({"x": tensor(8, 8)}, lines.format("slice(%e, 0, 0, 4, 1)"), "r")) == [("pointwise", ("%x",))]


def test_an_element_of_a_tuple_is_what_was_put_there() -> None:
    text = "x = f32[16] parameter(0)\n y = f32[16] parameter(1)\n t = (f32[16], f32[16]) tuple(x, y)\n" \
        "g = f32[16] get-tuple-element(t), index=1\n ROOT n = f32[16] negate(g)"
    assert stored(hlo(text)) == [("pointwise", ("%y",))]


def test_an_empty_tensor_has_any_shape() -> None:
    assert stored(graph({"x": tensor(0, 8)}, "e = aten::reshape(%x, [8, 0])\nr = aten::abs(%e)", "r")) == [("pointwise", ("%x",))]


def test_a_generated_function_takes_500_arguments() -> None:
    """Each of these loops reads an array of its own size and writes one."""
    def calls(count: int) -> str:
        inputs = {f"x{i}": tensor(i + 1) for i in range(count)}
        return kinds(plan(graph(inputs, "\n".join(f"v{i} = aten::neg(%x{i})" for i in range(count)), ", ".join(f"v{i}" for i in range(count)))))

    assert report.MOST_ARGUMENTS == 500
    assert calls(251) == "251"
    assert calls(252) == "2511"


def test_the_operators_of_other_formats_stand_in() -> None:
    assert POLICY.remarks(hlo("x = f32[16] parameter(0)\n ROOT n = f32[16] negate(x)")) == ["hlo operators stand in for those of PyTorch"]
    assert POLICY.remarks(graph({"x": tensor(8)}, "e = aten::exp(%x)", "e")) == []


def test_a_pair_that_shares_several_arrays_is_tried_once_a_round() -> None:
    """One round that joins nothing, and the last one: two lines of the log, although both read ``x`` and ``y``."""
    calls = [f"m{i} = aten::mm(%p, %w)" for i in range(64)]
    lines = "\n".join(["a = aten::mul(%x, %y)", *calls, "b = aten::sub(%x, %y, 1)"])
    made = scheduled(graph({"x": SQUARE, "y": SQUARE, "p": SQUARE, "w": SQUARE}, lines, ", ".join(["a", *(f"m{i}" for i in range(64)), "b"])))
    assert made.scheduler.said == [
        "cannot fuse op0 with op65: Nodes are too far away. Fusing them may increase peak memory."] * 2


def test_a_padded_window_reads_what_it_covers() -> None:
    """Two places, two apart; the first begins one before the array."""
    [kernel] = POLICY.prepared(expand(hlo("""
        x = s32[16] parameter(0)
        z = s32[] constant(0)
        ROOT w = s32[6] reduce-window(x, z), window={size=2 stride=3 pad=1_1 rhs_dilate=2}, to_apply=add""", ADD)).main()).scheduler.kernels
    assert kernel.single is not None and kernel.single.buffers == ("buf0", "%x", "%x")
    first, second = kernel.single.forms[1:]
    # What would be outside of the array is not read.
    assert [at(first, (i,)) for i in range(1, 6)] == [2, 5, 8, 11, 14]
    assert [at(second, (i,)) for i in range(5)] == [1, 4, 7, 10, 13]
