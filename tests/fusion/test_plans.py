"""Whole plans of small programs, as recorded: kernels, fused edges, and the reason of every other edge."""
from __future__ import annotations

import pytest

from tests.fusion.plan_text import plan_text
from tests.fusion.record_plans import FOLDER, made, recorded

PLANS = {name: (policy, plan, text) for policy in sorted(path.stem for path in FOLDER.glob("*.txt")) for name, plan, text in recorded(policy)}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_as_recorded(name: str) -> None:
    policy, plan, text = PLANS[name]
    assert plan_text(made(text, policy)) == plan
