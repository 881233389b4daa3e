"""One run of the linter over many files: options override settings, which override defaults."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from irscope.analysis.soundness import Use, soundness
from irscope.expand.specialise import has_open_sizes
from irscope.fusion.logs.events import FusionLog
from irscope.graph import Module, Reading
from irscope.lint.baseline import fusion_in, read_stored, unknown_to
from irscope.lint.config import Config
from irscope.lint.context import Context
from irscope.lint.demands import Demands
from irscope.lint.edges import edges_of, with_answers
from irscope.lint.evidence import Evidence
from irscope.lint.fusion import remarks, version_of
from irscope.lint.gate import check_rule
from irscope.lint.gates.fusion_regression import FusionRegression, record
from irscope.lint.parts import lint_parts
from irscope.lint.planned import Planned
from irscope.lint.report import FileReport, Report
from irscope.lint.rule import Rule, all_rules, select
from irscope.lint.run import lint_context
from irscope.lint.settings import ScalarLoops
from irscope.lint.stages import stages
from irscope.lint.suppress import Suppressor, fits_path, fits_rule
from irscope.lint.verdicts import answer, judge_by_log
from irscope.passes.translate import Translate
from irscope.source import Finding, Severity, UserError


@dataclass(slots=True)
class Options:
    """The options of the command line. ``demands`` are fields of :class:`Demands`; empty ones defer to the project's settings.

    ``fresh``: a baseline will be written, and the one that the settings name is not read. ``loops`` also examines compiled kernels.
    ``log``: a compiler's own log, from which the verdicts on edges come.
    """

    select: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    fail_on: Severity | None = None
    demands: dict[str, object] = field(default_factory=dict)
    baseline: str | None = None
    why: bool = False
    pair: tuple[str, str] | None = None
    track_fusion: bool = False
    statistics: bool = False
    rules: bool = True
    fresh: bool = False
    loops: ScalarLoops | None = None
    log: FusionLog | None = None


def _open_sizes(module: Module) -> Finding:
    """A text that leaves sizes open has no costs, and no kernels."""
    param = next((p for p in module.main().params if any(not isinstance(d, int) for d in getattr(p.type, "shape", ()))), None)
    place = param or module.main().result()
    help = f"--shape {param.name}=8,3 binds them" if param is not None else ""
    return Finding("SHL035", "open-sizes", Severity.INFO, f"sizes are open (%{place.name} is {place.type}): rules and policies need them",
                   module.source, max(0, place.loc), len(place.name) + 1, help=help, node=place.name, graph=module.entry)


def _translated(module: Module, readable: bool) -> Module:
    """The module that the compiler of its format begins with: what a translation removes costs nothing.

    It takes the place of the text: its nodes have no origin, as those that a reader makes.
    """
    if module.dialect.translate is None or not readable or not soundness(module).allows(Use.PASSES):
        return module
    made = Translate().run(module)
    for graph in made.graphs.values():
        for node in graph.nodes:
            node.origin = ()
    return made


class Session:
    """Lints files one after the other; :meth:`report` returns all findings. Raises UserError for unknown rules and missing files."""

    def __init__(self, options: Options, config: Config | None = None, today: datetime.date | None = None) -> None:
        self.options, self.config = options, config
        self._suppressor = Suppressor(config, today or datetime.date.today()) if config is not None else None
        self._files: list[FileReport] = []
        self.fusion: dict[str, dict[str, Any]] = {}
        baseline = options.baseline
        if baseline is None and not options.fresh and config is not None and "baseline" in config.top:
            baseline = config.resolve(config.top["baseline"])
        self.accepted = 0
        self._accepted: Counter[str] | None = None
        self._before: dict[str, dict[str, Any]] = {}
        if baseline is not None:
            self._accepted, document = read_stored(baseline)
            self._before = fusion_in(document, baseline)
        self._rules: dict[tuple[tuple[str, ...], tuple[str, ...]], list[type[Rule]]] = {}
        self._chosen(config.top if config is not None else {})
        for table in config.per_path.values() if config is not None else ():
            self._chosen(table)

    def add(self, file: str, reading: Reading, more: dict[str, Any] | None = None) -> FileReport:
        """Lint one file; ``more`` are settings over those of the project. Raises UserError where a demand cannot be judged."""
        table = {**self.settings_of(file), **(more or {})}
        demands = self._demands(table)
        fail_on = self.options.fail_on if self.options.fail_on is not None else table.get("fail_on", Severity.WARNING)
        settings = replace(demands.settings, loops=self.options.loops)
        modules = [module for module in reading.modules if module.entry]
        opens = [module for module in modules if module.dialect.translate is not None and has_open_sizes(module)]
        contexts = [Context(_translated(module, reading.ok), settings, reading.ok) for module in modules if module not in opens]
        rules = self._chosen(table)
        findings = [*reading.findings, *map(_open_sizes, opens)]
        findings += [finding for context in contexts for finding in lint_context(context, rules)]
        findings += [finding for module in reading.modules if module.cut is not None
                     for finding in lint_parts(module, rules, settings, reading.findings)]
        report = FileReport(file, findings, readable=reading.ok, fail_on=fail_on)
        report.skipped += [f"policies and gates did not look at {Path(file).name}: {module.cut}"
                           for module in reading.modules if module.cut is not None]
        judged = self._sound(report, contexts, demands, file)
        for context in judged:
            report.findings += self._gates(file, context, demands, len(contexts) > 1)
        report.policy = ", ".join(dict.fromkeys(version_of(context.settings.policy, context.module) for context in contexts))
        report.why = ", ".join(dict.fromkeys(context.settings.why for context in contexts if context.settings.why))
        if self.options.why and self.options.log is not None:
            for context in judged:
                edges, notes = judge_by_log(context.module, self.options.log, demands.device, self.options.pair)
                report.edges += edges_of(context, edges)
                report.remarks += notes
            report.policy, report.why = self.options.log.compiler, ""
        elif self.options.why:
            self._edges(report, judged)
            report.remarks += [remark for context in judged
                               for remark in remarks(context.module, context.settings.policy, context.settings.device)]
            if self.options.pair is None:
                report.stages = [columns for context in judged if (columns := stages(context)) is not None]
        ignored = (*self.options.ignore, *table.get("ignore", ()))
        report.findings = [f for f in report.findings if not any(fits_rule(word, f) for word in ignored)]
        report.skipped += self._silent(contexts)
        if self._suppressor is not None:
            report.findings = self._suppressor.remaining(file, report.findings, reading.modules)
        if self._accepted is not None:
            # Regressions are measured against the same file; they cannot be accepted by it.
            kept = [f for f in report.findings if f.code == FusionRegression.code]
            known = [f for f in report.findings if f.code != FusionRegression.code]
            report.findings = [*unknown_to(self._accepted, known), *kept]
            self.accepted += len(known) + len(kept) - len(report.findings)
        self._files.append(report)
        return report

    def _sound(self, report: FileReport, contexts: list[Context], demands: Demands, file: str) -> list[Context]:
        """The modules that are sound enough for policies and gates. Of the others the report says why nothing more looks at them."""
        needed = self.options.why or self.options.track_fusion or demands.exist or any(key.partition("#")[0] == self._key(file)
                                                                                     for key in self._before)
        for context in contexts:
            found = context.soundness
            policies = Use.POLICIES if needed and not found.allows(Use.POLICIES) else None
            refused = Use.RULES if not found.allows(Use.RULES) else policies
            if refused is None:
                continue
            report.skipped.append(found.refusal(refused))
            reported = {(f.offset, f.message) for f in report.findings}
            report.findings += [f for f in found.errors() if (f.offset, f.message) not in reported]
        return [context for context in contexts if context.soundness.allows(Use.POLICIES)] if needed else []

    def _edges(self, report: FileReport, contexts: list[Context]) -> None:
        """The verdicts on the edges of each module; a pair that is asked for need stand in one of them only."""
        missing: UserError | None = None
        for context in contexts:
            try:
                edges, kernels = answer(context, self.options.pair)
            except UserError as error:
                if self.options.pair is None or len(contexts) == 1:
                    raise
                missing = error
                continue
            report.edges += with_answers(context, edges_of(context, edges, kernels), self.options.pair is not None)
        if missing is not None and not report.edges:
            raise missing

    def _silent(self, contexts: list[Context]) -> list[str]:
        """Why rules that were selected one by one find nothing: they are about the kernels of other compilers."""
        wanted = {word.lower() for word in self.options.select}
        return [f"{rule.code} is about the kernels of {' and '.join(rule.policies)}, not of {context.settings.compiler}: --policy names one"
                for context in contexts for rule in all_rules()
                if rule.policies and context.settings.compiler not in rule.policies and wanted & {rule.code.lower(), rule.name}]

    def report(self) -> Report:
        """All files, and last the settings themselves if they contain an unused suppression."""
        files = list(self._files)
        if self._suppressor is not None and self.config is not None:
            leftovers = self._suppressor.leftovers()
            if leftovers:
                fail_on = self.options.fail_on if self.options.fail_on is not None else self.config.top.get("fail_on", Severity.WARNING)
                files.append(FileReport(self.config.source.name, leftovers, fail_on=fail_on))
        return Report(files, self._judge(), self.options.statistics, pair=self.options.pair)

    def _judge(self) -> str:
        """Whose word on edges the report tells; empty where none was asked."""
        if self.options.log is not None:
            return self.options.log.compiler
        edges = [edge for file in self._files for edge in file.edges]
        if edges and all(edge.verdict.recorded for edge in edges):
            return "the compiler's own record"
        return ", ".join(dict.fromkeys(file.policy for file in self._files if file.policy)) if self.options.why else ""

    @property
    def stale(self) -> int:
        """How many findings that the baseline accepts did not occur."""
        return self._accepted.total() if self._accepted is not None else 0

    def acceptable(self) -> list[Finding]:
        """What a baseline may accept: findings about models; neither wrong results nor faults of the settings."""
        return [finding for file in self._files for finding in file.findings if finding.code[:3] not in ("CHK", "CFG")]

    def settings_of(self, file: str) -> dict[str, Any]:
        """The settings that hold for a file: those of the project with those of the paths that fit, the later over the earlier."""
        if self.config is None:
            return {}
        table = dict(self.config.top)
        for pattern, more in self.config.per_path.items():
            if fits_path(pattern, file, self.config.folder):
                more = dict(more)
                if "ignore" in more:
                    more["ignore"] = (*table.get("ignore", ()), *more["ignore"])
                table.update(more)
        return table

    def _demands(self, table: dict[str, Any]) -> Demands:
        known = Demands.__dataclass_fields__
        given = {key: value for key, value in table.items() if key in known}
        if self.config is not None and str(given.get("machine", "")).endswith(".toml"):
            given["machine"] = self.config.resolve(given["machine"])
        demands = Demands().over(given).over(self.options.demands)
        demands.settings.table()
        return demands

    def _chosen(self, table: dict[str, Any]) -> list[type[Rule]]:
        if not self.options.rules:
            return []
        chosen = tuple(self.options.select) or tuple(table.get("select", ()))
        ignored = (*self.options.ignore, *table.get("ignore", ()))
        if (chosen, ignored) not in self._rules:
            for word in (*chosen, *ignored):
                if word.upper() != "ALL":
                    check_rule(word)
            # A word may mean a gate or what a reader says; those are asked for in other ways, and can only be ignored.
            words = [word for word in chosen if any(_means(word, rule) for rule in all_rules())]
            rules = select(words, ()) if words or not chosen else []
            self._rules[chosen, ignored] = [rule for rule in rules if not any(_means(word, rule) for word in ignored)]
        return self._rules[chosen, ignored]

    def _key(self, file: str) -> str:
        """The name of a file in a baseline: from the folder of the settings, so that it does not matter where the run is started."""
        path = Path(file)
        if self.config is not None and path.resolve().is_relative_to(self.config.folder):
            return path.resolve().relative_to(self.config.folder).as_posix()
        return path.as_posix()

    def _gates(self, file: str, context: Context, demands: Demands, several: bool) -> list[Finding]:
        """What the demands find. They look at the kernels that rules look at: what is called is written out where it is called."""
        module = context.module
        key = self._key(file) + (f"#{module.name}" if several else "")
        settings = context.settings
        version = version_of(settings.policy, module)
        before = self._before.get(key)
        planned = None
        if demands.plans or self.options.track_fusion or before is not None:
            planned = context.costs.planned or Planned(module, settings.policy, settings.device)
        findings = demands.judge(module, planned)
        if planned is not None and self.options.track_fusion:
            self.fusion[key] = record(planned, version)
        if planned is not None and before is not None:
            findings += FusionRegression.judge(planned, version, before)
        Evidence(context.sound).complete(findings)
        return findings


def _means(word: str, rule: type[Rule]) -> bool:
    return word.upper() == "ALL" or word.lower() == rule.name or rule.code.startswith(word.upper())
