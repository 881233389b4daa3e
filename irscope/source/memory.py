"""The memory of this process, and of the machine."""
from __future__ import annotations

import os
import sys

from irscope.lazy import resource

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident() -> int:
    """The resident memory of this process in bytes; where the system does not report it, the peak, or 0."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        pass
    try:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    except ImportError:  # Windows
        return 0


def machine_memory() -> int | None:
    """The memory of this machine in bytes, or the limit of the control group; None where the system does not report it."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * _PAGE
    except (AttributeError, ValueError, OSError):
        return None
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            granted = file.read().strip()
        return min(found, int(granted)) if granted != "max" else found
    except (OSError, ValueError):
        return found
