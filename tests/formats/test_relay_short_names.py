"""Lessons write operators without their namespace: they mean the operator of Relay that has this name in one."""
from __future__ import annotations

import numpy as np
import pytest

from irscope import api
from irscope.source import Severity

LESSON = "%1 = matmul(%x, %W)\n%2 = add(%1, %b)\n%3 = relu(%2)\nreturn %3\n"


def test_the_program_of_a_lesson_runs() -> None:
    reading = api.load(LESSON, format="relay")
    assert [(f.code, f.severity, f.message, str(f.place())) for f in reading.findings] == [
        ("RLY022", Severity.INFO, "`matmul` is read as `nn.matmul`", "1:6"), ("RLY022", Severity.INFO, "`relu` is read as `nn.relu`", "3:6")]
    model = api.compile(reading, shapes={"x": (2, 3), "W": (3, 4), "b": (4,)})
    x, w, b = (np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate([(2, 3), (3, 4), (4,)]))
    np.testing.assert_allclose(model(x, w, b)[0], np.maximum(x @ w + b, 0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("short", "full"), [
    ("relu", "nn.relu"), ("softmax", "nn.softmax"), ("dense", "nn.dense"), ("conv2d", "nn.conv2d"), ("batch_norm", "nn.batch_norm"),
    ("max_pool2d", "nn.max_pool2d"), ("resize2d", "image.resize2d"), ("non_max_suppression", "vision.non_max_suppression"),
    ("mul", "multiply"), ("add", "add"), ("tanh", "tanh"), ("pad", "nn.pad"), ("reduce_sum", "sum"), ("my_relu", "my_relu"), ("dot", "dot"),
])
def test_a_name_without_a_namespace(short: str, full: str) -> None:
    reading = api.load(f"def @main(%x: Tensor[(4), float32]) {{\n  %0 = {short}(%x);\n  {short}(%0)\n}}\n", format="relay")
    assert [node.op.name for node in reading.module().main().nodes if node.op.name != "parameter"] == [full, full]
    codes = ["RLY022"] if full != short else ["RLY020"] if full in ("my_relu", "dot") else []
    assert [f.code for f in reading.findings] == codes


def test_a_constructor_is_no_operator() -> None:
    text = "type T { relu(float32) }\ndef @main(%x: float32) {\n  match (relu(%x)) { relu(%y) => negative(%y) }\n}\n"
    reading = api.load(text, format="relay")
    assert not reading.findings
    assert api.compile(reading)(np.array(2, np.float32))[0] == -2
