"""Whole programs as XLA rewrites them before it fuses: operators, operands, attributes, sizes, layouts and constants."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.canonical_text import canonical
from tests.fusion.test_canonicalise_rules import CASES, rewritten

DATA = Path(__file__).parent.parent / "data"
FORMS = dict(line.split(": ", 1) for line in (DATA / "xla_cpu_forms.txt").read_text().splitlines() if not line.startswith("//"))
VARIANTS = {head.split(": ")[0]: (head.split(": ", 1)[1], body)
            for head, body in (part.split("\n", 1) for part in (DATA / "xla_cpu_variants.txt").read_text().split("\n=== ")[1:])}


@pytest.mark.parametrize("name", FORMS)
def test_a_program_has_the_form_that_xla_gives_it(name: str) -> None:
    assert canonical(rewritten(CASES[name][1])) == FORMS[name]


@pytest.mark.parametrize("name", VARIANTS)
def test_a_program_beside_a_rule_has_the_form_that_xla_gives_it(name: str) -> None:
    form, text = VARIANTS[name]
    assert canonical(rewritten(text)) == form
