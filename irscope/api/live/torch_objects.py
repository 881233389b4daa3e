"""Programs of torch: exported programs, FX graphs, scripts, modules, and functions that torch.compile has.

    program = torch.export.export(model, (x,))    ->    its archive, as torch.export.save writes it
    compiled = torch.compile(f)                   ->    the trace of one call, as TORCH_TRACE writes it
"""
from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, cast, runtime_checkable

from irscope.api.live.door import Arguments, Door, Dump, name_of
from irscope.graph import DTYPES
from irscope.lazy import Array, np
from irscope.source import UserError
from irscope.source.arrays import NamedArrays

TRACE = "torch.__trace"
"""The logger of TORCH_TRACE (torch/_logging/_internal.py)."""
GRAPH = '"dynamo_output_graph"'
"""What a trace has for each graph that was compiled."""
CALL = "irscope.load(compiled, args=(x,)) runs one call and reads what it compiled"
EXPORT = "irscope.load(model, args=(x,)) exports it; or give torch.export.export(model, (x,))"


@runtime_checkable
class ExportedProgram(Protocol):
    """``torch.export.export(model, (x,))``."""

    @property
    def graph_module(self) -> object: ...
    @property
    def graph_signature(self) -> object: ...
    def module(self) -> object: ...


@runtime_checkable
class OptimizedModule(Protocol):
    """``torch.compile(model)``. A protocol sees no submodules, so it is known by the context in which it calls the model."""

    @property
    def dynamo_ctx(self) -> object: ...
    def __call__(self, *args: object, **kwargs: object) -> object: ...


@runtime_checkable
class OptimizedFunction(Protocol):
    """``torch.compile(f)``."""

    @property
    def _torchdynamo_orig_callable(self) -> object: ...
    def __call__(self, *args: object, **kwargs: object) -> object: ...


@runtime_checkable
class Script(Protocol):
    """What ``torch.jit.trace`` and ``torch.jit.script`` return, of modules and of functions."""

    @property
    def inlined_graph(self) -> object: ...


@runtime_checkable
class GraphModule(Protocol):
    """``torch.fx.symbolic_trace(model)``, ``program.module()`` and the graphs that a backend of torch.compile is given."""

    @property
    def graph(self) -> object: ...
    def print_readable(self, print_output: bool = True) -> str: ...


@runtime_checkable
class TorchModule(Protocol):
    """``torch.nn.Module``."""

    def forward(self, *args: object) -> object: ...
    def named_parameters(self) -> Iterator[tuple[str, object]]: ...
    def state_dict(self) -> Mapping[str, object]: ...


TorchObject = ExportedProgram | OptimizedModule | OptimizedFunction | Script | GraphModule | TorchModule


class _Tensor(Protocol):
    dtype: object
    shape: Sequence[int]

    def detach(self) -> _Tensor: ...
    def cpu(self) -> _Tensor: ...
    def contiguous(self) -> _Tensor: ...
    def reshape(self, *sizes: int) -> _Tensor: ...
    def view(self, kind: object) -> _Tensor: ...
    def numpy(self) -> Array: ...


class _Export(Protocol):
    def export(self, model: object, args: tuple[object, ...], kwargs: dict[str, object]) -> object: ...
    def save(self, program: object, file: io.BytesIO) -> None: ...


class _Compiler(Protocol):
    def reset(self) -> None: ...


class _Torch(Protocol):
    """The parts that are used of the torch that the user's program has imported."""

    export: _Export
    compiler: _Compiler
    uint8: object


def _exported(program: object, _: Arguments) -> Dump:
    """The archive, which has the weights; the text where torch.export.save does not know a type of the program."""
    file = io.BytesIO()
    try:
        _torch(program).export.save(program, file)
    except (TypeError, ValueError, KeyError, AssertionError, RuntimeError):  # torch's serializer, for a type that it does not know
        return Dump(f"{program}\n")
    return Dump(file.getvalue())


def _graph_module(module: GraphModule, arguments: Arguments) -> Dump:
    return _module(module, arguments) if arguments else Dump(module.print_readable(print_output=False))


def _module(model: object, arguments: Arguments) -> Dump:
    if not arguments:
        raise UserError(f"{name_of(model)} is a module: what it computes depends on its arguments", EXPORT)
    program = _torch(model).export.export(model, tuple(arguments.args), dict(arguments.kwargs))
    return _exported(program, arguments)


def _script(script: Script, _: Arguments) -> Dump:
    state = getattr(script, "state_dict", None)
    return Dump(f"{script.inlined_graph}\n", StateValues(state()) if state is not None else None)


def _compiled(function: Callable[..., object], arguments: Arguments) -> Dump:
    """The trace of one call. Where the call compiles nothing because it was compiled before, the compiled code of this process is
    dropped, and the call is repeated."""
    if not arguments:
        raise UserError(f"{name_of(function)} is compiled when it is called: what it computes depends on its arguments", CALL)
    text = _trace(function, arguments)
    if GRAPH not in text:
        _torch(function).compiler.reset()
        text = _trace(function, arguments)
    if GRAPH not in text:
        raise UserError("the call compiled nothing: torch.compile left all of it to Python", "TORCH_LOGS=graph_breaks shows why")
    return Dump(text)


DOORS = (Door(ExportedProgram, _exported), Door(OptimizedModule, _compiled), Door(OptimizedFunction, _compiled), Door(Script, _script),
         Door(GraphModule, _graph_module), Door(TorchModule, _module))


def _trace(function: Callable[..., object], arguments: Arguments) -> str:
    """What torch logs for TORCH_TRACE during one call. Its caches on disk are off: torch logs no stages of code that comes from them."""
    with _recorded() as written, _without_caches():
        function(*arguments.args, **arguments.kwargs)
    return written.getvalue()


@contextmanager
def _recorded() -> Iterator[io.StringIO]:
    """A text to which the logger of TORCH_TRACE writes within the block."""
    formatter = getattr(sys.modules.get("torch._logging._internal"), "TorchLogsFormatter", None)
    if formatter is None:
        raise UserError("this release of torch has no structured trace", "TORCH_COMPILE_DEBUG=1 writes a folder that irscope show reads")
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatter(trace=True))
    logger = logging.getLogger(TRACE)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield written
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _without_caches() -> AbstractContextManager[Any]:
    patch = getattr(sys.modules.get("torch._inductor.config"), "patch", None)
    return cast(AbstractContextManager[Any], patch(force_disable_caches=True)) if patch is not None else nullcontext()


class StateValues(NamedArrays):
    """The tensors of a state dict as arrays, by their paths; a tensor is converted when it is accessed."""

    def __init__(self, state: Mapping[str, object]) -> None:
        self.names = self._state = {name: cast(_Tensor, value) for name, value in state.items() if hasattr(value, "numpy")}

    def __getitem__(self, name: str) -> Array:
        tensor = self._state[name].detach().cpu()
        kind = DTYPES.get(SPELLINGS.get(str(tensor.dtype), ""))
        if kind is None:
            return tensor.numpy()
        flat = tensor.contiguous().reshape(-1).view(_torch(tensor).uint8).numpy()
        return np.asarray(flat.view(kind.numpy()).reshape(tuple(tensor.shape)))


SPELLINGS = {"torch.bfloat16": "bf16", "torch.float8_e4m3fn": "f8e4m3fn", "torch.float8_e5m2": "f8e5m2"}
"""Element types that numpy does not have."""


def _torch(what: object) -> _Torch:
    """The torch that the program has imported."""
    module = sys.modules.get("torch")
    if module is None:
        raise UserError(f"an object of type {name_of(what)} needs torch to become a program, and this program has not imported it", EXPORT)
    return cast(_Torch, module)
