"""``irscope.load`` of torch's objects: fakes with their methods, and torch itself."""
from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.source import UserError

REPO = Path(__file__).parents[1]
ARCHIVE = (REPO / "tests" / "data" / "export" / "net.pt2").read_bytes()
TEXT = 'class M(torch.nn.Module):\n    def forward(self, x: "f32[2]"):\n        relu: "f32[2]" = torch.ops.aten.relu.default(x)\n        return relu\n'
SCRIPT = """graph(%self : __torch__.N,
      %x : Float(2)):
  %k : Tensor = prim::GetAttr[name="k"](%self)
  %y : Float(2) = aten::mul(%x, %k)
  return (%y)
"""
COMPILED = ('V1123 10:50:53.614000 1 torch/_dynamo/output_graph.py:1] {"dynamo_output_graph": {"sizes": {}}, "frame_id": 0, '
            '"frame_compile_id": 0, "attempt": 0, "has_payload": "0"}\n\t' + TEXT.replace("\n", "\n\t"))


class Program:
    """``torch.export.ExportedProgram``."""

    graph_module, graph_signature = None, None

    def module(self) -> object:
        return None

    def __str__(self) -> str:
        return "ExportedProgram:\n    " + TEXT.replace("\n", "\n    ")


class FakeModule:
    """``torch.nn.Module``."""

    def forward(self, *args: object) -> object:
        return args

    def named_parameters(self) -> Iterator[tuple[str, object]]:
        return iter(())

    def state_dict(self) -> dict[str, object]:
        return {}


class FakeGraphModule(FakeModule):
    graph = None

    def print_readable(self, print_output: bool = True) -> str:
        assert not print_output
        return TEXT


class Tensor:
    """A tensor of torch, over an array."""

    def __init__(self, array: Any, dtype: str) -> None:
        self.array, self.dtype, self.shape = array, dtype, array.shape

    def detach(self) -> Tensor:
        return self

    cpu = contiguous = detach

    def reshape(self, *sizes: int) -> Tensor:
        return Tensor(self.array.reshape(*sizes), self.dtype)

    def view(self, kind: Any) -> Tensor:
        return Tensor(self.array.view(kind), "torch.uint8")

    def numpy(self) -> Any:
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A stand-in for the torch that a program has imported; ``asked`` lists what was asked of it."""
    asked: list[object] = []

    def export(model: object, args: object, kwargs: object) -> Program:
        asked.append((args, kwargs))
        return Program()

    def save(program: object, file: BytesIO) -> None:
        file.write(ARCHIVE)

    fake = SimpleNamespace(export=SimpleNamespace(export=export, save=save), compiler=SimpleNamespace(reset=lambda: asked.append("reset")),
                           uint8=np.uint8, asked=asked)
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "torch._logging._internal",
                        SimpleNamespace(TorchLogsFormatter=lambda trace: logging.Formatter("%(message)s")))
    return fake


def names(reading: irscope.Reading) -> list[str]:
    return [node.op.name for node in reading.module().main().nodes if not node.synthetic]


def test_a_program_is_read_with_its_weights(torch: SimpleNamespace) -> None:
    reading = irscope.load(Program())
    assert reading.format == "export" and reading.source.name == "<Program>" and "p_inner_weight" in reading.module().stored


def test_a_program_that_has_no_archive_is_read_as_text(torch: SimpleNamespace) -> None:
    def save(program: object, file: BytesIO) -> None:
        raise NotImplementedError("No registered serialization name")
    torch.export.save = save
    assert "aten::relu" in names(irscope.load(Program()))


def test_modules_are_exported_for_their_arguments(torch: SimpleNamespace) -> None:
    assert "aten::relu" in names(irscope.load(FakeGraphModule()))
    for module in (FakeModule(), FakeGraphModule()):
        assert irscope.load(module, args=(1,), kwargs={"k": 2}).format == "export"
    assert torch.asked == [((1,), {"k": 2})] * 2
    with pytest.raises(UserError, match="depends on its arguments") as error:
        irscope.load(FakeModule())
    assert "torch.export.export" in error.value.help


def test_a_script_is_read_with_its_state(torch: SimpleNamespace) -> None:
    state = {"k": Tensor(np.array([2, 3], np.float32), "torch.float32"), "_extra_state": None}
    reading = irscope.load(SimpleNamespace(inlined_graph=SCRIPT, state_dict=lambda: state))
    assert reading.format == "torchscript" and list(reading.module().stored) == ["k"]
    result = irscope.run(reading, irscope.RunOptions(threads=1), inputs={"x": np.array([5, 7], np.float32)})
    assert result.outputs[0].tolist() == [10, 21]
    assert irscope.load(SimpleNamespace(inlined_graph=SCRIPT)).module().stored == {}


def test_types_that_numpy_lacks_are_read_by_their_bits(torch: SimpleNamespace) -> None:
    state = {"k": Tensor(np.array([[0x3F80, 0x4040]], np.uint16), "torch.bfloat16")}
    value = irscope.load(SimpleNamespace(inlined_graph=SCRIPT, state_dict=lambda: state)).module().stored["k"]
    assert value.shape == (1, 2) and value.astype(np.float32).tolist() == [[1, 3]] and str(value.dtype) == "bfloat16"


def compiled(log: Callable[[object], None]) -> Any:
    def call(x: object) -> None:
        log(x)
    call._torchdynamo_orig_callable = call  # type: ignore[attr-defined]
    return call


def test_a_compiled_function_is_called_once_and_traced(torch: SimpleNamespace) -> None:
    logger = logging.getLogger("torch.__trace")
    calls: list[object] = []

    def log(x: object) -> None:
        calls.append(x)
        logger.debug(COMPILED)
    reading = irscope.load(compiled(log), args=(5,))
    assert reading.format == "inductor" and calls == [5] and torch.asked == [] and not logger.handlers
    with pytest.raises(UserError, match="compiled when it is called"):
        irscope.load(compiled(log))


def test_a_compiled_module_is_no_module_to_export(torch: SimpleNamespace) -> None:
    class Optimized(FakeModule):
        dynamo_ctx = None

        def __call__(self, x: object) -> None:
            logging.getLogger("torch.__trace").debug(COMPILED)
    assert irscope.load(Optimized(), args=(5,)).format == "inductor"


def test_what_was_compiled_before_is_compiled_again(torch: SimpleNamespace) -> None:
    calls: list[object] = []

    def log(x: object) -> None:
        calls.append(x)
        if torch.asked:
            logging.getLogger("torch.__trace").debug(COMPILED)
    assert irscope.load(compiled(log), args=(5,)).modules and calls == [5, 5] and torch.asked == ["reset"]
    with pytest.raises(UserError, match="the call compiled nothing"):
        irscope.load(compiled(lambda x: None), args=(5,))


def test_without_torch_its_objects_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(UserError, match="has not imported it"):
        irscope.load(Program())


PROGRAM = """
import torch, numpy as np, irscope
class N(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.narrow = torch.nn.Linear(4, 3), torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
        self.register_buffer("k", torch.full((3,), 2.0))
    def forward(self, x):
        return torch.relu(self.l(x)) * self.k + self.narrow.float()
model, x = N().eval(), torch.randn(2, 4)
want = model(x).detach().numpy()
program = torch.export.export(model, (x,))
options = irscope.RunOptions(threads=1)
exported = [irscope.load(program), irscope.load(model, args=(x,)), irscope.load(program.module(), args=(x,))]
scripts = [irscope.load(torch.jit.trace(model, x)), irscope.load(torch.jit.script(model))]
for readings, name in ((exported, "x"), (scripts, "arg0")):
    for reading in readings:
        assert reading.ok, reading.findings
        np.testing.assert_allclose(irscope.run(reading, options, inputs={name: x.numpy()}).outputs[0], want, rtol=1e-5, atol=1e-6)
for graph_module in (program.module(), torch.fx.symbolic_trace(model)):
    reading = irscope.load(graph_module)
    assert reading.ok and any("relu" in node.op.name for node in reading.module().main().nodes)
function = torch.compile(lambda x: torch.sin(x).sum() + 1)
for compiled in (torch.compile(model), function, function):
    reading = irscope.load(compiled, args=(x,))
    assert reading.ok and reading.format == "inductor" and reading.modules, reading.findings
for wrong in (model, function, lambda x: x):
    try:
        irscope.load(wrong)
    except irscope.UserError as error:
        print(error.message.split(":")[0])
"""


@pytest.mark.oracle
def test_torch_itself(tmp_path: Path) -> None:
    """Every kind of object of the installed torch; torch.jit.script reads the source of a module."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    done = subprocess.run([os.environ.get("PEERS_PYTHON", sys.executable), str(program)], capture_output=True, text=True, env=environment,
                          timeout=300, check=False)
    assert done.stdout.splitlines() == ["__main__'s N is a module", "function is compiled when it is called",
                                        "function is a Python function, which nothing has compiled"], done.stderr[-2000:]
