"""StableHLO: the MLIR text that jax, XLA, torch_xla and TensorFlow print, in its pretty and its generic form, and its bytecode."""
from irscope.formats.stablehlo.bytecode import read_bytes, sniff_bytes
from irscope.formats.stablehlo.printing.module import print_module
from irscope.formats.stablehlo.reader import read, sniff

__all__ = ["TITLE", "print_module", "read", "read_bytes", "sniff", "sniff_bytes"]

TITLE = "StableHLO (MLIR) text"
