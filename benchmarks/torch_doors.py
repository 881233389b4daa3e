"""One net through four doors: ``python -m benchmarks.torch_doors --frameworks PYTHON [--state DIR] [--table docs/formats/torch-doors.md]``.

Twenty nets (benchmarks/doors/nets.py) are exported as a ``.pt2`` archive, as its printed program, as TorchScript and as ONNX, by the
interpreter PYTHON, which has torch, torchvision, timm, transformers and onnxscript. The archive and its text must have the same kernels,
FLOPs, findings and numbers. The numbers of TorchScript and ONNX must be those of torch; what else differs is listed by operator. Exit
status 1: a number is wrong, the text differs from its archive, or no changed operator explains a difference.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from benchmarks.doors.comparing import FORMS, Form, look
from benchmarks.doors.nets import NETS
from benchmarks.doors.page import faults, page


def fields_of(form: Form) -> dict[str, object]:
    """A form as JSON has it."""
    return {one.name: getattr(form, one.name) for one in fields(form)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_doors", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frameworks", metavar="PYTHON", help="exports the nets that --state lacks")
    parser.add_argument("--state", default="out/doors", type=Path, metavar="DIR")
    parser.add_argument("--only", nargs="+", choices=list(NETS), default=list(NETS), metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found of each form")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the page there")
    args = parser.parse_args()
    missing = [name for name in args.only if not (args.state / name / "data.npz").exists()]
    if missing:
        if not args.frameworks:
            parser.error(f"{args.state} lacks {', '.join(missing)}: --frameworks PYTHON exports them")
        subprocess.run([args.frameworks, "-m", "benchmarks.doors.printing", args.state, *missing], check=True)
    found: dict[str, dict[str, Form]] = {}
    for name in args.only:
        found[name] = {form: look(args.state / name, form) for form in FORMS}
        print(name, *(f"{form}: {sum(one.kernels.values())} kernels, {sum(one.work.values()):,} FLOPs, {sum(one.found.values())} findings, "
                      f"error {one.error:.0e}{' ' + one.fault if one.fault else ''}{'' if one.right else ' WRONG'};"
                      for form, one in found[name].items()), flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, default=fields_of, indent=1))
    if args.table:
        args.table.write_text(page(found))
    wrong = list(faults(found))
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
