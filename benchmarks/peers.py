"""One engine running one net, in a process of its own: loads, checks its answer, then times bursts when told to.

Started by run_nets.py as ``python peers.py NET ENGINE FOLDER THREADS``; speaks lines of JSON. ENGINE ``dump`` writes what irscope reads
(model.hlo.txt, weights.npz, inputs.npz) and the expected result instead.
"""
from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nets
import numpy as np

Run = Callable[[], Any]
Get = Callable[[], np.ndarray]


def dump(net: str, folder: Path) -> None:
    """The net as jax lowers it, its weights as parameters, and the answer in float64."""
    import jax

    os.environ["JAX_PLATFORMS"] = "cpu"
    w, x = nets.weights(net), nets.inputs(net)
    operations = nets.jax_operations(channels_last=False)

    def main(p: Any, x: Any) -> Any:
        return nets.NETS[net][0](operations, lambda name, shape, kind: p[name], x)

    lowered = jax.jit(main, keep_unused=True).lower(w, x)
    (folder / "model.hlo.txt").write_text(lowered.as_text(dialect="hlo"))
    np.savez(folder / "weights.npz", **{f"arg{i}": value for i, value in enumerate(w.values())})
    np.savez(folder / "inputs.npz", **{f"arg{len(w)}": x})
    import torch
    with torch.inference_mode():
        module = _torch_module(net, torch.float64)
        np.savez(folder / "expected.npz", out0=module(torch.from_numpy(x).double()).float().numpy())


def _torch_module(net: str, dtype: Any = None) -> Any:
    import torch

    operations = nets.torch_operations()

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, value in nets.weights(net).items():
                dense = name.endswith(".w") and value.ndim == 2
                self.register_buffer(name.replace(".", "_"), torch.from_numpy(np.ascontiguousarray(value.T) if dense else value).to(dtype))

        def forward(self, x: Any) -> Any:
            return nets.NETS[net][0](operations, lambda name, shape, kind: getattr(self, name.replace(".", "_")), x)

    return Module().eval()


def torch_engine(net: str, threads: int, frozen: bool) -> tuple[Run, Get]:
    """Eager torch, or a trace that was frozen."""
    import torch

    torch.set_num_threads(threads)
    torch.inference_mode().__enter__() if not frozen else torch.no_grad().__enter__()
    module, x = _torch_module(net), torch.from_numpy(nets.inputs(net))
    call = torch.jit.freeze(torch.jit.trace(module, x, check_trace=False)) if frozen else module
    return lambda: call(x), lambda: np.asarray(call(x))


def jax_engine(net: str, constant: bool) -> tuple[Run, Get]:
    """``jax.jit``; weights as arguments in NCHW, or closed over, in NHWC where there are images (its fastest form)."""
    import jax

    operations = nets.jax_operations(channels_last=constant)
    w, x = {k: jax.numpy.asarray(v) for k, v in nets.weights(net).items()}, jax.numpy.asarray(nets.inputs(net))

    def apply(p: Any, x: Any) -> Any:
        return nets.NETS[net][0](operations, lambda name, shape, kind: p[name], x)

    call = jax.jit(lambda x: apply(w, x)) if constant else jax.jit(apply)
    args = (x,) if constant else (w, x)
    return lambda: call(*args).block_until_ready(), lambda: np.asarray(call(*args))


def onnxruntime_engine(net: str, folder: Path, threads: int) -> tuple[Run, Get]:
    """ONNX Runtime on torch's own export."""
    import onnxruntime
    import torch

    path, x = folder / "model.onnx", nets.inputs(net)
    if not path.exists():
        with torch.no_grad():
            torch.onnx.export(_torch_module(net), (torch.from_numpy(x),), str(path), dynamo=False, opset_version=17)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x}
    return lambda: session.run(None, feed), lambda: session.run(None, feed)[0]


def irscope_engine(folder: Path, threads: int) -> tuple[Run, Get]:
    """irscope on the dump, weights fixed at load, called with numpy arrays as a user does."""
    import irscope

    with np.load(folder / "weights.npz") as file:
        fixed = dict(file)
    with np.load(folder / "inputs.npz") as file:
        given = dict(file)
    model = irscope.compile(folder / "model.hlo.txt", weights=fixed, threads=threads)
    arrays = list(given.values())
    return lambda: model(*arrays), lambda: model(*arrays)[0]


IMPORTS = {"irscope": ("irscope", "irscope.api"), "torch": ("torch",), "torchscript": ("torch",), "jax": ("jax",), "jax_const": ("jax",),
           "onnxruntime": ("onnxruntime", "torch")}
"""What is imported before the load time begins."""


def engine(name: str, net: str, folder: Path, threads: int) -> tuple[Run, Get]:
    """How a user of the engine runs the net."""
    if name == "irscope":
        return irscope_engine(folder, threads)
    if name == "onnxruntime":
        return onnxruntime_engine(net, folder, threads)
    if name in ("torch", "torchscript"):
        return torch_engine(net, threads, name == "torchscript")
    return jax_engine(net, name == "jax_const")


def main() -> None:
    net, name, folder, threads = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    if name == "dump":
        dump(net, folder)
        say({"ok": True})
        return
    try:
        for module in IMPORTS[name]:
            __import__(module)
        if name == "irscope":  # what irscope imports only when it compiles counts as importing, as it does for the others
            sys.modules["irscope"].compile("ENTRY main { p = f32[3] parameter(0)\n ROOT n = f32[3] negate(p) }", threads=1)
        began = time.process_time()
        run, get = engine(name, net, folder, threads)
        run()
        loaded = time.process_time() - began
        with np.load(folder / "expected.npz") as file:
            expected = file["out0"].astype(np.float64)
        error = float(np.abs(get().reshape(expected.shape) - expected).max() / np.abs(expected).max())
    except ImportError as problem:
        say({"ok": False, "error": str(problem)})
        return
    began = time.perf_counter()
    for _ in range(3):
        run()
    inner = max(1, int(5e-4 / ((time.perf_counter() - began) / 3)))
    say({"ok": True, "load_cpu_s": loaded, "error": error})
    gc.disable()
    for line in sys.stdin:
        seconds = json.loads(line)
        end, wall, cpu = time.perf_counter() + seconds, [], []
        while True:
            w0, c0 = time.perf_counter(), time.process_time()
            for _ in range(inner):
                run()
            cpu.append((time.process_time() - c0) / inner)
            wall.append((time.perf_counter() - w0) / inner)
            if time.perf_counter() > end and len(wall) >= 3:
                break
        say({"wall": wall, "cpu": cpu})


if __name__ == "__main__":
    main()
