"""``irscope.api.machine``: what irscope found on this machine, for inspection and for bug reports."""
from __future__ import annotations

import os
import platform
import shutil
import stat
import subprocess
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from irscope.backends import cache, llvm_compile
from irscope.source.cores import available_threads
from irscope.version import __version__

NO_WHEEL = "not installed: only PNG without dot needs it"
NEEDED = ("click", "rich", "numpy", "llvmlite", "ml_dtypes", "graphviz")
# The vector extensions that decide how fast compiled code is; other LLVM features are omitted.
FEATURES = ("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512bw", "avx512vnni", "avx512bf16", "amx-tile", "amx-bf16",
            "neon", "sve", "dotprod")


def machine() -> dict[str, dict[str, str]]:
    """All facts, by section; every value is a string, and a failed query does not stop the others. A missing package is ``missing``.

    >>> sorted(machine())
    ['cache', 'drawing', 'irscope', 'packages', 'processor']
    """
    return {
        "irscope": {
            "version": __version__,
            "python": f"{platform.python_version()} ({sys.executable})",
            "system": f"{platform.system()} {platform.release()}",
            "installed in": str(Path(__file__).resolve().parent.parent),
        },
        "packages": {name: _version(name) for name in NEEDED},
        "processor": _processor(),
        "drawing": {"dot": _dot(), "pygraphviz": _version("pygraphviz") if _has_wheel() else NO_WHEEL},
        "cache": {"folder": _cache()},
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return f"missing (pip install {package})"


def _processor() -> dict[str, str]:
    facts = {"machine": platform.machine(), "cores": f"{available_threads()} usable of {os.cpu_count()}"}
    try:
        machine = llvm_compile.host()
        facts["name"] = machine.cpu
        facts["vectors"] = " ".join(name for name in FEATURES if name in machine.target.features) or "none that irscope knows"
        facts["llvm"] = llvm_compile.version().replace("/", ", llvmlite ")
    except Exception as error:  # a broken llvmlite is what this report must show
        facts["llvm"] = f"unusable: {error}"
    return facts


def _dot() -> str:
    path = shutil.which("dot")
    if path is None:
        return "not found: the wheel draws PNG" if _has_wheel() else "not found: PNG needs it, or pip install 'irscope[draw]'; SVG does not"
    try:
        said = subprocess.run([path, "-V"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path}, which does not run: {error}"
    return f"{path} ({(said.stderr or said.stdout).strip()})"


def _has_wheel() -> bool:
    return not _version("pygraphviz").startswith("missing")


def _cache() -> str:
    folder = cache.folder()
    if folder is None:
        return "off: nothing compiled is kept"
    if not os.path.exists(folder):
        return f"{folder} (not there yet)"
    reason = cache.distrust(folder)
    if reason:
        return f"{folder} is not used: it {reason}"
    sizes: list[int] = []
    for path in folder.rglob("*"):
        with suppress(OSError):  # another process may remove entries meanwhile
            found = path.stat()
            sizes += [found.st_size] if stat.S_ISREG(found.st_mode) else []
    writable = "" if os.access(folder, os.W_OK) else ", not writable"
    return f"{folder} ({len(sizes)} files, {sum(sizes) / 2**20:.1f} MiB{writable})"
