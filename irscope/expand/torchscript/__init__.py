"""Runs TorchScript programs over abstract values, which leaves a primitive graph."""
from irscope.expand.torchscript.interpreter import run_counted, run_program
from irscope.expand.torchscript.program import Given
from irscope.expand.torchscript.shapes import TypesSeen, types_of_run, with_shapes

__all__ = ["Given", "TypesSeen", "run_counted", "run_program", "types_of_run", "with_shapes"]
