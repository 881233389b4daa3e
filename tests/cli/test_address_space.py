"""irscope works where address space is limited, as on clusters with a limit of virtual memory."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

resource = pytest.importorskip("resource", reason="limits of address space are those of POSIX")
LIMIT = 4_000_000 << 10
"""``ulimit -v 4000000``."""


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


@pytest.mark.parametrize("words", [
    ("show", "{}/transformer.opt.hlo"),
    ("lint", "{}/transformer.opt.hlo", "--exit-zero"),
    ("stats", "{}"),
    ("compile-and-run", "{}/mlp.opt.hlo", "--check", "--no-cache", "--threads", "2"),
])
def test_commands_work_in_four_gigabytes_of_address_space(samples: Path, words: tuple[str, ...]) -> None:
    told = subprocess.run([sys.executable, "-m", "irscope", *(word.format(samples) for word in words)], capture_output=True, text=True,
                          preexec_fn=limited, check=False)
    assert told.returncode == 0, told.stderr
