"""Do ``lint`` and ``--why-not-fused`` agree? ``python benchmarks/lint_agreement.py FOLDER... [--policies auto,irscope] [--largest KIB]``.

Runs every rule on every dump of the folders, and asks for the verdicts on the edges of the same text under the same policy. Each verdict
that a finding states, and each refusal that rules can report, must be among them: on the same two operators, fused as far, by the same
rule, with the same reason. Prints the others; the exit status is 1 where there are any.
"""
from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import irscope
from irscope.analysis.soundness import Use
from irscope.analysis.values import written
from irscope.expand.specialise import has_open_sizes
from irscope.fusion import AUTO, EdgeVerdict
from irscope.graph import Node, Reading
from irscope.lint import Context, all_rules
from irscope.lint.findings import RuleFinding
from irscope.lint.run import lint_context
from irscope.lint.settings import Settings
from irscope.lint.unfused import unfused_edges
from irscope.lint.verdicts import answer
from irscope.source import UserError

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Stated:
    """What lint states of an edge between two operators of the text; ``by`` is the rule that states it, or may."""

    by: str
    pair: Pair
    verdict: EdgeVerdict

    def agrees(self, verdicts: Iterable[EdgeVerdict]) -> bool:
        """Whether one of the verdicts on that edge says the same."""
        mine = self.verdict
        return any((other.fused, other.rule, other.reason) == (mine.fused, mine.rule, mine.reason) for other in verdicts)

    def __str__(self) -> str:
        return f"{self.by} on %{self.pair[0]} -> %{self.pair[1]}: fused {self.verdict.fused} [{self.verdict.rule}]"


def stated(context: Context) -> Iterator[Stated]:
    """The verdicts that the findings of all rules state, and the refusals that rules can report, each edge in the names of the text."""
    for finding in lint_context(context, all_rules()):
        for verdict in finding.verdicts if isinstance(finding, RuleFinding) else ():
            yield Stated(finding.code, _pair(verdict.producer, verdict.consumer), verdict)
    for edge in unfused_edges(context.sound.inner):
        yield Stated("a refusal", _pair(edge.producer, edge.consumer), edge.verdict)


def _pair(producer: Node, consumer: Node) -> Pair:
    return written(producer).name, written(consumer).name


def disagreements(reading: Reading, policy: str = AUTO) -> tuple[int, list[str]]:
    """How many verdicts lint states of the modules of a text, and in which ``--why-not-fused`` disagrees."""
    count, found = 0, []
    for module in reading.modules:
        # What lint itself leaves alone: text without an entry, and text for translation of which sizes are open.
        judged = module.entry and not (module.dialect.translate is not None and has_open_sizes(module))
        context = Context(module, Settings(policy), reading.ok) if judged else None
        if context is None or not context.soundness.allows(Use.POLICIES):
            continue
        said = list(stated(context))
        try:
            verdicts = answer(context)[0]
        except UserError as error:
            if said:
                found.append(f"lint states {len(said)} verdicts, --why-not-fused refuses: {error.message}")
            continue
        table: dict[Pair, list[EdgeVerdict]] = defaultdict(list)
        for verdict in verdicts:
            table[verdict.names].append(verdict)
        count += len(said)
        for one in said:
            if not one.agrees(table[one.pair]):
                others = ", ".join(f"{other.fused} [{other.rule}]" for other in table[one.pair])
                found.append(f"{one}; --why-not-fused: {others or 'no such edge'}")
    return count, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--policies", default=AUTO)
    parser.add_argument("--largest", type=int, default=1024, metavar="KIB", help="larger dumps are left out")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    for folder in map(Path, given.folders):
        for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            if not path.is_file() or path.stat().st_size > given.largest << 10:
                continue
            try:
                reading = irscope.load(path)
            except UserError:
                continue
            counts["files"] += 1
            for policy in given.policies.split(","):
                n, found = disagreements(reading, policy)
                counts["verdicts"] += n
                counts["disagreements"] += len(found)
                for line in found:
                    print(f"{path} under {policy}: {line}", flush=True)
    print(f"{counts['files']} files, {counts['verdicts']} verdicts, {counts['disagreements']} disagreements")
    return int(counts["disagreements"] > 0)


if __name__ == "__main__":
    sys.exit(main())
