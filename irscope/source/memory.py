"""How much memory this process holds, and how much there is."""
from __future__ import annotations

import os
import sys

from irscope.lazy import resource

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident() -> int:
    """Bytes of memory that this process holds now; where the system does not say, the most that it ever held, or 0."""
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
    """Bytes of memory that this machine has, or that its control group leaves to this process; None where the system does not say."""
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
