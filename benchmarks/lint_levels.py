"""How many findings of each level ``irscope lint`` has by default, and the medians: ``python benchmarks/lint_levels.py FILE...``."""
from __future__ import annotations

import sys
from collections import Counter
from statistics import median

from irscope.api import lint
from irscope.api.options import LintOptions
from irscope.source.finding import Level


def main() -> None:
    rows = []
    print("| dump | wrong | costly | facts | rules |\n|---|---:|---:|---:|---|")
    for path in sys.argv[1:]:
        findings = lint([path], LintOptions(isolated=True)).findings
        found = Counter(finding.level for finding in findings)
        rows.append(found)
        rules = ", ".join(f"{code} {n}" for code, n in sorted(Counter(finding.code for finding in findings).items()))
        print(f"| {path} | {found[Level.WRONG]} | {found[Level.COSTLY]} | {found[Level.FACT]} | {rules} |", flush=True)
    worse = [row[Level.WRONG] + row[Level.COSTLY] for row in rows]
    print(f"\nmedian: {median(worse)} wrong or costly, {median(row[Level.FACT] for row in rows)} facts; most: {max(worse)} wrong or costly")


if __name__ == "__main__":
    main()
