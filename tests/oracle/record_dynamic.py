"""What XLA gives for programs of dynamic sizes: ``python tests/oracle/record_dynamic.py programs.hlo answers.npz`` where jax is installed.

Each module of the text is compiled by itself in a forked child, because XLA's dynamic padder brings the process down on some. Arrays are
drawn from a seed. ``NAME.arg0`` and ``NAME.out0`` are stored; of an output of dynamic size XLA gives the whole buffer, whose first
elements count. A module that XLA refuses, or dies of, has no outputs.
"""
from __future__ import annotations

import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

SEED = 1
PARAMETER = re.compile(r"= ([a-z]\w*)\[([\d,<= ]*)\]\S* parameter\((\d+)\)")
DTYPES = {"f32": np.float32, "s32": np.int32, "pred": np.bool_}


def modules(text: str) -> dict[str, str]:
    """The modules of a text, by name."""
    return {m[1]: m[0] for m in re.finditer(r"^HloModule (\w+)\n(?:(?!^HloModule ).*\n?)*", text, re.MULTILINE)}


def arguments(text: str) -> list[Any]:
    """Arrays for the entry: normal numbers, small counts; as large as the bound."""
    rng = np.random.default_rng(SEED)
    found = {int(number): (dtype, tuple(int(n.strip().lstrip("<=")) for n in dims.split(",") if n.strip()))
             for dtype, dims, number in PARAMETER.findall(text[text.index("ENTRY"):])}
    made: list[Any] = []
    for number in sorted(found):
        dtype, shape = found[number]
        values = rng.standard_normal(shape) if dtype == "f32" else rng.integers(0, 2 if dtype == "pred" else 5, shape)
        made.append(np.asarray(values).astype(DTYPES[dtype]))
    return made


def run(text: str, arrays: list[Any]) -> list[Any]:
    """What XLA CPU gives. Runs in the child."""
    import jax
    import jax._src.interpreters.mlir as mlir
    from jax._src import xla_bridge
    from jax._src.lib import xla_client
    from jaxlib import _hlo, _jax
    from jaxlib.mlir import ir

    stable = _jax.mlir.hlo_to_stablehlo(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    backend = xla_bridge.get_backend("cpu")
    device = backend.local_devices()[0]
    with mlir.make_ir_context():
        compiled = backend.compile_and_load(ir.Module.parse(stable), xla_client.DeviceList((device,)), xla_client.CompileOptions())
    return [np.asarray(out) for out in compiled.execute([jax.device_put(a, device) for a in arrays])]


def in_a_child(text: str, arrays: list[Any]) -> list[Any] | None:
    """What XLA gives; None where it refuses, dies, or takes a minute."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        import signal

        os.close(here)
        signal.alarm(60)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            answer = pickle.dumps(run(text, arrays))
            with os.fdopen(there, "wb") as pipe:
                pipe.write(answer)
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(answer) if status == 0 and answer else None


def main() -> None:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    source, target = sys.argv[1:3]
    told: dict[str, Any] = {}
    for name, text in modules(Path(source).read_text()).items():
        arrays = arguments(text)
        outputs = in_a_child(text, arrays)
        told |= {f"{name}.arg{i}": a for i, a in enumerate(arrays)} | {f"{name}.out{i}": o for i, o in enumerate(outputs or [])}
        print(name, "refused" if outputs is None else [o.shape for o in outputs], flush=True)
    np.savez_compressed(target, **told)


if __name__ == "__main__":
    main()
