"""A claim is what planning a changed copy again shows, and nothing else; the copy of the surroundings shows what one of the whole shows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

import irscope
from irscope.graph import Module, Node
from irscope.lint.claims import Claim, Claims, Cost, tidied
from irscope.lint.context import Context
from irscope.lint.edits import Edit, Site, built, together
from irscope.lint.machine import machine_named
from irscope.lint.planned import Planned
from irscope.lint.regions import Region
from irscope.lint.rule import find_rule
from irscope.lint.run import lint_module
from irscope.lint.settings import Settings
from irscope.ops import hlo

SORTED = """HloModule m

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}

ENTRY e {
  x = f32[64,64] parameter(0)
  s = f32[64,64] sort(x), dimensions={1}, to_apply=less
  y = f32[64,64] exponential(s)
  ROOT z = f32[64,64] sort(y), dimensions={1}, to_apply=less
}
"""
LAYER = """
  d{0} = f32[64,64] dot(x{0}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t{0} = f32[64,64] tanh(d{0})
  r{0} = f32[64] reduce(t{0}, z), dimensions={{1}}, to_apply=sum
  rb{0} = f32[64,64] broadcast(r{0}), dimensions={{0}}
  s{0} = f32[64,64] subtract(t{0}, rb{0})
  bf{0} = bf16[64,64] convert(s{0})
  g{0} = f32[64,64] convert(bf{0})
  tr{0} = f32[64,64] transpose(g{0}), dimensions={{1,0}}
  e{0} = f32[64,64] exponential(tr{0})
  tt{0} = f32[64,64] transpose(e{0}), dimensions={{1,0}}
  a{0} = f32[64,64] add(tt{0}, x{0})
  rs{0} = f32[4096] reshape(a{0})
  sl{0} = f32[4096] maximum(rs{0}, rs{0})
  ri{0} = f32[64,64] reshape(sl{0})
  x{1} = f32[64,64] add(ri{0}, x{0})"""


def layers(n: int) -> str:
    """A chain of ``n`` equal layers."""
    head = "HloModule m\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\nENTRY e {\n"
    params = "  x0 = f32[64,64] parameter(0)\n  w = f32[64,64] parameter(1)\n  z = f32[] constant(0)"
    return head + params + "".join(LAYER.format(i, i + 1) for i in range(n)) + f"\n  ROOT root = f32[64,64] negate(x{n})\n}}\n"


LAYERS = layers(6)
CPU = machine_named("cpu")


def read(text: str) -> tuple[Module, dict[str, Node]]:
    module = irscope.load(text, format="hlo").module()
    return module, {node.name: node for node in module.main().nodes}


def whole(module: Module, edit: Edit | None, policy: str) -> Planned:
    """The plan of the whole entry with an edit made."""
    main = module.main()
    part = module.derived()
    graph = built(main.nodes, [main.result()], edit, main.name)
    part.graphs = {graph.name: graph}
    return Planned(tidied(part, policy), policy)


def test_a_change_that_drops_a_kernel_is_counted() -> None:
    module, nodes = read(SORTED)
    found = Claims(Planned(module, "irscope"), CPU).of(module.main(), module.main().users(), Edit.use(nodes["y"], nodes["s"]))
    assert found is not None
    assert (found.kernels, found.bytes) == (1, 2 * 64 * 64 * 4)
    assert found.us == pytest.approx(CPU.launch("irscope") + CPU.vector_us(64 * 64 * hlo.exponential.weight))
    assert found.holds
    assert found.saves["kernels"] == 1


def test_no_change_brings_nothing_and_a_loss_is_no_saving() -> None:
    module, nodes = read(SORTED)
    claims = Claims(Planned(module, "irscope"), CPU)
    found = claims.of(module.main(), module.main().users(), Edit({nodes["y"]: lambda site: site.copy(nodes["y"], site.new(nodes["s"]))}))
    assert found == Claim(0, 0.0, 0.0)
    assert Claim(-1, -8.0, -2.0).saves == {"us": 0.0, "bytes": 0.0, "kernels": 0.0}
    assert Claim(1, 8.0, 2.0).times(3) == Claim(3, 24.0, 6.0)


def edits(nodes: dict[str, Node], i: int) -> dict[str, Edit]:
    def untransposed(site: Site) -> Node:
        return site.copy(nodes[f"e{i}"], site.new(nodes[f"g{i}"]))

    def unreshaped(site: Site) -> Node:
        return site.op(hlo.maximum, site.new(nodes[f"a{i}"]), site.new(nodes[f"a{i}"]))

    return {
        "casts": Edit.use(nodes[f"g{i}"], nodes[f"s{i}"]),
        "transposes": Edit({nodes[f"tt{i}"]: untransposed}, (nodes[f"g{i}"],)),
        "reshapes": Edit({nodes[f"ri{i}"]: unreshaped}, (nodes[f"a{i}"],)),
        "known": Edit({nodes[f"r{i}"]: lambda site: site.given(nodes[f"r{i}"])}),
    }


@pytest.mark.parametrize("policy", ["irscope", "tvm", "xla-cpu", "xla-gpu"])
@pytest.mark.parametrize("what", ["casts", "transposes", "reshapes", "known"])
def test_the_surroundings_show_what_the_whole_shows(policy: str, what: str) -> None:
    module, nodes = read(LAYERS)
    claims = Claims(Planned(module, policy), CPU)
    edit = edits(nodes, 3)[what]
    found = claims.of(module.main(), module.main().users(), edit)
    before, after = whole(module, None, policy), whole(module, edit, policy)
    assert found is not None
    assert (found.kernels, found.bytes) == (before.kernels - after.kernels, before.traffic - after.traffic)
    assert found.us == pytest.approx(before.us(CPU) - after.us(CPU), abs=1e-6)


TWICE = """HloModule m

ENTRY e {
  x = f32[256,256] parameter(0)
  w = f32[256,256] parameter(1)
  a = f32[256,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[256,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[256,256] tanh(b)
  ROOT r = f32[256,256] add(a, t)
}
"""


@pytest.mark.parametrize("policy", ["irscope", "xla-cpu", "xla-gpu"])
def test_nothing_is_claimed_for_what_the_compiler_shares_itself(policy: str) -> None:
    module, nodes = read(TWICE)
    claims = Claims(Planned(module, policy), CPU)
    found = claims.of(module.main(), module.main().users(), Edit.use(nodes["b"], nodes["a"]))
    assert found == Claim(0, 0.0, 0.0)


CALLED = """HloModule m

inner {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  a = f32[64,64] exponential(x)
  b = bf16[64,64] convert(a)
  c = f32[64,64] convert(b)
  ROOT r = f32[64,64] dot(c, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY e {
  p = f32[64,64] parameter(0)
  q = f32[64,64] parameter(1)
  ROOT r = f32[64,64] call(p, q), to_apply=inner
}
"""


@pytest.mark.parametrize("policy", ["irscope", "xla-cpu"])
def test_what_is_called_is_claimed_where_it_is_written(policy: str) -> None:
    module, _ = read(CALLED)
    inner = module.graphs["inner"]
    nodes = {node.name: node for node in inner.nodes}
    found = Claims(Planned(module, policy), CPU).of(inner, inner.users(), Edit.use(nodes["r"], nodes["c"]))
    assert found is not None
    assert found.us > 0


def test_what_a_compiler_left_in_its_result_stays_there() -> None:
    module, nodes = read(TWICE.replace("HloModule m", "HloModule m, is_scheduled=true"))
    found = Claims(Planned(module, "xla-cpu"), CPU).of(module.main(), module.main().users(), Edit.use(nodes["b"], nodes["a"]))
    assert found is not None
    assert found.us > CPU.product_us(2 * 256**3, "f32")


def test_a_kernel_that_takes_a_slice_computes_no_more_than_that() -> None:
    cut = "".join(f"  s{i} = f32[16,4096] slice(t), slice={{[{16 * i}:{16 * i + 16}], [0:4096]}}\n" for i in range(16))
    pieces = ", ".join(f"s{15 - i}" for i in range(16))
    text = f"""HloModule m

ENTRY e {{
  x = f32[256,4096] parameter(0)
  t = f32[256,4096] tanh(x)
{cut}  ROOT c = f32[256,4096] concatenate({pieces}), dimensions={{0}}
}}
"""
    module, nodes = read(text)
    us = Planned(module, "xla-cpu").us(CPU)
    whole = CPU.vector_us(256 * 4096 * 16)
    assert whole < us < 2.5 * whole
    assert nodes["t"].type == nodes["c"].type


def test_equal_surroundings_are_planned_once() -> None:
    module, nodes = read(layers(20))
    claims = Claims(Planned(module, "irscope"), CPU)
    users = module.main().users()
    found = [claims.of(module.main(), users, edits(nodes, i)["casts"]) for i in range(20)]
    assert len(set(found[4:-4])) == 1
    assert len(claims._known) < 10
    assert claims.of(module.main(), users, edits(nodes, 10)["known"]) != found[10]


def test_edits_are_made_together() -> None:
    module, nodes = read(LAYERS)
    both = together([edits(nodes, 3)["casts"], edits(nodes, 3)["transposes"]])
    after = whole(module, both, "irscope")
    left = {node.name for node in after.plans[-1].graph.nodes}
    assert not left & {"bf3", "tr3", "tt3"}
    assert {"bf2", "tr2", "tt2"} <= left


def test_a_number_takes_the_place_of_a_node() -> None:
    module, nodes = read(LAYERS)
    type = nodes["s3"].type

    def one(site: Site, node: Node) -> Node:
        return site.number(1.0, type)  # type: ignore[arg-type]

    after = whole(module, Edit({nodes["s3"]: partial(one, node=nodes["s3"])}), "irscope")
    assert "d3" not in {node.name for node in after.plans[-1].graph.nodes}


WIDENED = """HloModule m

relu {
  a = f64[128,512] parameter(0)
  c = f64[] constant(0)
  b = f64[128,512] broadcast(c), dimensions={}
  ROOT m = f64[128,512] maximum(a, b)
}

ENTRY e {
  x = f32[128,512] parameter(0)
  w = f32[512,512] parameter(1)
  wx = f64[128,512] convert(x)
  ww = f64[512,512] convert(w)
  d = f64[128,512] dot(wx, ww), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  m = f64[128,512] call(d), to_apply=relu
  ROOT r = f32[128,512] convert(m)
}
"""


def test_double_precision_around_a_call_is_claimed_once() -> None:
    found = lint_module(read(WIDENED)[0], [find_rule("DTY001")])
    assert [finding.node for finding in found] == ["wx"]
    half = CPU.product_us(2 * 128 * 512 * 512, "f64") / 2
    assert found[0].saves is not None
    assert found[0].saves["us"] > half / 2


def test_a_kernel_of_a_rewritten_graph_reads_its_inputs_once() -> None:
    """XLA cancels the two transposes: the kernel's nodes take values that it has in another form, and its input none of them takes."""
    text = """HloModule m, entry_computation_layout={(f32[64,32]{1,0})->f32[64,32]{1,0}}
ENTRY main {
  x = f32[64,32]{1,0} parameter(0)
  t = f32[32,64]{0,1} transpose(x), dimensions={1,0}
  h = f32[32,64]{0,1} tanh(t)
  c = f32[] constant(2)
  b = f32[32,64]{1,0} broadcast(c), dimensions={}
  m = f32[32,64]{0,1} multiply(h, b)
  ROOT r = f32[64,32]{1,0} transpose(m), dimensions={1,0}
}
"""
    planned = Context(irscope.load(text).module(), Settings(policy="xla-cpu")).costs.planned
    assert planned is not None
    ((graph, group),) = [(plan.graph, group) for plan in planned.plans for group in plan.groups]
    assert planned.flow(graph, group) == (64 * 32 * 4, 64 * 32 * 4)


def test_kernels_of_thousands_of_nodes_are_not_planned_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel of 1,000 steps, in which 60 different changes are tried: the plan of what stands there is made once."""
    steps = [f"  a{i + 1} = f32[8] {('negate', 'abs', 'floor')[i % 3]}(a{i})" for i in range(1000)]
    text = "HloModule m\n\nENTRY e {\n  a0 = f32[8] parameter(0)\n" + "\n".join(steps) + "\n  ROOT r = f32[8] tanh(a1000)\n}\n"
    module, nodes = read(text)
    made: list[int] = []
    plan = Claims._plan

    def counted(self: Claims, region: Region, edit: Edit | None, tidy: bool) -> Planned:
        made.append(len(region.nodes))
        return plan(self, region, edit, tidy)

    monkeypatch.setattr(Claims, "_plan", counted)
    claims = Claims(Planned(module, "xla-cpu"), CPU)
    found = [claims.of(module.main(), module.main().users(), Edit.use(nodes[f"a{i + 1}"], nodes[f"a{i}"])) for i in range(1, 61)]
    tried = [claim for claim in found if claim is not None]
    assert found[0] is not None and found[-1] is None
    assert len(tried) == 20_000 // made[0]
    assert len(made) == len(tried) + 1


def test_a_saving_has_a_range_and_none_where_one_of_the_machines_loses() -> None:
    machine = replace(machine_named("cpu"), fast=2.0, slow=3.0)
    before, after = Cost(2, 100.0, (30.0, 40.0, 20.0)), Cost(1, 60.0, (10.0, 10.0, 10.0))
    saves = before.less(after, machine).saves
    assert saves == {"us": 10.0, "bytes": 40.0, "kernels": 1, "us_least": 5.0, "us_most": 30.0}
    uncertain = before.less(Cost(1, 60.0, (31.0, 10.0, 10.0)), machine)
    assert uncertain.saves == {"us": 0.0, "bytes": 40.0, "kernels": 1}


def test_machines_differ_in_what_is_dear() -> None:
    machine = machine_named("cpu")
    memory, arithmetic = machine.variants()
    assert memory.move_us(1e9, 0) == pytest.approx(2 * machine.move_us(1e9, 0))
    assert memory.move_us(1000, 0) == pytest.approx(2 * machine.move_us(1000, 0))
    assert (memory.product_us(1e6, "f32"), memory.vector_us(1e6)) == (machine.product_us(1e6, "f32"), machine.vector_us(1e6))
    assert arithmetic.product_us(1e6, "f32") == pytest.approx(2 * machine.product_us(1e6, "f32"))
    assert arithmetic.move_us(1000, 0) == machine.move_us(1000, 0)


def test_nothing_is_claimed_for_a_device_without_a_table() -> None:
    """Of a GPU that a target text describes, the table of an H100 says nothing."""
    assert Settings("xla-gpu").has_table and Settings("xla-gpu", device="A100").has_table and Settings("xla-cpu").has_table
    unknown = Settings("xla-gpu", device="targets/v100.txt")
    assert not unknown.has_table and replace(unknown, machine="a100").has_table
    module = irscope.load(ALONE, format="hlo").module()
    costs = Context(module, Settings("xla-cpu")).costs
    assert costs.total_us and costs.saves(module.main(), {"us": 0.0, "bytes": 8.0, "kernels": 1.0}, False)
    costs.settings = unknown
    assert costs.saves(module.main(), {"us": 0.0, "bytes": 8.0, "kernels": 1.0}, False) is None
    assert Context(module, Settings("xla-cpu")).costs.settings.has_table


ALONE = """HloModule m

ENTRY e {
  x = f32[64,64] parameter(0)
  ROOT y = f32[64,64] tanh(x)
}
"""
