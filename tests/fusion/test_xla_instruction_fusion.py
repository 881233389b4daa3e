"""XLA's GPU pass of before priority fusion: each rule with a case that it refuses and one beside it that it lets pass."""
from __future__ import annotations

import pytest

from irscope.fusion.xla import cpu, instruction_fusion, loops, pairs
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instruction_fusion import InstructionRules
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.refusal import Refusal
from tests.fusion.xla_texts import ADD, many_slices, module

H100 = DEVICES["h100"]
BODY = "one { p = f32[8,64] parameter(0)\n ROOT n = f32[8,64] negate(p) }\n"


def refused(instructions: str, edge: str, header: str = "", copies: bool = True) -> Refusal | None:
    """What is said against ``a b`` as the text stands, before anything is fused."""
    computation = Computation.of(module(instructions, header).main())
    by_name = {i.name: i for i in computation.instructions}
    producer, consumer = (by_name[name] for name in edge.split())
    return InstructionRules(computation, H100, copies).refusal(consumer, producer, consumer.operands.index(producer))


def fused(instructions: str, header: str = "", copies: bool = True) -> list[tuple[str, str]]:
    """What the pass does."""
    computation = Computation.of(module(instructions, header).main())
    return cpu.run(computation, rules=InstructionRules(computation, H100, copies)).fused


def unary(op: str, dtype: str = "f32", reader: str = "ROOT r = {dtype}[8,4] broadcast(p), dimensions={{0}}") -> str:
    """Something, and what reads it: by default each element again and again."""
    return f"x = {dtype}[8] parameter(0)\n p = {dtype}[8] {op}\n" + reader.format(dtype=dtype)


def reduction(rows: int, row: int, reader: str, result: str = "") -> str:
    """A sum of rows, and what reads it."""
    return f"""
        x = f32[{rows},{row}] parameter(0)
        y = f32[{rows}] parameter(1)
        z = f32[] constant(0)
        p = f32[{rows}] reduce(x, z), dimensions={{1}}, to_apply=add
        r = f32[{rows}] {reader}
        ROOT t = ({result or f'f32[{rows}]'}) tuple({'r' if not result else 'r, p'})"""


def window(size: int) -> str:
    """Windows of so many elements, gathered again and again."""
    return f"""
        x = f32[64] parameter(0)
        i = s32[512,1] parameter(1)
        z = f32[] constant(0)
        p = f32[{65 - size}] reduce-window(x, z), window={{size={size}}}, to_apply=add
        ROOT r = f32[512,1] gather(p, i), offset_dims={{1}}, collapsed_slice_dims={{}}, start_index_map={{0}}, index_vector_dim=1,
          slice_sizes={{1}}"""


def few(inputs: int, read: int) -> str:
    """Sums over a leading dimension, too small for a kernel made for them, of which a gather reads so many elements."""
    return f"""
        x = f32[{inputs},8] parameter(0)
        i = s32[{read},1] parameter(1)
        z = f32[] constant(0)
        p = f32[8] reduce(x, z), dimensions={{0}}, to_apply=add
        ROOT r = f32[{read},1] gather(p, i), offset_dims={{1}}, collapsed_slice_dims={{}}, start_index_map={{0}}, index_vector_dim=1,
          slice_sizes={{1}}"""


TURNED = """
        x = f32[64,64] parameter(0)
        z = f32[] constant(0)
        p = f32[64,64] {turn}
        ROOT r = f32[64] reduce(p, z), dimensions={{1}}, to_apply=add"""
INTO_KERNEL = """
        x = f32[8,64] parameter(0)
        p = f32[8,64] {op}(x)
        ROOT r = f32[8,64] fusion(p), kind={kind}, calls=one"""
TWO_READERS = """
        x = f32[8] parameter(0)
        p = f32[8] {op}
        r = f32[8] negate(p)
        s = f32[8] abs(p)
        ROOT t = (f32[8], f32[8]) tuple(r, s)"""
SCATTER = """
        x = f32[64] parameter(0)
        i = s32[4,1] parameter(1)
        u = f32[4] parameter(2)
        p = f32[64] negate(x)
        ROOT r = f32[64] scatter({first}, i, {update}), update_window_dims={{}}, inserted_window_dims={{0}},
          scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add"""
UPDATE = """
        x = f32[64] parameter(0)
        c = s32[] constant(0)
        p = f32[8] slice(x), slice={{[{start}:{stop}]}}
        ROOT r = f32[64] dynamic-update-slice(x, p, c)"""

CASES: list[tuple[str, str, str]] = [
    ("not-loop-fusible", "x = f32[8,8] parameter(0)\n p = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                         "ROOT r = f32[8,8] negate(p)", ""),
    ("not-loop-fusible", "x = (f32[8], f32[8]) parameter(0)\n p = f32[8] get-tuple-element(x), index=0\n ROOT r = f32[8] negate(p)", ""),
    ("fused", "p = f32[8] iota(), iota_dimension=0\n ROOT r = f32[8] negate(p)", ""),
    ("not-profitable", unary("tanh(x)"), ""),
    ("fused", unary("exponential(x)"), ""),
    ("fused", unary("exponential(x)", "f16"), ""),
    ("not-profitable", unary("exponential(x)", "f64"), ""),
    ("fused", unary("divide(x, x)"), ""),
    ("not-profitable", unary("divide(x, x)", "bf16"), ""),
    ("fused", unary("tanh(x)", reader="ROOT r = f32[8] negate(p)"), ""),
    ("uncoalesced", TURNED.format(turn="transpose(x), dimensions={1,0}"), ADD),
    ("fused", TURNED.format(turn="negate(x)"), ADD),
    ("fused", reduction(8, 64, "negate(p)"), ADD),
    ("reduce-epilogue", reduction(8, 64, "add(p, y)"), ADD),
    ("fused", reduction(8, 16384, "negate(p)"), ADD),
    ("reduce-epilogue", reduction(8, 16385, "negate(p)"), ADD),
    ("reduce-shared", reduction(8, 64, "negate(p)", "f32[8], f32[8]"), ADD),
    ("consumer-not-fusible", "x = f32[8,8] parameter(0)\n p = f32[8,8] negate(x)\n"
                             "ROOT r = f32[8,8] dot(p, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}", ""),
    ("consumer-not-fusible", "x = f32[8,8] parameter(0)\n p = f32[8,8] negate(x)\n ROOT r = f32[64] bitcast(p)", ""),
    ("constant", "x = f32[] parameter(0)\n p = f32[] constant(1)\n ROOT r = f32[] add(x, p)", ""),
    ("library-call", INTO_KERNEL.format(op="negate", kind="kCustom"), BODY),
    ("fused", INTO_KERNEL.format(op="negate", kind="kLoop"), BODY),
    ("heavy", window(11), ADD),
    ("fused", window(10), ADD),
    ("heavy", few(11, 9), ADD),
    ("fused", few(10, 9), ADD),
    ("fused", few(11, 8), ADD),
    ("fused", "x = f32[64,64] parameter(0)\n p = f32[64,64]{0,1} copy(x)\n ROOT r = f32[64,64]{0,1} negate(p)", ""),
    ("expensive-twice", TWO_READERS.format(op="log(x)"), ""),
    ("fused", TWO_READERS.format(op="negate(x)"), ""),
    ("scatter-buffer", SCATTER.format(first="p", update="u"), ADD),
    ("in-place", UPDATE.format(start=8, stop=16), ""),
    ("fused", UPDATE.format(start=0, stop=8), ""),
]


@pytest.mark.parametrize("rule, instructions, header", CASES, ids=[f"{n}-{c[0]}" for n, c in enumerate(CASES)])
def test_rules(rule: str, instructions: str, header: str) -> None:
    found = refused(instructions, "p r", header)
    assert (found.rule.name if found is not None else "fused") == rule


AGAIN = [
    ("abs(a)", False), ("broadcast(a), dimensions={0}", True), ("gather(a, i), offset_dims={1}, collapsed_slice_dims={}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1}", True), ("reduce-window(a, z), window={size=2}, to_apply=add", True),
    ("reduce-window(a, z), window={size=2 stride=2}, to_apply=add", False),
    ("reduce-window(a, z), window={size=2 stride=3}, to_apply=add", False)]
SHAPES = {"abs": "8", "broadcast": "8,8", "gather": "9,1", "reduce-window": "7"}


@pytest.mark.parametrize("last, again", AGAIN, ids=[case[0][:30] for case in AGAIN])
def test_what_a_kernel_repeats_is_found_behind_any_steps(last: str, again: bool) -> None:
    """Whether a kernel that goes on with the negative of a value would compute it, made of eleven, more than once."""
    shape = SHAPES[last.partition("(")[0]]
    shape = {"size=2 stride=2": "4", "size=2 stride=3": "3"}.get(last.partition("{")[2].partition("}")[0], shape)
    header = ADD + "two { q = f32[8] parameter(0)\n z = f32[] constant(0)\n i = s32[9,1] constant({{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, " \
        f"{{0}}}})\n a = f32[8] negate(q)\n ROOT r = f32[{shape}] {last} }}\n"
    text = f"""
        x = f32[11,8] parameter(0)
        z = f32[] constant(0)
        p = f32[8] reduce(x, z), dimensions={{0}}, to_apply=add
        ROOT r = f32[{shape}] fusion(p), kind=kLoop, calls=two"""
    computation = Computation.of(module(text, header).main())
    by_name = {i.name: i for i in computation.instructions}
    assert instruction_fusion.heavy(by_name["p"], by_name["r"]) == ("11 > 10 elements make one" if again else "")


def steps() -> list[tuple[str, bool]]:
    return [("negate(x)", True), ("copy(x)", True), ("reshape(x)", True), ("bitcast(x)", True), ("add(x, y)", False),
            ("transpose(x), dimensions={1,0}", False)]


@pytest.mark.parametrize("step, finishes", steps(), ids=[step for step, _ in steps()])
def test_how_a_reduction_may_be_finished(step: str, finishes: bool) -> None:
    text = f"x = f32[8,4] parameter(0)\n y = f32[8,4] parameter(1)\n ROOT r = f32[{'4,8' if 'transpose' in step else '8,4'}] {step}"
    assert pairs.finishes(Computation.of(module(text).main()).root) is finishes


def test_another_layout_is_no_finish_but_a_transpose_that_moves_nothing_is() -> None:
    for step, finishes in (("copy(x)", False), ("transpose(x), dimensions={0,1}", False)):
        text = f"x = f32[8,4] parameter(0)\n ROOT r = f32[8,4]{{0,1}} {step}"
        assert pairs.finishes(Computation.of(module(text).main()).root) is finishes
    turned = "x = f32[8,4] parameter(0)\n ROOT r = f32[4,8]{0,1} transpose(x), dimensions={1,0}"
    assert pairs.finishes(Computation.of(module(turned).main()).root)
    assert not pairs.finishes(Computation.of(module("ROOT r = f32[8] iota(), iota_dimension=0").main()).root)


KINDS = [
    ("x = f32[8,64] parameter(0)\n ROOT r = f32[8,64] fusion(x), kind=kLoop, calls=one", BODY, (True, True, True)),
    ("x = f32[8,64] parameter(0)\n ROOT r = f32[8,64] fusion(x), kind=kInput, calls=one", BODY, (True, True, True)),
    ("x = f32[8,64] parameter(0)\n ROOT r = f32[8,64] fusion(x), kind=kInput, calls=one", BODY.replace("negate(p)", "slice(p), slice={[0:8], "
     "[0:64]}"), (False, False, True)),
    ("x = f32[8,64] parameter(0)\n ROOT r = f32[8,64] slice(x), slice={[0:8], [0:64]}", "", (True, True, True)),
    ("x = f32[8,64] parameter(0)\n ROOT r = f32[64,64] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "",
     (False, False, False)),
    ("x = f32[8,64] parameter(0)\n ROOT r = f32[512] bitcast(x)", "", (True, True, False)),
    ("ROOT r = f32[8] iota(), iota_dimension=0", "", (False, True, False)),
    ("ROOT r = f32[] constant(1)", "", (False, True, False)),
    ("x = f32[8,4] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[8] reduce(x, z), dimensions={1}, to_apply=add", ADD, (False, True, True)),
    ("x = f32[64,64] parameter(0)\n ROOT r = f32[64,64]{0,1} copy(x)", "", (False, False, False)),
    ("x = f32[64,64] parameter(0)\n ROOT r = f32[64,64] copy(x)", "", (True, True, True)),
]


@pytest.mark.parametrize("text, header, wanted", KINDS, ids=[str(n) for n in range(len(KINDS))])
def test_what_a_loop_computes(text: str, header: str, wanted: tuple[bool, bool, bool]) -> None:
    root = Computation.of(module(text, header).main()).root
    assert (loops.in_any_loop(root), loops.for_reader(root), loops.with_producer(root)) == wanted


@pytest.mark.parametrize("op", ["divide(x, x)", "sqrt(x)", "rsqrt(x)", "exponential(x)", "tanh(x)", "log(x)", "power(x, x)"])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "bf16"])
def test_what_is_cheap_on_a_gpu(op: str, dtype: str) -> None:
    cheap = dtype in ("f16", "f32") and op.partition("(")[0] not in ("tanh", "log", "power")
    assert (refused(unary(op, dtype), "p r") is None) is cheap


def test_a_root_is_given_back_and_goes_nowhere() -> None:
    found = refused("x = f32[8] parameter(0)\n ROOT p = f32[8] negate(x)\n r = f32[8] abs(p)", "p r")
    assert found is not None and found.rule.words == "not fusing into the output of the root instruction"


def test_a_producer_that_is_a_kernel_is_left_to_the_merger() -> None:
    found = refused("x = f32[8,64] parameter(0)\n p = f32[8,64] fusion(x), kind=kLoop, calls=one\n ROOT r = f32[8,64] abs(p)", "p r", BODY)
    assert found is not None and found.rule.words == "the producer is a fusion"


@pytest.mark.parametrize("shape, value, rule", [("", "1", ""), ("1", "{1}", ""), ("2", "{1, 2}", "constant")])
def test_a_constant_of_one_element_goes_into_a_kernel(shape: str, value: str, rule: str) -> None:
    size = shape or "1"
    header = f"one {{ p = f32[{shape}] parameter(0)\n q = f32[{shape}] negate(p)\n ROOT n = f32[{size}] bitcast(q) }}\n"
    text = f"x = f32[] parameter(0)\n p = f32[{shape}] constant({value})\n ROOT r = f32[{size}] fusion(p), kind=kLoop, calls=one"
    found = refused(text, "p r", header)
    assert (found.rule.name if found is not None else "") == rule


def test_the_first_run_copies_nothing_but_what_gets_cheaper() -> None:
    text = TWO_READERS.format(op="negate(x)")
    found = refused(text, "p r", copies=False)
    assert found is not None and found.rule.words == "fusion pass cannot duplicate" and found.numbers == "negate with 2 readers"
    assert fused(text, copies=False) == [] and len(fused(text)) == 2
    widened = text.replace("x = f32[8]", "x = f16[8]").replace("negate(x)", "convert(x)", 1)
    assert refused(widened, "p r", copies=False) is None


@pytest.mark.parametrize("count, closed", [(15, False), (16, True)])
def test_code_is_written_fifteen_times_at_most(count: int, closed: bool) -> None:
    assert (("p", f"a{count - 1}") in fused(many_slices(count))) is not closed


def test_what_reads_much_goes_into_all_its_readers_or_into_none() -> None:
    """The second run asks before whether each way to a reader is open, as on the CPU."""
    text = """
        x = f32[8,8] parameter(0)
        y = f32[8,8] parameter(1)
        p = f32[8,8] add(x, y)
        r = f32[8,8] negate(p)
        d = f32[8,8] dot(p, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT t = (f32[8,8], f32[8,8]) tuple(r, d)"""
    assert fused(text) == []
    assert fused(text.replace("dot(p, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "abs(p)")) == [("p", "d"), ("p", "r")]


def test_a_kernel_is_made_for_a_reduction_that_it_ends_in() -> None:
    text = "x = f32[8,64] parameter(0)\n z = f32[] constant(0)\n p = f32[8,64] negate(x)\n" \
           "ROOT r = f32[8] reduce(p, z), dimensions={1}, to_apply=add"
    computation = Computation.of(module(text, ADD).main())
    cpu.run(computation, rules=InstructionRules(computation, H100, True))
    assert computation.root.kind == "kInput" and computation.root.body is not None
    assert {i.op.name for i in computation.root.body.instructions} == {"parameter", "negate", "constant", "reduce"}


@pytest.mark.parametrize("limit, rule", [(9, "heavy"), (11, "fused")])
def test_how_much_is_made_into_one_matters(limit: int, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruction_fusion, "MAX_INPUTS", limit)
    found = refused(window(10 if limit == 9 else 11), "p r", ADD)
    assert (found.rule.name if found is not None else "fused") == rule
