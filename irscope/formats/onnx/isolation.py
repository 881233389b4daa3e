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

MAX_SECONDS = 5
"""Processor time of the child, and a second more for each megabyte of the model (sizes of 2^40 keep it busy); its wall-clock time may be
three times that.
"""
MEMORY, GROWTH = 1 << 29, 16
"""The memory that the child may take in addition to what the process has, and how much more for each byte of the model."""
MAX_BYTES = 1 << 31
"""An answer is no longer: a protobuf message is not."""
CHUNK = 1 << 16


class Failed(Exception):
    """The computation raised an exception, crashed or took too long; the message says which."""


def in_child(compute: Callable[[], bytes], size: int = 0) -> bytes:
    """What a function returns that runs in a child process. Raises :class:`Failed`. Where a system cannot fork, it runs here.

    ``size``: the bytes of the model that it works on.
    """
    if sys.platform == "win32" or not hasattr(os, "fork"):
        try:
            return compute()
        except Exception as error:
            raise Failed(_first_line(error)) from None
    read, write = os.pipe()
    seconds = MAX_SECONDS + (size >> 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other threads: the child runs C++ alone and leaves by _exit
        child = os.fork()
    if child == 0:
        os.close(read)
        _answer(compute, write, seconds, MEMORY + GROWTH * size)
    os.close(write)
    try:
        data = _received(read, 3 * seconds)
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if data[:1] == b"R":
        return data[1:]
    raise Failed(data[1:].decode("utf-8", "replace") if data else "the package onnx crashed, or took too long")


def _answer(compute: Callable[[], bytes], write: int, seconds: int, memory: int) -> None:
    """In the child: compute, write the answer, and leave."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        _limit_memory(memory)
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


def _limit_memory(memory: int) -> None:
    """Allow the process this much more address space than it has. (C++ makes a list of 2^28 sizes for ``Split`` into so many parts.)"""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = now + memory if hard == resource.RLIM_INFINITY else min(now + memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except FileNotFoundError:  # a system without /proc
        return


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0][:300] or type(error).__name__


def _received(read: int, seconds: int) -> bytes:
    """All that the child writes, within its time."""
    parts, size, end = [], 0, time.monotonic() + seconds
    while size <= MAX_BYTES and time.monotonic() < end:
        if select.select([read], [], [], 0.5)[0]:
            part = os.read(read, CHUNK)
            if not part:
                break
            parts.append(part)
            size += len(part)
        tick()
    return b"".join(parts)
