"""``irscope.lint``: findings, gates and verdicts on edges; ``irscope.api.audit``: tables of one aspect."""
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from irscope.analysis.soundness import held_together
from irscope.api.loading import Source, name_of, read_source, whole
from irscope.api.options import InputOptions, LintOptions
from irscope.api.paths import once_stdin
from irscope.api.recorded import with_records
from irscope.api.watching import SILENT, Watcher
from irscope.expand.bind import bind_types
from irscope.fleet import compile_folder
from irscope.fleet.files import find_files, no_dump
from irscope.fusion.logs.verdicts import load_log
from irscope.graph import Module, Reading
from irscope.lazy import LazyModule
from irscope.lint.baseline import write_baseline
from irscope.lint.config import Config, find_config, read_config
from irscope.lint.demands import Demands
from irscope.lint.report import Report
from irscope.lint.reporters import reporter
from irscope.lint.rule import default_rules
from irscope.lint.session import Options, Session
from irscope.render.units import plural
from irscope.source import Finding, Severity, UserError
from irscope.source.budget import fresh_budget
from irscope.source.data_text import json_value
from irscope.source.files import STDIN, path_or_empty
from irscope.source.notebook import Viewable

if TYPE_CHECKING:
    from irscope.api import compiled_model, reports
    from irscope.fleet import peak_buffers
    from irscope.lint import audits as tables
else:
    compiled_model, tables = LazyModule("irscope.api.compiled_model"), LazyModule("irscope.lint.audits")
    reports, peak_buffers = LazyModule("irscope.api.reports"), LazyModule("irscope.fleet.peak_buffers")

DEMANDS = tuple(Demands.__dataclass_fields__)
Paths = Source | Sequence[Source]


@dataclass(slots=True)
class LintResult(Viewable):
    """What the linter found. ``report.files`` hold the findings by file, ``report.findings()`` all of them.

    ``accepted`` counts the findings that the baseline left out; ``written`` the findings that ``write_baseline`` stored. ``errors`` are
    the files of several that could not be used, with the reason.
    """

    report: Report
    accepted: int = 0
    written: int = 0
    errors: dict[str, UserError] = field(default_factory=dict)

    def __repr__(self) -> str:
        counts = Counter(str(finding.severity) for finding in self.findings)
        found = ", ".join(f"{n} {name}" for name, n in counts.items()) or "no findings"
        return f"<lint result: {plural(len(self.report.files), 'file')}, {found}>"

    @property
    def findings(self) -> list[Finding]:
        """The findings of all files."""
        return self.report.findings()

    @property
    def readable(self) -> bool:
        """Whether every file could be read whole."""
        return not self.errors and all(file.readable for file in self.report.files)

    @property
    def fails(self) -> bool:
        """Whether a finding is as severe as ``fail_on``."""
        return any(file.fails for file in self.report.files)

    def as_json(self) -> dict[str, Any]:
        """The object that ``--format json`` prints: ``irscope/lint/report.schema.json``."""
        document: dict[str, Any] = json_value(reporter("json")(self.report))
        return document


def lint(what: Paths, options: LintOptions | None = None, *, watch: Watcher = SILENT) -> LintResult:
    """Find what makes dumps slow or wrong.

    ``what`` is a dump or several; a path may be a folder, which stands for the dumps in it. Raises :class:`irscope.UserError` for options
    that exclude each other, for rules and settings that are not there, and where the only file cannot be used.

    >>> text = '''ENTRY main {
    ...   p = f32[2,3] parameter(0)
    ...   a = f32[2,3] exponential(p)
    ...   b = f32[2,3] exponential(p)
    ...   ROOT u = f32[2,3] add(a, b)
    ... }'''
    >>> [finding.code for finding in lint(text, LintOptions(isolated=True)).findings]
    ['ALG002']
    """
    options = options or LintOptions()
    session = session_of(options)
    errors = each_dump(what, options, session.add, watch)
    result = LintResult(session.report(), session.accepted, errors=errors)
    if options.write_baseline is not None:
        inputs = [path for path in map(path_or_empty, _several(what)) if path]
        write_baseline(options.write_baseline, session.acceptable(), session.fusion, inputs)
        result.written = len(session.acceptable())
    return result


def audit(what: Paths, name: str, options: InputOptions | None = None, *, oom: str | None = None,
          watch: Watcher = SILENT) -> tuple[list[tables.FileAudit], dict[str, UserError]]:
    """The tables of one audit (dtype, shape, layout, memory, parallel), and the files of several that could not be used.

    ``oom`` is the path of a log with an out-of-memory error of XLA, whose buffers are found in the dump: another table of the memory audit.
    Raises :class:`irscope.UserError` for an unknown audit, and if the only file cannot be used.

    >>> audits, _ = audit("ENTRY main { p = f32[2,2] parameter(0)\\n ROOT n = f32[2,2] negate(p) }", "dtype")
    >>> audits[0].tables[0].audit
    'dtype'
    """
    look = tables.auditor(name)
    audits: list[tables.FileAudit] = []
    if oom is not None and name != "memory":
        raise UserError("--oom belongs to --audit memory", "irscope lint DUMP --audit memory --oom LOG")
    error = reports.out_of_memory_of(oom) if oom is not None else None

    def add(file: str, reading: Reading) -> None:
        modules = [held_together(module) for module in whole(reading).modules if module.entry]
        found = [look(module) for module in modules]
        audits.append(tables.FileAudit(file, found + [peak_buffers.peak_buffers(module, error) for module in modules if error is not None]))

    errors = each_dump(what, options or InputOptions(), add, watch)
    return audits, errors


def settings(options: LintOptions) -> Config | None:
    """The settings of a run: those of the project, unless the options name others or none."""
    return None if options.isolated else read_config(options.config) if options.config is not None else find_config(".")


def session_of(options: LintOptions) -> Session:
    """A run of the linter under these options. Raises UserError for incompatible options."""
    consistent(options)
    config = settings(options)
    select = options.select
    if options.strict_relay:
        select = (*(select or [rule.code for rule in default_rules()]), "strict-relay")
    level = Severity[options.fail_on.upper()] if options.fail_on else None
    chosen = Options(list(select), list(options.ignore), level, {name: getattr(options, name) for name in DEMANDS}, options.baseline,
                    options.why, options.pair, options.track_fusion, options.statistics)
    chosen.fresh, chosen.loops = options.write_baseline is not None, scalar_loops
    if options.fusion_log is not None:
        chosen.log = load_log(options.fusion_log)
    return Session(chosen, config)


def scalar_loops(module: Module) -> list[tuple[str, tuple[str, ...], int, bool]]:
    """As :func:`irscope.api.scalar_loops`; the compiler is imported when a rule needs it."""
    return compiled_model.scalar_loops(module)


def read_bound(what: Source, options: InputOptions) -> Reading:
    """The reading of a dump, with the shapes and dtypes of the options. Raises UserError as ``bind_types`` does."""
    reading = read_source(what, options.source_format)
    if (path := path_or_empty(what)) not in ("", STDIN):
        reading = with_records(reading, path)
    if not options.shapes and not options.dtypes:
        return reading
    return replace(reading, modules=[bind_types(m, options.shapes, options.dtypes) for m in reading.modules if m.entry])


def each_dump(what: Paths, options: InputOptions, work: Callable[[str, Reading], object], watch: Watcher) -> dict[str, UserError]:
    """Read every given dump and pass it on. Returns those of several that cannot be used, with the reason."""
    sources, skipped = _sources(what, isinstance(options, LintOptions) and options.why)
    if not sources:
        raise no_dump([name_of(s) for s in _several(what)], skipped)
    errors: dict[str, UserError] = {}
    for source in watch.track(sources, "linting", len(sources)):
        name = name_of(source)
        try:
            with fresh_budget():
                work(name, read_bound(source, options))
        except UserError as error:
            if len(sources) == 1:
                raise
            watch.unusable(name, error)
            errors[name] = error
    return errors


def _several(what: Paths) -> Sequence[Source]:
    return what if isinstance(what, Sequence) and not isinstance(what, str | bytes) else [what]


def _sources(what: Paths, edges: bool) -> tuple[list[Source], list[str]]:
    """Every given dump, including those in given folders; and the files there that are not dumps. ``edges``: verdicts are wanted."""
    once_stdin(tuple(map(path_or_empty, _several(what))))
    sources: list[Source] = []
    skipped: list[str] = []
    for one in _several(what):
        path = path_or_empty(one)
        if not path:
            sources.append(one)
            continue
        found = find_files([path])
        sources += compile_folder.to_lint(found.files, path, edges) if os.path.isdir(path) else found.files
        skipped += found.skipped
    return sources, skipped


def consistent(options: LintOptions, report: str | None = None) -> None:
    """Raise UserError for incompatible options; ``report`` is the file that the report is written to."""
    if report and options.write_baseline and os.path.realpath(report) == os.path.realpath(options.write_baseline):
        raise UserError(f"--write-baseline and --output both name {report}", "give two names")
    if options.isolated and options.config is not None:
        raise UserError("--isolated and --config exclude each other", "give one of them")
    if options.where and not options.expect_dtype:
        raise UserError("--where picks the nodes of --expect-dtype", "give both; irscope show --where QUERY shows what a query picks")
    if options.fusion_log is not None and (not options.why or options.policy):
        raise UserError("--fusion-log answers --why-not-fused", "give that, and no --policy: the log says whose it is")
    if options.track_fusion and options.write_baseline is None:
        raise UserError("--track-fusion stores into a baseline", "give --write-baseline FILE too")
