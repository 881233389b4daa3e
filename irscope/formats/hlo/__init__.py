"""XLA's HLO text: reading it in every form that XLA and the tools around it write, and printing it again."""
from irscope.formats.hlo.printer import print_module
from irscope.formats.hlo.reader import read
from irscope.formats.hlo.surroundings import sniff

__all__ = ["TITLE", "print_module", "read", "sniff"]

TITLE = "XLA HLO text"
