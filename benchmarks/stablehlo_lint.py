"""Do StableHLO texts have the findings of the HLO that jaxlib makes of them? ``python benchmarks/stablehlo_lint.py FOLDER [PATTERN]``.

FOLDER holds ``manifest.json`` (one object a text: ``file``, ``class``, ``reference``) and ``reference.jsonl.gz`` (``key`` and ``hlo``).
Texts of class ``exact`` are compared, those whose name the pattern fits. Prints what only one of both has; the exit status is 1 where
there is any.

What is compared of each finding is its rule, its severity, its message, and the operators and types of the nodes that it is about. Names of
nodes, layouts and places are left out, since each text has its own, and so are tuples: jaxlib changes the state of loops. Source lines and
scopes are set aside on both sides: findings of one line are reported as one, and only the texts printed with ``debug_info=True`` have
lines.
"""
from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

from irscope.api import LintOptions, lint, load  # noqa: E402
from irscope.graph import NoProvenance, Reading  # noqa: E402
from irscope.source import Finding  # noqa: E402

NAME = re.compile(r"%[\w.$#\-]+")
LAYOUT = re.compile(r"(?<=\])\{[^}]*\}")
Key = tuple[str, str, str, tuple[tuple[str, str], ...]]


def findings(reading: Reading) -> Counter[Key]:
    """The findings of a text, without what names and places add to them."""
    for module in reading.modules:
        module.provenance = NoProvenance()
    return Counter(map(key, lint(reading, LintOptions(isolated=True)).findings))


def key(finding: Finding) -> Key:
    """What two texts of one program have in common of a finding."""
    about = sorted((step.op, "(...)" if step.type.startswith("(") else LAYOUT.sub("", step.type)) for step in finding.path)
    return finding.code, str(finding.severity), LAYOUT.sub("", NAME.sub("%", finding.message)), tuple(about)


def references(folder: Path) -> dict[str, str]:
    """The HLO texts of a folder, by key."""
    with gzip.open(folder / "reference.jsonl.gz", "rt") as lines:
        return {record["key"]: record["hlo"] for record in map(json.loads, lines)}


def main(folder: Path, pattern: str = "") -> int:
    """Compare the texts of a folder; returns the exit status."""
    texts = references(folder)
    known: dict[str, Counter[Key]] = {}
    count = unlike = 0
    for record in json.loads((folder / "manifest.json").read_text()):
        file, wanted = record["file"], record.get("reference")
        if record.get("class") != "exact" or not texts.get(wanted) or not re.search(pattern, file) or ".mlirbc" in file:
            continue
        if wanted not in known:
            known[wanted] = findings(load(texts[wanted]))
        mine, theirs = findings(load(folder / file)), known[wanted]
        count, unlike = count + 1, unlike + (mine != theirs)
        for side, only in (("StableHLO", mine - theirs), ("HLO", theirs - mine)):
            for what, times in only.items():
                print(f"{file}: only {side}, {times} x {what}", flush=True)
    print(f"{count - unlike} of {count} texts have the findings of their HLO")
    return int(unlike > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:3]))
