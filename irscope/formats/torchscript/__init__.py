"""TorchScript: the graphs that PyTorch prints."""
from irscope.formats.torchscript.pasted import sniff
from irscope.formats.torchscript.printer import print_module
from irscope.formats.torchscript.reader import read

__all__ = ["TITLE", "print_module", "read", "sniff"]

TITLE = "a TorchScript graph"
