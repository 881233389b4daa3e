"""The one door to jaxlib: finds a Python that has it, and runs ``print_text.py`` there in a child process with limits.

Malformed bytecode may end jaxlib's C++ code with a failed assertion, keep it busy or make it allocate what a size in the file states.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from irscope.formats.stablehlo.bytecode.print_text import NO_JAXLIB, REFUSED
from irscope.source import UserError
from irscope.source.budget import require, tick

PYTHON = "IRSCOPE_JAX_PYTHON"
"""The environment variable that names a Python with jaxlib, where irscope's own has none."""
INSTALL = f"pip install 'irscope[jax]', or set {PYTHON} to the Python of an environment that has jax"
SCRIPT = Path(__file__).with_name("print_text.py")
SECONDS = 60
"""Processor time of the child; its wall-clock time may be three times that. GPT-2's training step (10,000 operations) takes 0.3 s."""
BASE, PER_BYTE = 4 << 30, 16
"""Addresses that the child may reserve: jaxlib's libraries take 1 GiB of them, and hexadecimal text is twice as long as its bytes."""
ENDED = (None, -9, -24)
"""The status of a child that took too long: it was ended here, or by the system (SIGKILL or SIGXCPU)."""
TURN = 0.02
"""Seconds between two looks at the budget."""
MAX_REASON = 300


class Failed(Exception):
    """jaxlib does not read the bytecode; the message says why."""


def printed(data: bytes, name: str) -> str:
    """Bytecode as text, by jaxlib. Raises Failed where it cannot read the bytecode, UserError where there is no jaxlib."""
    python = python_with_jaxlib(name)
    limits = [str(SECONDS), str(BASE + PER_BYTE * len(data))]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as errors:
        given.write(data)
        given.seek(0)
        try:
            process = subprocess.Popen([python, str(SCRIPT), *limits], stdin=given, stdout=text, stderr=errors)
        except OSError as error:
            raise UserError(f"{python}, which is to read {name}, does not run: {error.strerror or error}", INSTALL) from None
        status = _status(process)
        if status == NO_JAXLIB:
            raise UserError(f"{name} is MLIR bytecode: reading it takes jaxlib, which {python} does not have", INSTALL)
        if status == 0:
            require(text.seek(0, os.SEEK_END), name)
            return _content(text).decode("utf-8", "replace")
        if status == REFUSED:
            raise Failed(_reason(_content(errors).decode("utf-8", "replace")))
        raise Failed("jaxlib took too long" if status in ENDED else f"jaxlib crashed on it (status {status})")


def python_with_jaxlib(name: str) -> str:
    """The Python to run: the one of the environment variable, else irscope's own. Raises UserError where it has no jaxlib.

    ``name`` is the file that needs it.
    """
    chosen = os.environ.get(PYTHON)
    if chosen:
        return chosen
    if find_spec("jaxlib") is None:
        raise UserError(f"{name} is MLIR bytecode: reading it takes jaxlib, which is not installed", INSTALL)
    return sys.executable


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status of a process; None where it took too long and was ended."""
    end = time.monotonic() + 3 * SECONDS
    try:
        while time.monotonic() < end:
            try:
                return process.wait(TURN)
            except subprocess.TimeoutExpired:
                tick()
        return None
    finally:
        process.kill()
        process.wait()


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def _reason(errors: str) -> str:
    """The first line of jaxlib's messages that names an error, without the place in the bytes that it is preceded by."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    first = next((line for line in lines if "error: " in line), lines[-1] if lines else "jaxlib gives no reason")
    return first.rpartition("error: ")[2].removeprefix('"-":0:0: ')[:MAX_REASON]
