"""Passes over Relay's operators."""
from __future__ import annotations

from irscope.formats.relay.dialect import RELAY
from irscope.passes.base import Pass


class RelayPass(Pass):
    """A pass over Relay's operators that looks at their types."""

    dialects = (RELAY,)
    requires = ("infer-types",)
