"""Runs C++ code of the package ``onnx`` in a forked child: it crashes on some malformed models, and a crash must not end irscope.

(LayerNormalization with an axis out of range ends the process in onnx 1.23.)
"""
from __future__ import annotations

import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable

from irscope.source.budget import tick

if sys.platform != "win32":
    import resource

MAX_SECONDS = 20
"""Processor time of the child (a model with sizes of 2^40 keeps it busy); its wall-clock time may be three times that."""
MAX_BYTES = 1 << 31
"""An answer is no longer: a protobuf message is not."""
CHUNK = 1 << 16


class Failed(Exception):
    """The computation raised an exception, crashed or took too long; the message says which."""


def in_child(compute: Callable[[], bytes]) -> bytes:
    """What a function returns that runs in a child process. Raises :class:`Failed`. Where a system cannot fork, it runs here."""
    if sys.platform == "win32" or not hasattr(os, "fork"):
        try:
            return compute()
        except Exception as error:
            raise Failed(_first_line(error)) from None
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other threads: the child runs C++ alone and leaves by _exit
        child = os.fork()
    if child == 0:
        os.close(read)
        _answer(compute, write)
    os.close(write)
    try:
        data = _received(read)
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if data[:1] == b"R":
        return data[1:]
    raise Failed(data[1:].decode("utf-8", "replace") if data else "the package onnx crashed, or took too long")


def _answer(compute: Callable[[], bytes], write: int) -> None:
    """In the child: compute, write the answer, and leave."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a failed assertion of C++ prints itself
        try:
            data = b"R" + compute()
        except Exception as error:
            data = b"E" + _first_line(error).encode()
        view = memoryview(data)
        while view:
            view = view[os.write(write, view):]
    finally:
        os._exit(0)


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0][:300] or type(error).__name__


def _received(read: int) -> bytes:
    """All that the child writes, within its time."""
    parts, size, end = [], 0, time.monotonic() + 3 * MAX_SECONDS
    while size <= MAX_BYTES and time.monotonic() < end:
        if select.select([read], [], [], 0.5)[0]:
            part = os.read(read, CHUNK)
            if not part:
                break
            parts.append(part)
            size += len(part)
        tick()
    return b"".join(parts)
