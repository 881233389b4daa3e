"""Passes: each takes a graph and returns a new graph with the same meaning. One file each, named after its pass."""
from __future__ import annotations

from irscope.passes.base import Pass
from irscope.passes.registry import pass_named

__all__ = ["Pass", "pass_named"]
