"""Relay's algebra over the graphs that are being built."""

from __future__ import annotations

from irscope.expand.frames import Framed
from irscope.formats.relay.algebra import Relay


class FramedRelay(Framed, Relay):
    """Relay's algebra in the innermost frame."""
