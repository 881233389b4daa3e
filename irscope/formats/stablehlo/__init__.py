"""StableHLO: the MLIR text that jax, XLA, torch_xla and TensorFlow print, in its pretty and its generic form."""
from irscope.formats.stablehlo.printing.module import print_module
from irscope.formats.stablehlo.reader import read, sniff

__all__ = ["TITLE", "print_module", "read", "sniff"]

TITLE = "StableHLO (MLIR) text"
