"""Runs an ONNX model abstractly: inlines its functions and expands its operators into a primitive graph."""

from irscope.expand.onnx.binding import parameter_names, rebound
from irscope.expand.onnx.interpreter import run_program

__all__ = ["parameter_names", "rebound", "run_program"]
