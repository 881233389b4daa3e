"""Ctrl-C while LLVM compiles or other native code runs: Python handles the signal only after the native code returns, which may be late.

Programs that irscope compiled are interrupted by ``backends/stopping.py``, from the API too."""
from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from irscope.cli.errors import INTERRUPTED

# How long Python's own way, KeyboardInterrupt, may take before the process is ended without it.
PATIENCE = 0.5
CLEAN_LINE = "\r\x1b[2K\x1b[?25h"
"""Wipes the line of a progress bar and shows the cursor that it hid."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Within, Ctrl-C ends the process with status 130 even where no line of Python is reached any more.

    The signal itself wakes another thread, through a pipe. Where the usual KeyboardInterrupt leaves this block in time, nothing else
    happens; where it does not, the thread ends the process.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader,), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        watcher.join()


def _watch(reader: int) -> None:
    """Wait for the signal, or for the block to end, which closes the pipe."""
    try:
        while (arrived := os.read(reader, 1)) and arrived[0] != signal.SIGINT:
            continue
        if arrived and not select.select([reader], [], [], PATIENCE)[0]:
            if sys.stderr.isatty():
                os.write(2, CLEAN_LINE.encode())
            os.write(2, b"interrupted\n")
            os._exit(INTERRUPTED)
    finally:
        os.close(reader)
