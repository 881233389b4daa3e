"""How many findings each lint rule has on folders of dumps: ``python benchmarks/lint_counts.py FOLDER... [--out docs/lint/findings.md]``.

Every rule is run, also those that are off by default, weighed as ``irscope lint`` weighs them; rules that tell the refusals of one compiler
are run under its policy too. The page shows errors, warnings and information by format, so that a change of a rule shows as a change of
the page; ``--show CODE`` prints what one rule finds instead, ``--times`` the CPU time of each rule.
"""
from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import irscope
from irscope.api import scalar_loops
from irscope.lint import Context, Rule, all_rules
from irscope.lint.run import lint_context
from irscope.lint.settings import POLICY, Settings
from irscope.source import Finding, UserError

SUFFIXES = (".hlo", ".txt", ".relay", ".ir")
FORMATS = {"hlo": "HLO", "torchscript": "TorchScript", "relay": "Relay"}
LARGEST = 4 << 20
"""Bytes of a dump beyond which it is left out: a few giants would take longer than all others."""
PAGE = """# What the rules find

Findings of each rule over the dumps that irscope is tested with, so that a change of a rule shows as a change of this page.
Made by `python benchmarks/lint_counts.py FOLDER... --out docs/lint/findings.md`; under policies of XLA only the rules that tell their
refusals. Every cell is errors / warnings / information.

{head}

| code | rule | on | policy | {formats} | files |
|---|---|---|---|{rules}---|"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--out", help="write the table as a page")
    parser.add_argument("--show", help="print the findings of this rule")
    parser.add_argument("--limit", type=int, default=20, help="with --show: how many")
    parser.add_argument("--policy", default="", help="with --show: under this policy")
    parser.add_argument("--times", action="store_true", help="print the CPU time of each rule")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    files = [str(path) for folder in given.folders for path in dumps(Path(folder))]
    if given.show:
        _show(files, given.show.upper(), given.policy or POLICY, given.limit)
        return
    counts: Counter[tuple[str, str, str, str]] = Counter()
    hit: Counter[tuple[str, str]] = Counter()
    sizes: Counter[str] = Counter()
    seconds: dict[str, float] = defaultdict(float)
    with ProcessPoolExecutor(given.jobs) as pool:
        for found in pool.map(_one, files, chunksize=8):
            if found is None:
                continue
            format, nodes, told, times = found
            sizes[format] += 1
            sizes[format + " operations"] += nodes
            for code, spent in times.items():
                seconds[code] += spent
            for (policy, code), severities in told.items():
                hit[code, policy] += 1
                counts.update({(code, policy, format, severity): n for severity, n in severities.items()})
    page = _page(given.folders, counts, hit, sizes)
    print(page)
    if given.times:
        print("\n".join(f"{code} {spent:8.2f} s" for code, spent in sorted(seconds.items(), key=lambda row: -row[1])))
    if given.out:
        Path(given.out).write_text(page + "\n", encoding="utf-8")


def dumps(folder: Path) -> list[Path]:
    """The files of a folder that may be dumps, in order."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    return [path for path in paths if path.suffix in SUFFIXES and path.is_file() and path.stat().st_size <= LARGEST]


def jobs() -> list[tuple[str, type[Rule]]]:
    """Every rule under irscope's policy, and those that tell another compiler's refusals under that one's."""
    told = [(POLICY, rule) for rule in all_rules() if not rule.policies or POLICY in rule.policies]
    return told + [(policy, rule) for rule in all_rules() for policy in rule.policies if policy.startswith("xla")]


def findings_of(path: str) -> tuple[str, int, list[tuple[str, Finding]], dict[str, float]] | None:
    """The format of a file, its operations, what each rule finds in it under which policy, and the time of each rule."""
    try:
        reading = irscope.load(path)
    except UserError:
        return None
    found: list[tuple[str, Finding]] = []
    times: dict[str, float] = defaultdict(float)
    for module in reading.modules:
        if not module.entry:
            continue
        contexts: dict[str, Context] = {}
        for policy, rule in jobs():
            context = contexts.setdefault(policy, Context(module, Settings(policy, loops=scalar_loops)))
            begin = time.process_time()
            found += [(policy, finding) for finding in lint_context(context, [rule])]
            times[rule.code] += time.process_time() - begin
    return reading.format, sum(len(g.nodes) for m in reading.modules for g in m.graphs.values()), found, times


Told = dict[tuple[str, str], Counter[str]]


def _one(path: str) -> tuple[str, int, Told, dict[str, float]] | None:
    try:
        found = findings_of(path)
    except Exception as error:  # a defect, which is named; the other files are counted all the same
        print(f"{path}: {type(error).__name__}: {error}", file=sys.stderr)
        return None
    if found is None:
        return None
    told: Told = {}
    for policy, finding in found[2]:
        told.setdefault((policy, finding.code), Counter())[str(finding.severity)] += 1
    return found[0], found[1], told, found[3]


def _show(files: list[str], code: str, policy: str, limit: int) -> None:
    shown = 0
    for path in files:
        for under, finding in (findings_of(path) or ("", 0, [], {}))[2]:
            if finding.code == code and under == policy:
                shown += 1
                if shown <= limit:
                    print(f"{finding.headline()}  saves {finding.saves}")
    print(f"{shown} findings of {code} under {policy}")


def _page(
    folders: list[str], counts: Counter[tuple[str, str, str, str]], hit: Counter[tuple[str, str]], sizes: Counter[str]
) -> str:
    formats = [format for format in FORMATS if sizes[format]]
    heads = [f"{FORMATS[f]}: {sizes[f]} files, {sizes[f + ' operations']} operations" for f in formats]
    names = ", ".join(f"{Path(f).resolve().parent.name}/{Path(f).resolve().name}" for f in folders)
    columns = " | ".join(FORMATS[f] for f in formats)
    lines = [PAGE.format(head=f"{'; '.join(heads)} ({names}).", formats=columns, rules="---|" * len(formats))]
    for policy, rule in sorted(jobs(), key=lambda job: (job[1].code, job[0] != POLICY, job[0])):
        cells = []
        for format in formats:
            told = [counts[rule.code, policy, format, severity] for severity in ("error", "warning", "info")]
            cells.append(" / ".join(map(str, told)) if any(told) else "")
        on = "on" if rule.default else ""
        lines.append(f"| {rule.code} | {rule.name} | {on} | {policy} | {' | '.join(cells)} | {hit[rule.code, policy] or ''} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
