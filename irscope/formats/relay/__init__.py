"""Relay: TVM's text format, and the shorter style of lessons."""

from irscope.formats.relay.printer import print_module
from irscope.formats.relay.reader import read, sniff

__all__ = ["TITLE", "print_module", "read", "sniff"]

TITLE = "Relay text"
