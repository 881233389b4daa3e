"""What irscope prints follows from its input alone: sets have another order in each process, and no output may show it."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "samples"
EXPORTED = Path(__file__).parents[1] / "data" / "export"
PRINT_ALL = """
import sys
from irscope.cli.errors import run
from irscope.cli.main import group

for path in sys.argv[1:]:
    for words in (["show", path, "--all"], ["show", path, "--format", "json"], ["lint", path, "--all", "--exit-zero", "--isolated"], ["opt", path, "--to", "hlo"]):
        print(path, words, run(group, words, "irscope"), flush=True)
"""


def test_outputs_do_not_depend_on_the_order_of_sets() -> None:
    files = [path for path in sorted([*SAMPLES.iterdir(), *EXPORTED.iterdir()]) if path.suffix in (".hlo", ".txt", ".relay", ".mlir", ".pt2")]
    printed = []
    for seed in ("1", "2"):
        done = subprocess.run([sys.executable, "-c", PRINT_ALL, *map(str, files)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": "160", "IRSCOPE_NO_PROGRESS": "1"})
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout + done.stderr)
    assert len(files) > 10 and printed[0].splitlines() == printed[1].splitlines()
