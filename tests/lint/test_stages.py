"""What fusion is worth: the columns of --why-not-fused, on all formats, and the tables that its times come from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import irscope
from irscope.lint import Context, RuleFinding, find_rule
from irscope.lint.machine import BUILT_IN, machine_named
from irscope.lint.settings import Settings
from irscope.lint.stages import Stages, stages
from irscope.lint.verdicts import verdicts_of
from irscope.source import UserError
from tests.conftest import Cli

PATTERNS = Path(__file__).parent / "patterns"
CHAIN = """HloModule m

ENTRY e {
  x = f32[1024,1024] parameter(0)
  a = f32[1024,1024] negate(x)
  b = f32[1024,1024] abs(a)
  ROOT c = f32[1024,1024] floor(b)
}
"""
LOOP = """HloModule m

cond {
  s = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT l = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[1024] get-tuple-element(s), index=1
  w = f32[1024] negate(v)
  ROOT r = (s32[], f32[1024]) tuple(j, w)
}

ENTRY e {
  x = f32[1024] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[1024]) tuple(z, x)
  ROOT w = (s32[], f32[1024]) while(t), condition=cond, body=body
}
"""


def told(text: str, format: str = "hlo", settings: Settings | None = None) -> Stages:
    found = stages(Context(irscope.load(text, format=format).module(), settings))
    assert found is not None
    return found


def test_a_chain_is_three_kernels_and_then_one() -> None:
    eager, captured, fused, lifted = told(CHAIN).stages
    size = 4 * 1024 * 1024
    assert [(s.name, s.dispatches, s.launches, s.traffic) for s in (eager, captured, fused, lifted)] == [
        ("eager", 3, 3, 6 * size), ("captured", 1, 3, 6 * size), ("fused", 1, 1, 2 * size), ("blockers lifted", 1, 1, 2 * size),
    ]  # fmt: skip
    assert eager.us > captured.us > fused.us == lifted.us


def test_loops_count_by_their_trips() -> None:
    eager, _, fused, _ = told(LOOP).stages
    assert eager.launches == 30  # a comparison, a step and a negation in each of ten trips
    assert fused.launches <= eager.launches + 1  # the counter's first value is stored before the loop


def test_on_a_gpu_the_host_runs_ahead() -> None:
    """Three calls of 5 us hide three kernels of 1 us and little work."""
    small = CHAIN.replace("1024,1024", "8,8")
    eager, captured, *_ = told(small, settings=Settings(machine="h100")).stages
    assert eager.us == pytest.approx(3 * machine_named("h100").dispatch_us)
    assert captured.us < eager.us


@pytest.mark.parametrize(("suffix", "format"), [("hlo", "hlo"), ("txt", "torchscript"), ("relay", "relay")])
def test_every_format_has_its_table(suffix: str, format: str) -> None:
    found = told((PATTERNS / f"linear_gelu.{suffix}").read_text(), format, Settings("irscope"))
    eager, captured, fused, _ = found.stages
    assert eager.launches == captured.launches > fused.launches
    assert eager.us > captured.us > fused.us
    assert any("products of f32" in source for source in found.sources)


def test_lifted_blockers_are_named() -> None:
    found = told(find_rule("FUS003").bad[0].text, settings=Settings("irscope"))
    assert found.lifted == {"FUS003": 1}
    assert found.stages[3].us < found.stages[2].us
    assert found.stages[3].launches < found.stages[2].launches


def test_open_shapes_have_no_table() -> None:
    text = "graph(%x : Tensor):\n  %y : Tensor = aten::exp(%x)\n  return (%y)\n"
    assert stages(Context(irscope.load(text, format="torchscript").module())) is None


def test_edges_are_told_between_operators_of_the_text() -> None:
    module = irscope.load((PATTERNS / "attention.txt").read_text(), format="torchscript").module()
    names = {node.name for node in module.main().nodes}
    verdicts = verdicts_of(module, "irscope")
    assert verdicts
    assert {name for verdict in verdicts for name in verdict.names} <= names
    assert all(verdict.producer is not verdict.consumer for verdict in verdicts)


def test_the_command_prints_the_table(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(CHAIN)
    result = cli("lint", str(tmp_path / "m.hlo"), "--why-not-fused", "--exit-zero")
    assert re.search(r"kernel launches +3 +3 +1 +1\n", result.stdout)
    assert re.search(r"memory traffic +24 MiB +24 MiB +8 MiB +8 MiB\n", result.stdout)
    assert "dispatch 0.83 us" in result.stdout
    result = cli("lint", str(tmp_path / "m.hlo"), "--why-not-fused", "--format", "json", "--machine", "a100")
    (file,) = json.loads(result.stdout)["files"]
    (table,) = file["stages"]
    assert [row["name"] for row in table["stages"]] == ["eager", "captured", "fused", "blockers lifted"]
    assert table["machine"].startswith("NVIDIA A100")


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_number_of_a_table_has_its_source(name: str) -> None:
    machine = machine_named(name)
    wanted = ["dispatch_us", "launch_us", "read_gbs", "write_gbs", "vector_gflops", *(f"caches.{i}" for i in range(len(machine.caches)))]
    wanted += [f"matrix_gflops.{dtype}" for dtype in machine.matrix_gflops]
    assert all(machine.sources.get(key) for key in wanted)


def test_a_table_of_ones_own_completes_a_built_in_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "h100"\nlaunch_us = 2.5\n\n[read_gbs]\nvalue = 2000.0\nsource = "data sheet"\n\n[matrix_gflops]\nbf16 = 5e5\n')
    machine = machine_named(str(path))
    assert (machine.launch_us, machine.read_gbs, machine.matrix_gflops["bf16"], machine.overlaps) == (2.5, 2000.0, 5e5, True)
    assert machine.write_gbs == machine_named("h100").write_gbs
    assert machine.sources["read_gbs"] == "data sheet"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lunch_us = 1.0", "no key 'lunch_us'"),
        ("launch_us = -1", "launch_us is -1"),
        ('base = "h200"', "no built-in table"),
        ("overlaps = 3", "overlaps is 3"),
        ("caches = 4", "no list of tables"),
        ("launch_us = [", "mine.toml:"),
    ],
)
def test_faults_of_a_table_are_told(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=says.replace("[", r"\[")):
        machine_named(str(path))


def test_a_machine_that_is_not_there() -> None:
    with pytest.raises(UserError, match="there is no machine 'h10'") as error:
        machine_named("h10")
    assert "h100" in error.value.help
    with pytest.raises(UserError, match="nowhere.toml"):
        machine_named("nowhere.toml")


def planned(text: str, policy: str) -> list[tuple[float, float, float, float]]:
    found = told(text, settings=Settings(policy=policy)).stages
    return [(s.dispatches, s.launches, s.traffic, s.us) for s in found]


FUSED = """HloModule m

body {
  p = f32[1000,64] parameter(0)
  i = s32[32] parameter(1)
  j = s32[32,1] bitcast(i)
  ROOT g = f32[32,64] gather(p, j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}
}

after {
  q = f32[32,64] parameter(0)
  b = f32[2048] bitcast(q)
  ROOT n = f32[2048] negate(b)
}

ENTRY e {
  x = f32[1000,64]{1,0} parameter(0)
  i = s32[32]{0} parameter(1)
  f = f32[32,64]{1,0} fusion(x, i), kind=kLoop, calls=body
  c = f32[32,64]{1,0} copy(f)
  ROOT k = f32[2048]{0} fusion(c), kind=kLoop, calls=after
}
"""


def test_kernels_of_the_text_are_taken_apart_but_bitcasts_move_nothing() -> None:
    eager, captured, fused, _ = planned(FUSED, "xla-cpu")
    rows = 32 * 64 * 4
    assert captured[1:3] == eager[1:3] == (3, (2 * rows + 32 * 4) + 2 * rows + 2 * rows)  # gather, copy, negate
    assert fused[1:3] == (2, captured[2] - 2 * rows)  # the copy goes into what reads it


def test_a_kernel_over_parts_of_two_fusions_reads_through_their_parameters() -> None:
    """Under xla-gpu all goes into one kernel, which reads 32 rows of the table, not all of it."""
    table = FUSED.replace("c = f32[32,64]{1,0} copy(f)\n  ROOT k = f32[2048]{0} fusion(c)", "ROOT k = f32[2048]{0} fusion(f)")
    eager, captured, fused, _ = planned(table, "xla-gpu")
    rows = 32 * 64 * 4
    assert fused[:3] == (1, 1, rows + 32 * 4 + rows)
    assert fused[2] < captured[2] and fused[3] < captured[3] < eager[3]


def test_a_kernel_of_the_text_that_another_fusion_joins_still_takes_rows_of_the_table() -> None:
    """The second fusion also slices an operand of its own, so that a part of its inputs is read through its parameters only."""
    text = FUSED.replace("""  q = f32[32,64] parameter(0)
  b = f32[2048] bitcast(q)
  ROOT n = f32[2048] negate(b)
""", """  q = f32[32,64] parameter(0)
  o = f32[4096] parameter(1)
  b = f32[2048] bitcast(q)
  s = f32[2048] slice(o), slice={[0:2048]}
  ROOT n = f32[2048] add(b, s)
""").replace("i = s32[32]{0} parameter(1)\n  f =", "i = s32[32]{0} parameter(1)\n  y = f32[4096]{0} parameter(2)\n  f =")
    text = text.replace("c = f32[32,64]{1,0} copy(f)\n  ROOT k = f32[2048]{0} fusion(c)", "ROOT k = f32[2048]{0} fusion(f, y)")
    _, _, fused, _ = planned(text, "xla-gpu")
    rows = 32 * 64 * 4
    assert fused[:3] == (1, 1, rows + 32 * 4 + 2048 * 4 + rows)


SCANNED = """HloModule m

step {
  c = f32[] parameter(0)
  x = f32[] parameter(1)
  n = f32[] negate(x)
  s = f32[] add(c, n)
  ROOT t = (f32[], f32[]) tuple(s, s)
}

ENTRY e {
  x = f32[128] parameter(0)
  i = f32[] parameter(1)
  ROOT r = (f32[128], f32[]) scan(x, i), dimensions={0}, num_carries=1, is_reverse=false, to_apply=step, is_associative=false
}
"""


@pytest.mark.parametrize("policy, launches", [("irscope", 128), ("inductor", 128), ("tvm", 128), ("xla-cpu", 1), ("xla-gpu", 1)])
def test_a_scan_runs_its_body_for_every_element(policy: str, launches: int) -> None:
    """XLA's policies leave it to XLA, which has written it as a loop long before it fuses: there it is one step."""
    found = planned(SCANNED, policy)
    assert [row[1] for row in found[:2]] == [256, 256]
    assert found[2][1] == launches and found[2][3] > 0


BRANCHES = """HloModule m

left {
  p = f32[4096] parameter(0)
  a = f32[4096] negate(p)
  b = f32[4096] tanh(p)
  ROOT t = (f32[4096], f32[4096]) tuple(a, b)
}

right {
  p = f32[4096] parameter(0)
  ROOT t = (f32[4096], f32[4096]) tuple(p, p)
}

ENTRY e {
  c = pred[] parameter(0)
  x = f32[4096] parameter(1)
  r = (f32[4096], f32[4096]) conditional(c, x, x), true_computation=left, false_computation=right
  u = f32[4096] get-tuple-element(r), index=0
  v = f32[4096] get-tuple-element(r), index=1
  ROOT s = f32[4096] add(u, v)
}
"""


@pytest.mark.parametrize("policy", ["irscope", "inductor", "xla-cpu", "xla-gpu", "tvm"])
def test_a_branch_counts_as_its_longest_way_and_starts_nothing_itself(policy: str) -> None:
    eager, captured, fused, _ = planned(BRANCHES, policy)
    assert eager[1] == captured[1] == 3
    assert fused[1] <= 3 and fused[2] <= captured[2]


def test_a_program_that_computes_nothing_costs_nothing() -> None:
    text = "HloModule m\n\nENTRY e {\n  ROOT x = f32[4] parameter(0)\n}\n"
    for policy in ("irscope", "xla-cpu"):
        assert planned(text, policy)[:3] == [(0, 0, 0, 0)] * 3


def test_a_captured_program_is_never_slower_than_its_calls() -> None:
    big = CHAIN.replace("1024,1024", "8192,8192")
    for machine in BUILT_IN:
        eager, captured, fused, _ = told(big, settings=Settings(machine=machine)).stages
        assert eager.us >= captured.us > fused.us


def test_pieces_of_a_concatenation_share_its_bytes() -> None:
    text = "HloModule m\n\nENTRY e {\n  a = f32[64] parameter(0)\n  b = f32[64] parameter(1)\n  m = f32[64] negate(a)\n" \
           "  n = f32[64] negate(b)\n  c = f32[128] concatenate(m, n), dimensions={0}\n  ROOT r = f32[128] abs(c)\n}\n"
    _, captured, fused, _ = planned(text, "inductor")
    assert captured[2] == 4 * (4 * 64 + 2 * 128 + 2 * 128)
    assert fused[1:3] == (1, 4 * (4 * 64 + 2 * 128))  # each piece is computed in its place, by one kernel with three loop nests


PRODUCTS = """HloModule m, entry_computation_layout={(bf16[512,512], bf16[512,512])->bf16[512,512]}

ENTRY e {
  x = bf16[512,512] parameter(0)
  w = bf16[512,512] parameter(1)
  a = bf16[512,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = bf16[512,512] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = bf16[512,512] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = bf16[512,512] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = bf16[512,512] tanh(d)
}
"""
CHOSEN = """HloModule m

ENTRY e {
  c = pred[512,512] parameter(0)
  x = f32[512,512] parameter(1)
  y = f32[512,512] parameter(2)
  p = f32[512,512] select(c, x, y)
  a = f32[512,512] negate(p)
  b = f32[512,512] transpose(p), dimensions={1,0}
  d = f32[512,512] abs(p)
  f = f32[512,512] floor(p)
  g = f32[512,512] ceil(p)
  ROOT t = (f32[512,512], f32[512,512], f32[512,512], f32[512,512], f32[512,512]) tuple(a, b, d, f, g)
}
"""
SAID_OF_ALL = "than the operators one by one, each of which a framework runs in one kernel"


def test_operators_that_a_policy_writes_out_are_named() -> None:
    """Products whose sums XLA splits take two kernels each; three of the four are named."""
    found = told(PRODUCTS, settings=Settings(policy="xla-gpu"))
    _, captured, fused, _ = found.stages
    assert (captured.launches, fused.launches) == (5, 8)
    assert found.sources[0] == f"xla-gpu starts more kernels {SAID_OF_ALL}: it computes %a (dot) in 2, %b (dot) in 2, %c (dot) in 2"


def test_what_is_computed_in_each_of_its_readers_moves_more_bytes() -> None:
    """A choice of three inputs for five readers: instead of one result, each reader reads all three."""
    found = told(CHOSEN, settings=Settings(policy="xla-cpu"))
    _, captured, fused, _ = found.stages
    mib = 1024 * 1024
    assert (captured.launches, captured.traffic) == (6, 3.25 * mib + 5 * 2 * mib)
    assert (fused.launches, fused.traffic) == (5, 5 * 3.25 * mib)
    assert found.sources[0] == f"xla-cpu moves more bytes {SAID_OF_ALL}: it computes %p (select) in 5"


def test_a_policy_that_fuses_well_needs_no_such_words() -> None:
    for text, policy in ((CHOSEN, "tvm"), (CHOSEN, "xla-gpu"), (PRODUCTS, "tvm")):
        assert not any(SAID_OF_ALL in source for source in told(text, settings=Settings(policy=policy)).sources)


def test_a_fix_that_makes_the_whole_slower_is_not_lifted() -> None:
    """The cast behind the product is a kernel less, and a product whose result is stored wide costs more than that."""
    (fixture,) = [fixture for fixture in find_rule("DTY010").bad if fixture.format == "torchscript"]
    context = Context(irscope.load(fixture.text, format="torchscript").module(), Settings(policy="xla-cpu"))
    assert any(isinstance(f, RuleFinding) and f.edit is not None and (f.saves or {}).get("us") for f in find_rule("FUS002").found_in(context.inner))
    found = stages(context)
    assert found is not None and found.lifted == {}
    assert found.stages[3].us == found.stages[2].us


def test_fixes_that_slow_each_other_down_are_not_all_made() -> None:
    """Whatever is lifted together, the last column is no slower than the one before."""
    for code in ("FUS003", "FUS004", "ALG002", "ALG007"):
        for fixture in find_rule(code).bad:
            found = stages(Context(irscope.load(fixture.text).module(), Settings(policy="xla-cpu")))
            if found is not None and len(found.stages) == 4:
                assert found.stages[3].us <= found.stages[2].us * 1.0000001


IN_PLACE = """HloModule m

cond {
  s = (s32[], f32[100,64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT l = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[100,64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  rows = f32[100,64] get-tuple-element(s), index=1
  v = f32[64] get-tuple-element(s), index=2
  n = f32[64] negate(v)
  r = f32[1,64] reshape(n)
  u = f32[100,64] dynamic-update-slice(rows, r, i, zero)
  ROOT t = (s32[], f32[100,64], f32[64]) tuple(j, u, v)
}

ENTRY e {
  x = f32[100,64] parameter(0)
  v = f32[64] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[100,64], f32[64]) tuple(z, x, v)
  ROOT w = (s32[], f32[100,64], f32[64]) while(t), condition=cond, body=body
}
"""


@pytest.mark.parametrize("policy", ["irscope", "inductor", "xla-cpu", "xla-gpu", "tvm"])
def test_what_a_loop_writes_in_place_and_picks_out_of_its_state_counts_alone(policy: str) -> None:
    _, captured, fused, _ = planned(IN_PLACE, policy)
    row = 64 * 4
    assert fused[2] <= captured[2] < 10 * 8 * row
    assert fused[1] <= captured[1]


def test_a_product_that_is_computed_wide_counts_once() -> None:
    """XLA's CPU compiler converts the operands of a product of halves, multiplies, and converts back: three kernels, one product."""
    text = "HloModule m, entry_computation_layout={(bf16[512,512], bf16[512,512])->bf16[512,512]}\n\nENTRY e {\n" \
           "  x = bf16[512,512] parameter(0)\n  w = bf16[512,512] parameter(1)\n  t = bf16[512,512] negate(x)\n" \
           "  d = bf16[512,512] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT r = bf16[512,512] tanh(d)\n}\n"
    _, captured, fused, _ = told(text, settings=Settings(policy="xla-cpu")).stages
    product = machine_named("cpu").product_us(2 * 512.0**3, "bf16")
    assert product < fused.us < captured.us + product / 2
