"""FLOPs, bytes and kernels of nodes and modules."""
from __future__ import annotations

from tests.analysis.texts import FUSED, LOOP, layers, node, survey

F32 = 4


def test_a_fusion_is_one_kernel_that_moves_its_operands_and_its_result() -> None:
    facts = survey(FUSED)
    main = facts.module.graphs["main"]
    fusion = node(facts, "biased")
    assert facts.costs.flops(fusion, main) == 8 * 16
    assert facts.costs.traffic(fusion, main) == F32 * (8 * 16 + 16 + 8 * 16)
    assert facts.totals.kernels == 3
    assert facts.totals.fusions == 1


def test_a_contraction_costs_two_flops_a_product() -> None:
    facts = survey(FUSED)
    assert facts.costs.flops(node(facts, "dot"), facts.module.graphs["main"]) == 2 * 8 * 16 * 4


def test_a_loop_costs_its_trips() -> None:
    facts = survey(LOOP)
    # Five trips of: compare 1, add 1, multiply 4.
    assert facts.totals.flops == 5 * 6
    assert facts.totals.kernels == 5 * 3


def test_of_branches_the_costliest_counts() -> None:
    text = """HloModule branches
cheap { p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p) }
dear { p = f32[8] parameter(0)
  a = f32[8] add(p, p)
  ROOT n = f32[8] multiply(a, a) }
ENTRY main { c = pred[] parameter(0)
  x = f32[8] parameter(1)
  ROOT r = f32[8] conditional(c, x, x), true_computation=cheap, false_computation=dear }
"""
    assert survey(text).totals.flops == 16


def test_slices_and_updates_in_place_move_what_they_touch() -> None:
    text = """HloModule parts
ENTRY main { big = f32[1000,8] parameter(0)
  at = s32[] parameter(1)
  zero = s32[] constant(0)
  row = f32[1,8] dynamic-slice(big, at, zero), dynamic_slice_sizes={1,8}
  ROOT put = f32[1000,8] dynamic-update-slice(big, row, at, zero) }
"""
    facts = survey(text)
    main = facts.module.graphs["main"]
    assert facts.costs.traffic(node(facts, "row"), main) == 2 * 32 + 8
    assert facts.costs.traffic(node(facts, "put"), main) == 2 * 32 + 8


def test_a_fusion_that_looks_at_a_slice_reads_the_slice() -> None:
    text = """HloModule sliced
f { big = f32[1000,8] parameter(0)
  at = s32[] parameter(1)
  zero = s32[] constant(0)
  row = f32[1,8] dynamic-slice(big, at, zero), dynamic_slice_sizes={1,8}
  ROOT n = f32[1,8] negate(row) }
ENTRY main { big = f32[1000,8] parameter(0)
  at = s32[] parameter(1)
  ROOT r = f32[1,8] fusion(big, at), kind=kLoop, calls=f }
"""
    facts = survey(text)
    assert facts.costs.traffic(node(facts, "r"), facts.module.graphs["main"]) == 32 + 4 + 32


def test_unknown_operators_and_ill_typed_nodes_cost_bytes_and_no_flops() -> None:
    text = """HloModule odd
ENTRY main { x = f32[8] parameter(0)
  y = f32[8] frobnicate(x)
  ROOT d = f32[8,8] dot(y, y), lhs_contracting_dims={5}, rhs_contracting_dims={0} }
"""
    facts = survey(text)
    main = facts.module.graphs["main"]
    assert facts.costs.flops(node(facts, "y"), main) == 0
    assert facts.costs.traffic(node(facts, "y"), main) == 64
    assert facts.costs.flops(node(facts, "d"), main) >= 0


def test_sections_add_up_to_the_whole() -> None:
    for text in (FUSED, LOOP, layers(6), layers(6, scoped=True)):
        facts = survey(text)
        for outline in (facts.scope_outline, facts.graph_outline):
            assert outline.flops == facts.totals.flops
            assert outline.bytes == facts.totals.bytes
            assert outline.kernels == facts.totals.kernels


def test_bounded_sizes_count_by_their_bounds_and_open_ones_not() -> None:
    def costs(size: str) -> tuple[float, bool]:
        facts = survey(f"ENTRY main {{ x = f32[{size},4] parameter(0)\nw = f32[4,16] parameter(1)\n"
                       f"ROOT d = f32[{size},16] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}\n")
        return facts.totals.flops, facts.totals.is_open
    assert (costs("8"), costs("<=8"), costs("?")) == ((1024, False), (1024, True), (0, True))
