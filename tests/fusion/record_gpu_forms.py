"""Writes the forms of ``tests/data/xla_gpu_forms.txt`` again: ``python -m tests.fusion.record_gpu_forms``. Read the difference."""
from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

from irscope.api import load
from irscope.fusion.canonicalise import canonicalise
from irscope.fusion.canonicalise.computation import HloComputation
from irscope.fusion.canonicalise.pipeline import run_gpu
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.graph import Node
from tests.canonical_text import canonical
from tests.fusion.test_canonicalise_forms import VARIANTS
from tests.fusion.test_canonicalise_rules import CASES

FILE = Path(__file__).parent.parent / "data" / "xla_gpu_forms.txt"
PROGRAM = "\n=== "


def recorded() -> Iterator[tuple[str, str, str]]:
    """The name, the form and the text (empty: another file has it) of each program."""
    for part in FILE.read_text().split(PROGRAM)[1:]:
        head, text = part.split("\n", 1)
        name, form = head.split(": ", 1)
        yield name, form, text.strip()


def form_on_gpu(name: str, text: str) -> str:
    """The form of a program now."""
    known = CASES[name][1] if name in CASES else VARIANTS[name][1] if name in VARIANTS else text
    module = load(known).module()

    def rewrite(entry: HloComputation, kept: Container[Node]) -> None:
        run_gpu(entry, DEVICES["h100"], kept)
    return canonical(canonicalise(module, rewrite).module)


def main() -> None:
    """Write the file."""
    head = FILE.read_text().split(PROGRAM)[0]
    FILE.write_text(PROGRAM.join([head, *(f"{name}: {form_on_gpu(name, text)}\n" + (f"{text}\n" if text else "") for name, _, text in recorded())]))


if __name__ == "__main__":
    main()
