"""Older releases of XLA's CPU fusion pass: what each decides otherwise, and how a text shows whose dump it is."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from irscope.api import load
from irscope.fusion import follows_text, policy_named, releases_of
from irscope.fusion.logs.verdicts import load_log
from irscope.fusion.logs.xla_replay import Replay
from irscope.fusion.logs.xla_vlog import read
from irscope.fusion.policy import POLICIES
from irscope.fusion.xla import releases
from irscope.fusion.xla_cpu import RELEASES, XlaCpuPolicy
from irscope.fusion.xla_gpu import XlaGpuPolicy
from irscope.graph import Module
from irscope.lint.collect import found_by
from irscope.lint.context import Context
from irscope.lint.fusion import remarks, version_of
from irscope.lint.settings import Settings
from irscope.ops import hlo
from irscope.source import UserError
from irscope.version import __version__
from tests.fusion.xla_texts import ADD, concatenation, many_reductions, module, why

OLD = "xla-cpu@jaxlib-0.4.38"
GIVEN = Path(__file__).parent.parent / "data" / "xla_cpu_0.4.38"
"""What jaxlib 0.4.38 made of eight programs: the text before its fusion pass, and the decisions that it logged."""
NAMES = sorted(path.stem for path in GIVEN.glob("*.hlo"))


def column_sums(dimension: int) -> str:
    """A sum over one of two dimensions, of which the last is the minor one, and what reads it."""
    return f"""
        x = f32[8,16] parameter(0)
        e = f32[8,16] negate(x)
        z = f32[] constant(0)
        r = f32[{16 if dimension == 0 else 8}] reduce(e, z), dimensions={{{dimension}}}, to_apply=add
        ROOT n = f32[{16 if dimension == 0 else 8}] negate(r)"""


def dividing(op: str, constant_first: bool) -> str:
    """An integer division with a constant, whose result is repeated."""
    sides = "k, x" if constant_first else "x, k"
    return f"""
        x = s32[8] parameter(0)
        c = s32[] constant(3)
        k = s32[8] broadcast(c), dimensions={{}}
        d = s32[8] {op}({sides})
        ROOT b = s32[8,4] broadcast(d), dimensions={{0}}"""


NARROWED = """
        x = f32[8] parameter(0)
        e = bf16[8] convert(x)
        ROOT b = bf16[8,4] broadcast(e), dimensions={0}"""

CASES = [
    (concatenation(9, 4, 0), "n0 c", "concatenate", "fused", ""),
    (concatenation(1, 128, 1, rows=16), "n0 c", "concatenate", "fused", ""),
    (many_reductions(7), "r0 m1", "too-many-reductions", "fused", ADD),
    (column_sums(0), "e r", "fused", "major-reduction", ADD),
    (column_sums(0), "r n", "fused", "major-reduction", ADD),
    (column_sums(1), "e r", "fused", "fused", ADD),
    (NARROWED, "e b", "not-profitable", "fused", ""),
    (dividing("divide", False), "d b", "not-profitable", "fused", ""),
    (dividing("divide", True), "d b", "fused", "not-profitable", ""),
    (dividing("remainder", False), "d b", "not-profitable", "fused", ""),
]


@pytest.mark.parametrize("instructions, edge, now, then, header", CASES, ids=[f"{i}-{c[2]}-{c[3]}" for i, c in enumerate(CASES)])
def test_what_each_release_decides(instructions: str, edge: str, now: str, then: str, header: str) -> None:
    assert (why("xla-cpu", instructions, edge, header), why(OLD, instructions, edge, header)) == (now, then)


def decided(policy: str, name: str) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
    """What the policy says of the edges of a given program, and what jaxlib 0.4.38 logged."""
    text = load(GIVEN / f"{name}.hlo").module()
    release = next(one for one in RELEASES.values() if one is policy_named(policy))
    run = Replay([text.main()], load_log(str(GIVEN / f"{name}.log")).runs[0])
    verdicts = [v for plan in release.plan_as_written(text) for v in plan.verdicts if {v.producer, v.consumer} <= run.home.keys()]
    told = [v for v in verdicts if run.knows(v.consumer) and v.producer.op not in (hlo.parameter, hlo.constant)]
    return [(*v.names, v.fused) for v in told], [(*v.names, run.fused(v.producer, v.consumer)) for v in told]


@pytest.mark.parametrize("name", NAMES)
def test_the_older_release_decides_as_its_log_says(name: str) -> None:
    mine, logged = decided(OLD, name)
    assert mine == logged and mine


@pytest.mark.parametrize("name", NAMES)
def test_the_latest_release_decides_otherwise_on_these(name: str) -> None:
    mine, logged = decided("xla-cpu@jaxlib-0.12.0.1", name)
    assert mine != logged


def test_a_policy_is_named_with_its_release() -> None:
    assert policy_named("xla-cpu@0.10.2") is policy_named("xla-cpu@jaxlib-0.10.2") and policy_named("inductor@2.13") is policy_named("inductor@torch-2.13")
    assert version_of(OLD) == OLD and version_of("xla-cpu") == "xla-cpu@jaxlib-0.12.0.1"
    assert list(releases_of("xla-cpu")) == [f"jaxlib-{one}" for one in "0.12.0.1 0.11.2 0.10.2 0.9.2 0.8.3 0.7.2 0.4.38".split()]
    assert list(releases_of("inductor")) == ["torch-2.15", "torch-2.13"]


def test_a_release_is_one_row() -> None:
    for compiler, known in releases.RELEASES.items():
        assert list(releases_of(compiler)) == list(known)
        for name, release in known.items():
            policy = policy_named(f"{compiler}@{name}")
            assert isinstance(policy, XlaCpuPolicy | XlaGpuPolicy) and policy.release is release


def test_an_unknown_release_is_met_with_those_that_there_are() -> None:
    with pytest.raises(UserError, match="xla-cpu is not known as of jaxlib-0.3") as caught:
        policy_named("xla-cpu@jaxlib-0.3")
    assert "xla-cpu@jaxlib-0.4.38" in caught.value.render()
    with pytest.raises(UserError, match="irscope is not known as of 1"):
        policy_named("irscope@1")


def test_a_release_has_the_rules_and_the_launches_of_its_compiler() -> None:
    settings = Settings(policy=OLD)
    assert settings.compiler == "xla-cpu"
    table = settings.table()
    assert table.launch(OLD) == table.launch("xla-cpu") and table.launch_source(OLD) == table.launch_source("xla-cpu")
    from irscope.lint.rules.expensive_into_broadcast import ExpensiveIntoBroadcast

    text = module("x = f32[4096] parameter(0)\n e = f32[4096] exponential(x)\n ROOT b = f32[4096,64] broadcast(e), dimensions={0}")
    found = [len(list(found_by(Context(text, Settings(policy=policy)), ExpensiveIntoBroadcast))) for policy in ("xla-cpu", OLD, "tvm")]
    assert found == [1, 1, 0]


HEAD = "HloModule m, entry_computation_layout={(f32[4]{0})->f32[4]{0}}\n\nENTRY main {\n  x = f32[4]{0} parameter(0)\n"
FRAMES = 'metadata={op_name="jit(f)/tanh" stack_frame_id=2}'
WRITTEN = [
    ('metadata={op_name="jit(f)/jit(main)/tanh" source_file="f.py" source_line=4}', "jaxlib-0.4.38"),
    ('metadata={op_name="jit(f)/jit(main)/tanh"}', "jaxlib-0.4.38"),
    ('metadata={op_name="jit(f)/tanh" source_file="f.py" source_line=4 source_end_line=4}', "jaxlib-0.7.2"),
    (f'{FRAMES}, backend_config={{"known_trip_count":{{"n":"8"}}}}', "jaxlib-0.10.2"),
    (FRAMES, "jaxlib-0.12.0.1"),
    (f'{FRAMES}, backend_config={{"dynamic_variables":[]}}', "jaxlib-0.12.0.1"),
    ("", "jaxlib-0.12.0.1"),
    (f'{FRAMES.replace("stack", "source_line=4 stack")}', "jaxlib-0.12.0.1"),
]
"""What a text has, and the newest release that may have printed it; no release prints the last one."""


def tanh(metadata: str) -> Module:
    """A text with one operator."""
    return load(HEAD + f"  ROOT t = f32[4]{{0}} tanh(x){', ' if metadata else ''}{metadata}\n}}\n").module()


@pytest.mark.parametrize("metadata, release", WRITTEN)
def test_the_policy_without_a_release_follows_the_text(metadata: str, release: str) -> None:
    assert version_of("xla-cpu", tanh(metadata)) == f"xla-cpu@{release}"
    assert not any("another release" in line for line in remarks(tanh(metadata), "xla-cpu"))


@pytest.mark.parametrize("metadata, release", WRITTEN[:4])
def test_a_dump_of_another_release_than_the_one_named_is_told_apart(metadata: str, release: str) -> None:
    said = [line for line in remarks(tanh(metadata), "xla-cpu@jaxlib-0.12.0.1") if "another release" in line]
    assert len(said) == 1 and f"--policy xla-cpu@{release} decides as that one" in said[0]
    assert not any("another release" in line for line in remarks(tanh(metadata), f"xla-cpu@{release}"))


@pytest.mark.parametrize("metadata, release", [*WRITTEN[:2], (FRAMES, "jaxlib-0.12.0.1")])
def test_xla_gpu_tells_such_a_dump_too(metadata: str, release: str) -> None:
    text = load(HEAD + f"  ROOT t = f32[4]{{0}} tanh(x), {metadata}\n}}\n").module()
    for policy in ("xla-gpu", "xla-gpu@jaxlib-0.4.38", "xla-gpu@jaxlib-0.4.35-instruction-fusion"):
        said = [line for line in remarks(text, policy) if "another release" in line]
        assert len(said) == ((policy == "xla-gpu") != (release == "jaxlib-0.12.0.1"))
        assert all(f"--policy xla-gpu@{release} decides as that one" in line for line in said)


def test_every_policy_names_its_version() -> None:
    assert version_of("irscope") == f"irscope@{__version__}"
    assert all(re.fullmatch(rf"{name}@[\w.\-]+", version_of(name)) for name in POLICIES)
    assert all(policy_named(version_of(name)) is policy_named(name) for name in POLICIES if not follows_text(name))


def test_a_text_without_metadata_is_of_no_release() -> None:
    for text in (HEAD + "  ROOT t = f32[4]{0} tanh(x)\n}\n", "HloModule m\n\nENTRY main {\n  ROOT x = f32[4]{0} parameter(0)\n}\n"):
        assert not any("another release" in line for line in remarks(load(text).module(), OLD))


def test_a_reason_may_have_the_word_because() -> None:
    head = "instruction_fusion.cc:1] "
    log = read(f"{head}Considering fusion of: %c = f32[] negate(%a)\n"
               f"{head}not fusing operand %a = f32[] add(%b) because Bailing because producer can be output-fused into some operand.\n"
               f'{head}not fusing operand %b = f32[] add(%d), metadata={{op_name="x because y"}} because Fusion is not profitable.\n', "log")
    assert [step.words for step in log.runs[0]] == ["Bailing because producer can be output-fused into some operand.",
                                                    "Fusion is not profitable."]
