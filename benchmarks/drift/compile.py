"""Compile the model set with the jax of this interpreter: ``python benchmarks/drift/compile.py OUT [--target FILE]``.

OUT gets a folder for each program, with ``raw.hlo`` (as jax gave it to XLA), ``before.hlo`` and ``after.hlo`` (around the fusion pass), and
``vlog.txt`` (what XLA logged meanwhile). Programs that have a folder already are left as they are. With ``--target``, a text of XLA's
GpuTargetConfigProto, it compiles for that GPU, without one, by jax's CUDA plugin; ``log.txt`` is then the ``priority_fusion_dump``.
"""
from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DUMPS = {"raw": "*jit_{}.*before_optimizations.txt", "before": "*jit_{}.*before_fusion.txt", "after": "*jit_{}.*after_fusion.before*.txt"}
"""The dump that becomes each text."""
GPU_DUMPS = {"raw.hlo": "*jit_{}.before_optimizations.txt", "before.hlo": "*jit_{}.*before_priority-fusion.txt",
             "after.hlo": "*jit_{}.*after_priority-fusion.before*.txt", "log.txt": "*jit_{}.priority_fusion_dump.txt"}
LOG = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "instruction_fusion=5,cpu_instruction_fusion=3", "JAX_PLATFORMS": "cpu"}
GPU_FLAGS = "--xla_gpu_autotune_level=0"
PLUGINS = ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--target", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as dump:
        passes = ".*fusion.*" if given.target else "fusion"
        flags = f"--xla_dump_to={dump} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re={passes} {GPU_FLAGS if given.target else ''}"
        os.environ |= {**LOG, "XLA_FLAGS": flags}
        sys.path.insert(0, str(Path(__file__).parent))
        import jax  # it reads the environment
        from programs import PROGRAMS

        device = gpu(given.target.read_text()) if given.target else None
        for program, arguments in PROGRAMS.items():
            folder = given.out / program.__name__
            if (folder / "before.hlo").exists():
                continue
            folder.mkdir(parents=True, exist_ok=True)
            try:
                with errors_in(folder / "vlog.txt"):
                    lowered(jax.jit(program), arguments, device).compile()
            except Exception as error:
                print(f"{program.__name__} does not compile: {error}")
                continue
            texts = GPU_DUMPS if device else {f"{text}.hlo": pattern for text, pattern in DUMPS.items()}
            if device:
                (folder / "vlog.txt").unlink()
            for text, pattern in texts.items():
                found = sorted(Path(dump).glob(pattern.format(program.__name__)))
                if found:
                    shutil.copy(found[0], folder / text)


def gpu(target: str) -> Any:
    """A device of that kind to compile for, which need not be there."""
    from jaxlib import xla_client

    plugin = next(found for found in map(importlib.util.find_spec, PLUGINS) if found is not None and found.origin is not None)
    api = xla_client.load_pjrt_plugin_dynamically("cuda", str(Path(str(plugin.origin)).parent / "xla_cuda_plugin.so"))
    return xla_client.make_c_api_device_topology(api, "", topology="1x1x1", target_config=target)._make_compile_only_devices()[0]


def lowered(function: Any, arguments: Any, device: Any) -> Any:
    """A function lowered for some arguments; for a device, if one is given, that is not there."""
    import jax

    if device is None:
        return function.lower(*arguments)
    place = jax.sharding.SingleDeviceSharding(device)
    shapes = jax.tree.map(lambda one: jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=place), arguments)
    return function.trace(*shapes).lower(lowering_platforms=("cuda",))


@contextmanager
def errors_in(path: Path) -> Iterator[None]:
    """Have all that this process writes to standard error, in C++ too, go to a file."""
    kept = os.dup(2)
    with path.open("wb") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


if __name__ == "__main__":
    main()
