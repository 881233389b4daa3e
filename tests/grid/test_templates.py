"""Every kernel family and every operator with loops of its own has a program in the grid, and the texts are sound."""
from __future__ import annotations

import re
from functools import cache

import pytest

from irscope.api import load
from irscope.backends.model import primitive
from irscope.expand import bind_inputs
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.templates import TEMPLATES as OF_IRSCOPE
from irscope.ops.registry import all_ops
from tests.grid.case import Case, factors
from tests.grid.plan import KNOWN
from tests.grid.template import TEMPLATES, Template

ELSEWHERE = {
    "bitcast": "becomes transposes and reshapes before there are kernels",
    "get-dimension-size": "is a constant before there are kernels, unless sizes are dynamic: tests/backends/test_dynamic_sizes.py",
    "partition-id": "is of several devices: tests/ops/test_collective.py", "replica-id": "is of several devices: tests/ops/test_collective.py",
    "ragged-all-to-all": "is of several devices: tests/ops/test_collective.py",
    "ragged-dot": "has dimension numbers of its own: tests/ops/test_contraction.py", "scaled-dot": "has dimension numbers of its own: tests/ops/test_contraction.py",
}
"""Operators with a loop nest or an element of their own that have no template."""


def case_of(template: Template) -> Case:
    """One of its cases: f32 where it takes that, sizes from the middle."""
    dtype = "f32" if "f32" in template.dtypes else template.dtypes[0]
    sizes = [size for size in template.sizes if 0 not in size]
    return Case(template.name, sizes[len(sizes) // 2], dtype)


@cache
def text_of(name: str) -> str:
    return case_of(TEMPLATES[name]).program()[0]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_taken_by_its_family(name: str) -> None:
    template = TEMPLATES[name]
    assert template.family in OF_IRSCOPE
    dtype = case_of(template).dtype
    taken: set[object] = set()
    for size in sorted((s for s in template.sizes if 0 not in s), key=sum):
        case = Case(name, size, dtype)
        text, parameters = case.program()
        arrays = case.arrays(parameters, 0)
        module = primitive(bind_inputs(load(text).module(), {n: arrays[n] for n, p in enumerate(parameters) if p.fixed}))
        taken |= {kernel.schedule.get("template") for kernel in lower(module, Options()).kernels()}
        if template.family in taken:
            return
    raise AssertionError(f"kernels of {taken} alone")


def test_every_family_has_a_template() -> None:
    assert {template.family for template in TEMPLATES.values()} == set(OF_IRSCOPE)


def test_every_operator_with_loops_of_its_own_has_a_template() -> None:
    written = {opcode for name in TEMPLATES for opcode in re.findall(r" = (?:\S+|\([^=]*\)) ([a-z][\w-]*)\(", text_of(name))}
    loops = {op.name for op in all_ops("hlo") if op.nest is not None or op.element is not None}
    assert loops - written - set(ELSEWHERE) == set()
    assert set(ELSEWHERE) <= loops - written


@pytest.mark.parametrize("first", factors()["first"])
@pytest.mark.parametrize("behind", factors()["behind"])
def test_all_circumstances_are_sound_texts(first: str, behind: str) -> None:
    for dtype, others, epilogue in (("f32", "aliased", "residual"), ("pred", "fixed", "biased"), ("s1", "stored", "narrowed"), ("c64", "strided", "narrowed")):
        for size in ((), (3,), (0, 5), (2, 7)):
            case = Case("add", size, dtype, first=first, others=others, epilogue=epilogue, behind=behind)
            reading = load(case.program()[0])
            assert reading.ok and not reading.findings, (case.key, reading.findings)


def test_a_key_is_the_case() -> None:
    for key in KNOWN:
        assert Case.of(key).key == key
    scalar = Case("add", (), "f32")
    assert Case.of(scalar.key) == scalar
    with pytest.raises(ValueError, match="no key"):
        Case.of("add/3/f32")
