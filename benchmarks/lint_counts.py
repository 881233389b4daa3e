"""How many findings each lint rule has on a folder of dumps: ``python benchmarks/lint_counts.py FOLDER... [--out docs/lint/findings.md]``.

Every rule is run, also those that are off by default. The table shows findings by severity, the number of files that have any, and the CPU
time that the rule took; ``--show CODE`` prints what one rule finds instead.
"""
from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import irscope
from irscope.lint import Context, Rule, all_rules
from irscope.source import UserError

PAGE = """# What the rules find

Findings of each rule over the dumps that irscope is tested with, so that a change of a rule shows as a change of this page.
Made by `python benchmarks/lint_counts.py FOLDER... --out docs/lint/findings.md`.

{head}.

| code | rule | on by default | errors | warnings | infos | files |
|---|---|---|---|---|---|---|"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--out", help="write the table as a page")
    parser.add_argument("--show", help="print the findings of this rule")
    parser.add_argument("--limit", type=int, default=20, help="with --show: how many")
    given = parser.parse_args()
    files = sorted(p for folder in given.folders for p in ([Path(folder)] if Path(folder).is_file() else Path(folder).rglob("*"))
                   if p.suffix in (".hlo", ".txt", ".relay"))
    rules = [r for r in all_rules() if given.show in (None, r.code)]
    counts: Counter[tuple[str, str]] = Counter()
    hit: Counter[str] = Counter()
    seconds: dict[str, float] = dict.fromkeys((r.code for r in rules), 0.0)
    nodes = read = shown = 0
    for path in files:
        try:
            reading = irscope.load(str(path))
        except UserError:
            continue
        read += 1
        for module in reading.modules:
            if not module.entry:
                continue
            nodes += sum(len(g.nodes) for g in module.graphs.values())
            context = Context(module)
            for rule in rules:
                begin = time.process_time()
                findings = list(rule().check(context))
                seconds[rule.code] += time.process_time() - begin
                hit[rule.code] += bool(findings)
                counts.update((rule.code, str(f.severity)) for f in findings)
                for finding in findings if given.show else ():
                    if shown < given.limit:
                        print(path.name, finding.render().splitlines()[0])
                    shown += 1
    if not given.show:
        _report(given.folders, rules, read, nodes, counts, hit, seconds, given.out)


def _report(folders: list[str], rules: list[type[Rule]], files: int, nodes: int, counts: Counter[tuple[str, str]], hit: Counter[str],
            seconds: dict[str, float], out: str | None) -> None:
    """Print the table; as a page it has no times, so that it changes only when findings do."""
    names = ", ".join(Path(f).name for f in folders)
    head = f"{files} files, {nodes} operations ({names})"
    print(head)
    lines = [PAGE.format(head=head)]
    for rule in rules:
        on, (errors, warnings, infos) = "on" if rule.default else "", (counts[rule.code, s] for s in ("error", "warning", "info"))
        print(f"{rule.code}  {rule.name:<32} {on:<3} {errors:>6} {warnings:>6} {infos:>6} {hit[rule.code]:>5} files "
              f"{seconds[rule.code]:7.2f} s")
        lines.append(f"| {rule.code} | {rule.name} | {on} | {errors} | {warnings} | {infos} | {hit[rule.code]} |")
    print(f"all rules: {sum(seconds.values()):.2f} s")
    if out:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(out).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
