"""ONNX models: binary files, read through the ``onnx`` package (``pip install 'irscope[onnx]'``)."""
from irscope.formats.onnx.printer import print_module
from irscope.formats.onnx.reader import read_bytes
from irscope.formats.onnx.text import read, sniff
from irscope.formats.onnx.wire import sniff_bytes

TITLE = "an ONNX model"

__all__ = ["TITLE", "print_module", "read", "read_bytes", "sniff", "sniff_bytes"]
