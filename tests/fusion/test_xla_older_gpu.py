"""Older releases of XLA's GPU passes: kernels that they made of whole programs, and what the policy says of itself."""
from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from irscope.api import load
from irscope.fusion import Plan, policy_named, releases_of
from irscope.fusion.policy import AsWritten
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.older_cost import EarlierCost
from irscope.fusion.xla.stage import computations
from irscope.fusion.xla_gpu import RELEASES, XlaGpuPolicy, marked
from irscope.lint.fusion import remarks, version_of
from irscope.ops import hlo
from tests.fusion.xla_texts import ADD, module, why

GIVEN = Path(__file__).parent.parent / "data" / "xla_gpu_older"
"""By release: programs as they stood before its fusion passes, and the kernels that it made of them for an H100 (number x results | what
they hold)."""
CASES = sorted(path.relative_to(GIVEN).with_suffix("").as_posix() for path in GIVEN.glob("jaxlib-*/*.hlo"))
EARLIER = "xla-gpu@jaxlib-0.4.35-instruction-fusion"
LATER = "xla-gpu@jaxlib-0.4.38"
NOTHING = hlo.named("parameter constant get-tuple-element tuple bitcast")
LOG = """
        x = f32[256,512] parameter(0)
        e = f32[256,512] log(x)
        a = f32[256,512] negate(e)
        b = f32[256,512] abs(e)
        ROOT t = (f32[256,512], f32[256,512]) tuple(a, b)"""


def kernels(policy: XlaGpuPolicy, text: str) -> Counter[str]:
    """The kernels that a policy makes of a text, told as in the data."""
    made, found = load(text).module(), Counter[str]()
    for graph in computations(made):
        computation = marked(made, Computation.of(graph))
        policy.fuse(computation, DEVICES["h100"])
        policy.join(computation, DEVICES["h100"], graph is made.main())
        for kernel in computation.post_order():
            if kernel.body is None:
                found[f"{kernel.op.name}{list(kernel.dims)}".replace(", ", ",")] += kernel.op not in NOTHING
                continue
            root = kernel.body.root
            results = sorted((o.op.name, o.dims) for o in (root.operands if root.op is hlo.tuple else [root]))
            held = sorted({i.op.name for i in kernel.body.instructions if i.op not in NOTHING})
            found[" ".join(f"{op}{list(dims)}".replace(", ", ",") for op, dims in results) + " | " + " ".join(held)] += 1
    return +found


@pytest.mark.parametrize("case", CASES)
def test_kernels_are_those_of_the_release(case: str) -> None:
    lines = [line.partition(" x ") for line in (GIVEN / f"{case}.kernels").read_text().splitlines()]
    wanted = Counter({kernel: int(count) for count, _, kernel in lines})
    assert kernels(RELEASES[case.partition("/")[0]], (GIVEN / f"{case}.hlo").read_text()) == wanted


def planned(policy: str, text: str) -> Plan:
    chosen = policy_named(policy)
    assert isinstance(chosen, AsWritten)
    return chosen.plan_module(module(text))[-1]


def test_each_release_decides_for_itself() -> None:
    assert list(releases_of("xla-gpu")) == ["jaxlib-0.12.0.1", "jaxlib-0.10.2", "jaxlib-0.4.38", "jaxlib-0.4.35-instruction-fusion"]
    assert version_of(EARLIER) == EARLIER and version_of(LATER) == LATER
    assert why(EARLIER, LOG, "e a") == "expensive-twice"
    assert why("xla-gpu", LOG, "e a") == why(LATER, LOG, "e a") == "fused"


def test_the_earlier_release_says_how_sure_it_is_and_which_dump_it_wants() -> None:
    text = module("x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x)")
    told = remarks(text, EARLIER)
    assert any("was compared with" in line and "confidence near for 0.4.35, low for those" in line for line in told)
    assert any("the dump named before_fusion" in line for line in told)
    assert not any("compared" in line for line in remarks(text, LATER))
    assert any("the dump named before_priority-fusion" in line for line in remarks(text, LATER))


SOFTMAX = """
        x = f32[64,32] parameter(0)
        z = f32[] constant(-inf)
        m = f32[64] reduce(x, z), dimensions={1}, to_apply=add
        b = f32[64,32] broadcast(m), dimensions={0}
        ROOT s = f32[64,32] subtract(x, b)"""


def test_rewriters_of_today_are_told_of_today_alone() -> None:
    text = module(SOFTMAX, ADD)
    assert any("softmax rewriter" in line for line in remarks(text, "xla-gpu"))
    assert not any("softmax rewriter" in line for line in remarks(text, EARLIER) + remarks(text, LATER))


SMALL = """
        x = f32[4,6] parameter(0)
        y = f32[8,2] parameter(1)
        n = f32[4,6] negate(x)
        e = f32[8,2] exponential(y)
        ROOT t = (f32[4,6], f32[8,2]) tuple(n, e)"""


def test_slices_of_one_array_are_told_as_the_results_that_they_are() -> None:
    """Kernels of two shapes are computed side by side: the plan names what the user wrote, not the slices."""
    [group] = planned(LATER, SMALL).groups
    assert {node.name for node in group.outputs} == {"n", "e"}
    assert len(planned("xla-gpu", SMALL).groups) == 2


DEAD = """
        x = f32[64,32] parameter(0)
        k = f32[] constant(1)
        d = f32[64,32] exponential(x)
        n = f32[64,32] negate(x)
        ROOT t = (f32[64,32]) tuple(n)"""


def test_what_nobody_reads_is_no_kernel_of_the_earlier_release() -> None:
    assert [group.root.name for group in planned(EARLIER, DEAD).groups] == ["n"]


def test_a_text_with_kernels_is_explained_by_the_rules_of_its_release() -> None:
    header = ADD + """
        first { p = f32[256,512] parameter(0)
                ROOT l = f32[256,512] log(p) }
        second { q = f32[256,512] parameter(0)
                 ROOT n = f32[256,512] negate(q) }
        third { r = f32[256,512] parameter(0)
                ROOT a = f32[256,512] abs(r) }"""
    text = """
        x = f32[256,512] parameter(0)
        f = f32[256,512] fusion(x), kind=kLoop, calls=first
        g = f32[256,512] fusion(f), kind=kLoop, calls=second
        h = f32[256,512] fusion(f), kind=kLoop, calls=third
        s = f32[256,512] custom-call(f), custom_call_target="opaque"
        ROOT t = (f32[256,512], f32[256,512], f32[256,512]) tuple(g, h, s)"""
    assert why(EARLIER, text, "f g", header) == "expensive-twice"


def test_a_deep_chain_is_planned() -> None:
    """20,000 instructions one behind the other: instruction fusion makes one kernel of them."""
    lines = ["x = f32[64] parameter(0)", "n0 = f32[64] negate(x)"]
    lines += [f"n{i} = f32[64] {'negate' if i % 2 else 'abs'}(n{i - 1})" for i in range(1, 20000)]
    plan = planned(EARLIER, "\n".join(lines[:-1] + ["ROOT " + lines[-1]]))
    assert len(plan.groups) == 1 and len(plan.groups[0].nodes) == 20000


def test_an_edge_into_a_kernel_that_the_merger_made_is_told_by_the_last_rule() -> None:
    header = """
        one { p = f32[256,512] parameter(0)
              ROOT n = f32[256,512] negate(p) }"""
    text = """
        x = f32[256,512] parameter(0)
        y = f32[256,512] parameter(1)
        f = f32[256,512] fusion(x), kind=kLoop, calls=one
        l = f32[256,512] log(y)
        c = f32[256,512] add(f, l)
        d = f32[256,512] abs(l)
        ROOT t = (f32[256,512], f32[256,512]) tuple(c, d)"""
    assert why(EARLIER, text, "l c", header) == "expensive-twice" and why(EARLIER, text, "f c", header) == "fused"


@pytest.mark.parametrize("words", ['"output_tile_sizes":["1","512"]', '"output_tiles":[{"sizes":["1","512"]}]'])
def test_both_releases_say_how_a_triton_kernel_is_tiled(words: str) -> None:
    header = "one { p = f32[8,512] parameter(0)\n ROOT n = f32[8,512] negate(p) }"
    config = f'{{"fusion_backend_config":{{"kind":"__triton","block_level_fusion_config":{{{words},"num_warps":"2"}}}}}}'
    made = module(f"x = f32[8,512] parameter(0)\n ROOT r = f32[8,512] fusion(x), kind=kCustom, calls=one, backend_config={config}", header)
    root = marked(made, Computation.of(made.main())).root
    assert (root.kind, root.tile, root.warps) == ("triton", (1, 512), 2)


def test_a_unit_did_whole_operations_in_a_nanosecond() -> None:
    """On an H100 3 instead of 3.96."""
    earlier = EarlierCost(DEVICES["h100"]).device
    assert (earlier.operations, round(DEVICES["h100"].operations, 5)) == (3, 3.96)


EARLY = "HloModule m, entry_computation_layout={(f32[64,32])->f32[64,32]}\n" + ADD + """
    ENTRY e {
        x = f32[64,32] parameter(0)
        l = f32[64,32] logistic(x)
        z = f32[] constant(0)
        r = f32[64] reduce(l, z), dimensions={1}, to_apply=add
        b = f32[64,32] broadcast(r), dimensions={0}
        ROOT d = f32[64,32] divide(l, b) }"""


def test_early_text_is_rewritten_as_today_and_that_is_told() -> None:
    text = load(EARLY).module()
    for policy in (EARLIER, LATER):
        assert any(f"is that of jaxlib-0.10.2, not of {policy.partition('@')[2]}" in line for line in remarks(text, policy))
    assert not any("the rewriting, and what is made" in line for line in remarks(text, "xla-gpu"))


def test_kernels_of_normalisations_came_with_priority_fusion() -> None:
    """Before it a sum of rows that is broadcast back is a kernel by itself, and what divides by it another."""
    counts = {}
    for policy in (EARLIER, LATER):
        chosen = policy_named(policy)
        assert isinstance(chosen, AsWritten)
        counts[policy] = len(chosen.plan_module(load(EARLY).module())[-1].groups)
    assert counts == {EARLIER: 2, LATER: 1}
