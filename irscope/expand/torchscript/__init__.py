"""TorchScript programs run over abstract values: what is left is a primitive graph."""
from irscope.expand.torchscript.program import Given, run_counted, run_program
from irscope.expand.torchscript.shapes import with_shapes

__all__ = ["Given", "run_counted", "run_program", "with_shapes"]
