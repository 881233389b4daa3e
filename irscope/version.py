"""The version of irscope."""
from __future__ import annotations

import os

__version__ = "0.1.0"


def source_state() -> str:
    """The version, and size and time of change of every source file: it differs where irscope itself differs, in a checkout too."""
    root = os.path.dirname(os.path.abspath(__file__))
    rows, folders = [__version__], [root]
    while folders:
        for entry in sorted(os.scandir(folders.pop()), key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.name.endswith(".py"):
                found = entry.stat()
                rows.append(f"{entry.path[len(root):]} {found.st_size} {found.st_mtime_ns}")
    return "\n".join(rows)
