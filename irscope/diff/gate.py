"""Conditions under which a difference fails: ``kernels>+0``, ``bytes>+5%``, ``ops.transpose>0``."""
from __future__ import annotations

import re
from dataclasses import dataclass

from irscope.diff.compare import METRICS, Comparison
from irscope.query.language import COMPARE
from irscope.source import UserError, did_you_mean

CONDITION = re.compile(r"\s*(ops\.[^\s<>=!]+|[\w\-]+)\s*(>=|<=|==|!=|>|<)\s*([+-]?)(\d+(?:\.\d+)?)\s*(%|[kMG]i?B?)?\s*", re.ASCII)
"""Names of operators are those of any format: ``ops.aten::mm``, ``ops.conditional?``."""
UNITS = {"k": 1e3, "M": 1e6, "G": 1e9, "kB": 1e3, "MB": 1e6, "GB": 1e9, "ki": 1024.0, "Mi": 1024.0**2, "Gi": 1024.0**3,
         "kiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3}


@dataclass(frozen=True, slots=True)
class MetricGate:
    """``metric`` compared with ``value``: the later value itself, or (``relative``) how much it grew, in percent when ``percent``."""

    text: str
    metric: str
    compare: str
    value: float
    relative: bool
    percent: bool

    def fails(self, comparison: Comparison) -> str:
        """The failure message if the condition holds, or a figure that it asks for is not known; the empty string if it does not."""
        before, after = comparison.metric(self.metric)
        if after is None or (before is None and (self.relative or self.percent)):
            which = "before" if after is not None else "after"
            return f"{self.text}: {self.metric} {which} is not known: sizes, the trips of loops or the work of custom calls are open"
        was, before = "unknown" if before is None else f"{before:.0f}", before or 0.0
        if self.percent:
            found = (after - before) / before * 100 if before else (0.0 if after == before else float("inf"))
            shown = f"{found:+{'.1f' if abs(found) >= 0.05 else '.1g'}} %"
        else:
            found, shown = (after - before, f"{after - before:+.0f}") if self.relative else (after, f"{after:.0f}")
        holds = COMPARE[self.compare](found, self.value)
        return f"{self.text}: {self.metric} went from {was} to {after:.0f} ({shown})" if holds else ""


def parse_gate(text: str) -> MetricGate:
    """The gate of a condition's text. Raises UserError with an example for an invalid condition."""
    found = CONDITION.fullmatch(text)
    if found is None:
        raise UserError(f"{text!r} is not a condition", "examples: 'kernels>+0', 'bytes>+5%', 'ops.transpose>0'")
    metric, compare, sign, number, unit = found.groups()
    if metric not in METRICS and not metric.startswith("ops."):
        raise UserError(f"there is no metric {metric!r}", did_you_mean(metric, METRICS) or f"known are {', '.join(METRICS)} and ops.NAME")
    value = float(number) * UNITS.get(unit or "", 1.0) * (-1 if sign == "-" else 1)
    return MetricGate(text.strip(), metric, compare, value, bool(sign), unit == "%")
