"""Findings of one operator of the user's program become one finding."""
from __future__ import annotations

import pytest

import irscope
from irscope.api import LintOptions, lint
from irscope.formats.export.provenance import TextProvenance
from irscope.lint.collect import enough, range_of
from irscope.lint.context import Context

TWICE = '''\
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[256, 256]"):
        # File: {line} in forward, code: return a + f(x)
        a: "f32[256, 256]" = torch.ops.aten.tanh.default(x)
        b: "f32[256, 256]" = torch.ops.aten.tanh.default(x)
        c: "f32[256, 256]" = torch.ops.aten.exp.default(x)
        d: "f32[256, 256]" = torch.ops.aten.exp.default(x)
        return (a, b, c, d)
'''


class Scoped(TextProvenance):
    """As an archive has it: each node also has the path of its module."""

    def scope(self, loc: int) -> str:
        return "block"


def duplicates(text: str, scoped: bool) -> list[str]:
    reading = irscope.load(text)
    if scoped:
        reading.module().provenance = Scoped(text)
    return [finding.node for finding in lint(reading, LintOptions(isolated=True, select=("ALG002",))).findings]


def test_an_archive_has_the_findings_of_its_text() -> None:
    """Archives have the path of the module of each node, and texts have not."""
    for line, wanted in (("/src/net.py:3", 1), ("/site-packages/lib/norm.py:3", 2)):
        text = TWICE.format(line=line)
        assert len(duplicates(text, scoped=False)) == wanted
        assert duplicates(text, scoped=True) == duplicates(text, scoped=False)


def test_a_range_holds_what_all_findings_save() -> None:
    """A finding without a range leaves the sum without one, and does not count as zero."""
    known, unknown = {"us": 10.0, "us_least": 5.0, "us_most": 20.0}, {"us": 30.0}
    assert range_of([known, known]) == {"us_least": 10.0, "us_most": 40.0}
    assert range_of([known, {"us": 0.0}]) == {"us_least": 5.0, "us_most": 20.0}
    assert range_of([known, unknown]) == range_of([known, None]) == {}


@pytest.mark.parametrize(("us", "total", "wanted"), [
    (5.0, 100.0, True), (4.9, 100.0, False),  # five microseconds can be measured
    (20.0, 1000.0, True), (19.9, 1000.0, False),  # one run in fifty
    (5.0, None, True),
])
def test_a_saving_is_worth_a_warning_from_five_microseconds_and_a_fiftieth_of_the_time_on(us: float, total: float | None, wanted: bool) -> None:
    context = Context(irscope.load(TWICE.format(line="/src/net.py:3")).module())
    context.costs.total_us = total
    assert enough(context, us) is wanted
