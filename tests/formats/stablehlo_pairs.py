"""Pairs of files, NAME.mlir and NAME.hlo, of one program before and after jaxlib's translation: are they the same graph, with the same
findings?

    python -m tests.formats.stablehlo_pairs FOLDER
"""
from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.stablehlo_lint import findings
from irscope.api import diff, load

PAIRS = Path(__file__).parent.parent / "data" / "stablehlo" / "pairs"


def pairs_in(folder: Path) -> list[Path]:
    """The StableHLO texts of a folder that have their HLO beside them."""
    return sorted(path for path in folder.rglob("*.mlir") if path.with_suffix(".hlo").exists())


def is_same(text: Path) -> bool:
    """Whether ``irscope diff`` finds no difference between a text and its translation."""
    return diff(str(text), str(text.with_suffix(".hlo"))).same


def is_judged_alike(text: Path) -> bool:
    """Whether a text and its translation have the same findings."""
    return findings(load(text)) == findings(load(text.with_suffix(".hlo")))


def main(folder: Path) -> int:
    """Print the pairs that differ; returns the exit status."""
    found = pairs_in(folder)
    different = [text for text in found if not is_same(text)]
    unlike = [text for text in found if not is_judged_alike(text)]
    for what, texts in (("another graph", different), ("other findings", unlike)):
        for text in texts:
            print(f"{text}: {what}")
    print(f"{len(found)} pairs: {len(found) - len(different)} are the same graph, {len(found) - len(unlike)} have the same findings")
    return int(bool(different or unlike))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAIRS))
