"""The dialect of ONNX."""
from irscope.graph import Dialect, Typing

ONNX = Dialect("onnx", Typing.INFERRED, instruction="node", module="ONNX model", scope_separator="/", named_results=True)
