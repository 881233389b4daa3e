"""How many findings each lint rule has on folders of dumps: ``python benchmarks/lint_counts.py NAME=FOLDER... [--out PAGE]``.

Every rule is run, also those that are off by default, under the policy that each text chooses (auto), as ``irscope lint`` does; rules that
report the refusals of one compiler are run under its policy. Each NAME is a column of the page (a folder without one is a column by
itself), HLO from before and behind XLA's passes apart, so that a change of a rule shows as a change of the page. ``make lint-counts
CORPUS=FOLDER`` has the columns that docs/lint/findings.md shows: run it when a rule, a policy or a reader has changed, and read the
difference before it is committed.
``--show CODE`` prints what one rule finds instead, ``--times`` the CPU time of each rule.
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
from irscope.fusion import AUTO
from irscope.lint import Context, Rule, all_rules
from irscope.lint.run import lint_context
from irscope.lint.settings import Settings
from irscope.source import Finding, UserError

SUFFIXES = (".hlo", ".txt", ".relay", ".ir")
FORMATS = {"hlo": "HLO", "torchscript": "TorchScript", "relay": "Relay"}
LARGEST = 4 << 20
"""Bytes of a dump beyond which it is left out: a few giants would take longer than all others."""
COMPILES = "VEC001"
LARGEST_COMPILED = 128 << 10
"""Bytes of a dump beyond which it is not compiled, which the rule on vectors asks for."""
COLUMNS = {
    "jax": ("hlo/gen_jax",),
    "keras": ("hlo/gen_keras",),
    "own": ("hlo/hand", "hlo/variants", "hlo/dump", "hlo/scale", "relay/own"),
    "fusion": ("fusion/xla_cpu", "fusion/xla_cpu_adv", "fusion/xla_gpu_h100", "fusion/xla_gpu_a100", "fusion/xla_gpu_h100_big"),
    "xla": ("hlo/xla_files",),
    "xla-tests": ("hlo/xla_tests", "hlo/newer", "hlo/old_2020", "fusion/xla_test_cases"),
    "models": ("torchscript/text", "torchscript/full"),
    "run": ("torchscript/exec", "relay/run"),
    "torch-1.13": ("torchscript/text_1.13.1",),
    "torch-tests": ("torchscript/torch_tests",),
    "special": ("torchscript/special", "torchscript/verbosity"),
    "wild": ("torchscript/wild",),
    "nets": ("relay/big",),
    "passes": ("relay/pairs",),
    "positive": ("relay/pos",),
    "doc": ("relay/doc",),
}
"""The columns of the page, and which folders of a corpus each counts; folders that are not there are passed by."""
RAW, OPTIMISED = frozenset(("pre", "raw", "before")), frozenset(("opt", "after", "after_mof", "final"))
"""Parts of the names of HLO dumps from before and from behind XLA's passes."""
PAGE = """# Findings of the rules on the test corpus

This page counts the findings of each rule on irscope's test dumps, with all rules selected, so that a change to a rule is visible as a
diff of this page. `make lint-counts CORPUS=FOLDER` writes it in ten minutes on one core: run it after a change to a rule, a policy or a
reader, and review the diff. `python benchmarks/lint_counts.py FOLDER... --show CODE` prints the findings of a rule.
`tests/lint/golden/findings.txt` lists the findings in the samples; `make test` checks them.

`2e 5w 14` are two errors, five warnings and 14 informational findings. `auto` is the policy of the compiler that a text comes from; rules
that report the refusals of certain compilers run under their policies. Rules in brackets are off by default. Dumps with faults, such as
tests of compilers, are included; texts that cannot be read are not.
"""


Told = dict[tuple[str, str], Counter[str]]
Counted = tuple[str, int, Told, dict[str, float]]
"""Of one file the format, its operations, how many findings of which severity each rule has under a policy, and the time of each rule."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--corpus", metavar="FOLDER", help="the columns of docs/lint/findings.md, from this folder")
    parser.add_argument("--out", help="write the table as a page")
    parser.add_argument("--show", help="print the findings of this rule")
    parser.add_argument("--limit", type=int, default=20, help="with --show: how many")
    parser.add_argument("--policy", default="", help="with --show: under this policy")
    parser.add_argument("--times", action="store_true", help="print the CPU time of each rule")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    words = given.folders + [f"{name}={given.corpus}/{one}" for name, known in COLUMNS.items() for one in known if given.corpus]
    files = [(str(path), name) for name, folders in _columns(words).items() for folder in folders for path in dumps(folder)]
    if given.show:
        _show([path for path, _ in files], given.show.upper(), given.policy or AUTO, given.limit)
        return
    table = Table()
    seconds: dict[str, float] = defaultdict(float)
    with ProcessPoolExecutor(given.jobs) as pool:
        for (path, name), found in zip(files, pool.map(_one, [path for path, _ in files], chunksize=8), strict=True):
            if found is not None:
                table.add(found, name + stage(path, found[0]))
                for code, spent in found[3].items():
                    seconds[code] += spent
    page = table.page()
    print(page)
    if given.times:
        print("\n".join(f"{code} {spent:8.2f} s" for code, spent in sorted(seconds.items(), key=lambda row: -row[1])))
    if given.out:
        Path(given.out).write_text(page + "\n", encoding="utf-8")


def _columns(words: list[str]) -> dict[str, list[Path]]:
    """The folders of each column; ``NAME=FOLDER`` may come several times."""
    found: dict[str, list[Path]] = {}
    for word in words:
        name, equals, folder = word.rpartition("=")
        path = Path(folder)
        found.setdefault(name if equals else path.resolve().name, []).append(path)
    return found


def stage(path: str, format: str) -> str:
    """`` raw`` or `` optimised`` for HLO whose name tells it; else the empty string."""
    parts = set(Path(path).name.split("."))
    if format != "hlo" or not parts & (RAW | OPTIMISED):
        return ""
    return " raw" if parts & RAW else " optimised"


class Table:
    """What was counted: for each format and column its files and operations, for each rule and policy its findings by severity."""

    def __init__(self) -> None:
        self.sizes: dict[tuple[str, str], list[int]] = {}
        self.counts: Counter[tuple[str, str, str, str, str]] = Counter()

    def add(self, found: Counted, column: str) -> None:
        """Count one file."""
        format, nodes, told, _ = found
        size = self.sizes.setdefault((format, column), [0, 0])
        size[0] += 1
        size[1] += nodes
        for (policy, code), severities in told.items():
            self.counts.update({(code, policy, format, column, severity): n for severity, n in severities.items()})

    def page(self) -> str:
        """The page, a table a format."""
        lines = [PAGE]
        for format, title in FORMATS.items():
            columns = [column for known, column in self.sizes if known == format]
            if columns:
                lines += [f"## {title}", "", *self._format(format, columns), ""]
        return "\n".join(lines).rstrip()

    def _format(self, format: str, columns: list[str]) -> list[str]:
        sizes = [self.sizes[format, column] for column in columns]
        lines = ["| rule | | under | " + " | ".join(columns) + " |", "|---|---|---|" + "---|" * len(columns)]
        lines.append("| | files | | " + " | ".join(str(files) for files, _ in sizes) + " |")
        lines.append("| | operations | | " + " | ".join(str(nodes) for _, nodes in sizes) + " |")
        silent: dict[str, None] = {}
        told = set()
        for policy, rule in sorted(jobs(), key=lambda job: (job[1].code, job[0] != AUTO, job[0])):
            cells = [self._cell(rule.code, policy, format, column) for column in columns]
            if any(cells):
                told.add(rule.code)
                code = rule.code if rule.default else f"({rule.code})"
                lines.append(f"| {code} | {rule.name} | {policy} | {' | '.join(cells)} |")
            else:
                silent[rule.code] = None
        silent = {code: None for code in silent if code not in told}
        return [*lines, "", f"Without a finding: {', '.join(silent) or 'none'}."]

    def _cell(self, code: str, policy: str, format: str, column: str) -> str:
        signs = {"error": "e", "warning": "w", "info": ""}
        told = {sign: self.counts[code, policy, format, column, severity] for severity, sign in signs.items()}
        return " ".join(f"{n}{sign}" for sign, n in told.items() if n)


def dumps(folder: Path) -> list[Path]:
    """The files of a folder that may be dumps, in order."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    return [path for path in paths if path.suffix in SUFFIXES and path.is_file() and path.stat().st_size <= LARGEST]


def jobs() -> list[tuple[str, type[Rule]]]:
    """Every rule under the policy that a text chooses; those that report refusals, under irscope's and XLA's policies that they are for."""
    chosen = [(AUTO, rule) for rule in all_rules() if not rule.policies]
    return chosen + [(policy, rule) for rule in all_rules() for policy in rule.policies if policy.startswith(("irscope", "xla"))]


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
            if rule.code == COMPILES and len(module.source.text) > LARGEST_COMPILED:
                continue
            context = contexts.setdefault(policy, Context(module, Settings(policy, loops=scalar_loops)))
            begin = time.process_time()
            found += [(policy, finding) for finding in lint_context(context, [rule])]
            times[rule.code] += time.process_time() - begin
    return reading.format, sum(len(g.nodes) for m in reading.modules for g in m.graphs.values()), found, times


def _one(path: str) -> Counted | None:
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


if __name__ == "__main__":
    main()
