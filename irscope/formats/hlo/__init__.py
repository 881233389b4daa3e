"""XLA's HLO text: reads every form that XLA and its tools write, and prints HLO."""
from irscope.formats.hlo.printer import print_module
from irscope.formats.hlo.reader import read
from irscope.formats.hlo.surroundings import sniff

__all__ = ["TITLE", "print_module", "read", "sniff"]

TITLE = "XLA HLO text"
