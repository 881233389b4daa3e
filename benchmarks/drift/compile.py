"""Compile the model set with the jax of this interpreter: ``python benchmarks/drift/compile.py OUT``.

OUT gets a folder for each program, with ``raw.hlo`` (as jax gave it to XLA), ``before.hlo`` and ``after.hlo`` (around the fusion pass), and
``vlog.txt`` (what XLA logged meanwhile). Programs that have a folder already are left as they are.
"""
from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DUMPS = {"raw": "*jit_{}.*before_optimizations.txt", "before": "*jit_{}.*before_fusion.txt", "after": "*jit_{}.*after_fusion.before*.txt"}
"""The dump that becomes each text."""
LOG = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "instruction_fusion=5,cpu_instruction_fusion=3", "JAX_PLATFORMS": "cpu"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as dump:
        os.environ |= {**LOG, "XLA_FLAGS": f"--xla_dump_to={dump} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=fusion"}
        sys.path.insert(0, str(Path(__file__).parent))
        import jax  # it reads the environment
        from programs import PROGRAMS

        for program, arguments in PROGRAMS.items():
            folder = out / program.__name__
            if (folder / "before.hlo").exists():
                continue
            folder.mkdir(parents=True, exist_ok=True)
            try:
                with errors_in(folder / "vlog.txt"):
                    jax.jit(program).lower(*arguments).compile()
            except Exception as error:
                print(f"{program.__name__} does not compile: {error}")
                continue
            for text, pattern in DUMPS.items():
                found = sorted(Path(dump).glob(pattern.format(program.__name__)))
                if found:
                    shutil.copy(found[0], folder / f"{text}.hlo")


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
