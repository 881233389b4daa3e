"""Ctrl-C ends irscope, also in the middle of a compiled loop that has no end."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from irscope.cli.interrupt import interruptible

FOREVER = """
HloModule forever
condition { p = (s32[]) parameter(0)  ROOT t = pred[] constant(true) }
body { p = (s32[]) parameter(0)  x = s32[] get-tuple-element(p), index=0  o = s32[] constant(1)  y = s32[] add(x, o)  ROOT t = (s32[]) tuple(y) }
ENTRY e { z = s32[] parameter(0)  i = (s32[]) tuple(z)  ROOT w = (s32[]) while(i), condition=condition, body=body }
"""


def test_a_compiled_loop_without_end_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "forever.hlo").write_text(FOREVER)
    repo = Path(__file__).resolve().parents[2]
    process = subprocess.Popen([sys.executable, "-m", "irscope", "compile-and-run", str(tmp_path / "forever.hlo")],
                               stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(repo)})
    try:
        time.sleep(2.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()  # a loop without end must not outlive the test
    assert process.returncode == 130
    assert said.endswith("interrupted\n")


def test_python_is_interrupted_in_its_own_way() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


def test_a_block_that_ends_leaves_nothing_behind() -> None:
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    with interruptible():
        pass
    assert signal.set_wakeup_fd(before) == before
