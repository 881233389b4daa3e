"""Exports nets whose names and folders come a line at a time: imports the frameworks once, and gives every net a process of its own.

Runs in the frameworks' interpreter, and answers each line with one of JSON: ``{}``, or why the framework could not.
"""
from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from benchmarks.zoo.imports import import_torch_libraries
from benchmarks.zoo.nets import NETS


def main() -> None:
    for line in sys.stdin:
        name, folder = json.loads(line)
        if NETS[name].package != "keras":  # jax starts threads, and is imported behind the fork
            import_torch_libraries()
        child = os.fork()
        if not child:
            _export(name, Path(folder))
        status = os.waitpid(child, 0)[1]
        report = Path(folder) / "export.json"
        print(report.read_text() if report.exists() else json.dumps({"error": f"the export ended with status {status}"}), flush=True)


def _export(name: str, folder: Path) -> None:
    report: dict[str, str] = {}
    try:
        if NETS[name].package == "keras":
            from benchmarks.zoo.export_keras import export
        else:
            from benchmarks.zoo.export_torch import export
        export(NETS[name], folder)
    except Exception as error:  # whatever a framework raises is the answer
        traceback.print_exc()
        report["error"] = f"{type(error).__name__}: {error}"
    (folder / "export.json").write_text(json.dumps(report))
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
