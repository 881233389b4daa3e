"""Linting is linear: ten times the layers take no more than about ten times the time, and what is equal is planned once."""

from __future__ import annotations

import time

import irscope
from irscope.lint import Context
from irscope.lint.run import lint_context
from tests.lint.test_claims import layers


def seconds(n: int) -> tuple[float, Context]:
    module = irscope.load(layers(n), format="hlo").module()
    context = Context(module)
    begin = time.process_time()
    found = lint_context(context)
    assert len(found) >= n
    return time.process_time() - begin, context


def test_time_grows_with_the_graph_and_no_faster() -> None:
    small, _ = min((seconds(40) for _ in range(2)), key=lambda run: run[0])
    large, context = seconds(400)
    assert large < 25 * small
    assert context.claims is not None
    assert len(context.claims._known) < 40
