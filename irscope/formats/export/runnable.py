"""The types of inputs in ``fx_graph_runnable.py``: its ``load_args`` says how each input is drawn.

    def load_args(reader):
        buf0 = reader.storage(None, 512)
        reader.tensor(buf0, (16, 8), is_leaf=True)  # arg0_1
        reader.symint(5)  # arg1_1
"""
from __future__ import annotations

import ast
import re

from irscope.formats.export.expressions import dotted
from irscope.formats.export.lines import Line
from irscope.formats.export.types import SHORT, size, symbol_type, tensor_type
from irscope.formats.export.values import DTYPES
from irscope.formats.torchscript.torch import SCALAR_TYPES
from irscope.graph import Type

LINE = re.compile(r"reader\.(?P<kind>tensor|symint)\((?P<arguments>.*)\)\s*# (?P<name>\w+)$")


def loaded_types(lines: list[Line], at: int) -> tuple[dict[str, Type], int]:
    """The types by the names of inputs, and the number of the first line after the function."""
    types: dict[str, Type] = {}
    indent = lines[at].indent if at < len(lines) else 0
    while at < len(lines) and lines[at].indent >= indent and indent:
        found = LINE.match(lines[at].text)
        if found is not None:
            type = _tensor(found["arguments"]) if found["kind"] == "tensor" else symbol_type(found["name"])
            if type is not None:
                types[found["name"]] = type
        at += 1
    return types, at


def _tensor(text: str) -> Type | None:
    """The type of ``reader.tensor(buf0, (16, 8), (8, 1), dtype=torch.int64)``; float32 without a dtype."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        tuples = [[size(ast.unparse(each)) for each in part.elts] for part in call.args if isinstance(part, ast.Tuple)]
    except (SyntaxError, ValueError, AssertionError, RecursionError, MemoryError):
        return None
    words = {keyword.arg: dotted(keyword.value).rpartition(".")[2] for keyword in call.keywords}
    dtype = SCALAR_TYPES.get(DTYPES.get(words.get("dtype", "float32"), -1))
    if dtype is None or not tuples:
        return None
    strides = tuple(stride for stride in tuples[1] if isinstance(stride, int)) if len(tuples) > 1 else ()
    return tensor_type(SHORT[dtype.name], tuples[0], strides if len(strides) == len(tuples[0]) else None)
