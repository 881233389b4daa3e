"""Two graphs side by side: what matches whatever its name, what changed, and what the change costs."""
from irscope.diff.compare import Change, Comparison, GraphPair, compare
from irscope.diff.gate import MetricGate, parse_gate

__all__ = ["Change", "Comparison", "GraphPair", "MetricGate", "compare", "parse_gate"]
