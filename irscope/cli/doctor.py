"""``irscope doctor``: what irscope found on this machine, for a look and for a bug report."""
from __future__ import annotations

import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import click

from irscope.cli.errors import FINDINGS, wants_colour
from irscope.version import __version__

NEEDED = ("click", "rich", "numpy", "llvmlite", "ml_dtypes", "graphviz")
# The vector units that decide how fast compiled code is; whatever else LLVM names is left out.
FEATURES = ("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512bw", "avx512vnni", "avx512bf16", "amx-tile", "amx-bf16",
            "neon", "sve", "dotprod")


@click.command()
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to print.", show_default=True)
def command(format_: str) -> int:
    """Tell what irscope found on this machine: versions, processor, tools, terminal.

    Exit status 1 when something that irscope needs is missing.
    """
    facts = look()
    if format_ == "json":
        click.echo(json.dumps(facts, indent=2))
    else:
        for section, rows in facts.items():
            click.echo(f"{section}")
            for key, value in rows.items():
                click.echo(f"  {key:<14} {value}")
    return FINDINGS if any(str(value).startswith("missing") for value in facts["packages"].values()) else 0


def look() -> dict[str, dict[str, str]]:
    """All facts, by section; every value is a text, and nothing that fails ends the tour."""
    return {
        "irscope": {
            "version": __version__,
            "python": f"{platform.python_version()} ({sys.executable})",
            "system": f"{platform.system()} {platform.release()}",
            "installed in": str(Path(__file__).resolve().parent.parent),
        },
        "packages": {name: _version(name) for name in NEEDED},
        "processor": _processor(),
        "drawing": {"dot": _dot(), "pygraphviz": _wheel()},
        "cache": {"folder": _cache()},
        "terminal": {
            "stdout": "terminal" if sys.stdout.isatty() else "not a terminal",
            "colour": "yes" if wants_colour(sys.stdout) else "no",
            "encoding": str(sys.stdout.encoding),
            "size": "x".join(map(str, _size())),
        },
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return f"missing (pip install {package})"


def _processor() -> dict[str, str]:
    from irscope.backends.pool import available_threads

    facts = {"machine": platform.machine(), "cores": f"{available_threads()} usable of {os.cpu_count()}"}
    try:
        from irscope.backends import llvm_compile

        machine = llvm_compile.host()
        facts["name"] = machine.cpu
        facts["vectors"] = " ".join(name for name in FEATURES if name in machine.target.features) or "none that irscope knows"
        facts["llvm"] = llvm_compile.version().replace("/", ", llvmlite ")
    except Exception as error:  # a broken llvmlite is what a doctor is asked about
        facts["llvm"] = f"unusable: {error}"
    return facts


def _dot() -> str:
    import shutil
    import subprocess

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


def _wheel() -> str:
    return _version("pygraphviz") if _has_wheel() else "not installed: only PNG without dot needs it"


def _cache() -> str:
    from irscope.backends import cache

    folder = cache.folder()
    if folder is None:
        return "off: nothing compiled is kept"
    if not folder.exists():
        return f"{folder} (not there yet)"
    reason = cache.distrust(folder)
    if reason:
        return f"{folder} is not used: it {reason}"
    files = [file for file in folder.rglob("*") if file.is_file()]
    writable = "" if os.access(folder, os.W_OK) else ", not writable"
    return f"{folder} ({len(files)} files, {sum(file.stat().st_size for file in files) / 2**20:.1f} MiB{writable})"


def _size() -> tuple[int, int]:
    import shutil

    size = shutil.get_terminal_size()
    return size.columns, size.lines
