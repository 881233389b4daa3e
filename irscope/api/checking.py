"""``irscope.check``: the models that a project's settings name, linted against their budgets and run against their results."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from typing import TYPE_CHECKING, Any

from irscope.api.array_files import Files
from irscope.api.linting import scalar_loops
from irscope.api.loading import load
from irscope.api.options import CheckOptions
from irscope.api.watching import SILENT, Watcher
from irscope.graph import Module, Reading
from irscope.lazy import Array, LazyModule
from irscope.lint.baseline import write_baseline
from irscope.lint.config import Config, find_config, read_config
from irscope.lint.demands import Demands
from irscope.lint.gates.project import ResultsDiffer, UnusableModel
from irscope.lint.report import FileReport, Report
from irscope.lint.session import Options, Session
from irscope.source import Finding, SourceText, UserError
from irscope.source.arrays import read_arrays
from irscope.source.budget import fresh_budget
from irscope.source.data_text import whole_number

if TYPE_CHECKING:
    from irscope.api import compiling
    from irscope.backends import arguments, comparison
else:
    compiling = LazyModule("irscope.api.compiling")
    arguments, comparison = LazyModule("irscope.backends.arguments"), LazyModule("irscope.backends.comparison")

EXAMPLE = '[tool.irscope.check]\nmodels = ["exports/*.hlo"]\nmax-kernels = 12'


@dataclass(slots=True)
class CheckResult:
    """The models of a project compared with the demands of its settings.

    ``report`` has the findings by file, ``models`` the reports of the models alone, in the order of the settings. ``baseline`` is the
    file of accepted findings; ``accepted`` counts the findings that it hides, ``stale`` its entries without a finding. ``written`` and
    ``measured`` count the findings and models that ``write_baseline`` stored (None: nothing was stored).
    """

    config: Config
    report: Report
    models: list[FileReport] = field(default_factory=list)
    baseline: str | None = None
    accepted: int = 0
    stale: int = 0
    written: int | None = None
    measured: int = 0

    @property
    def failed(self) -> list[str]:
        """The models that break a demand, or cannot be checked."""
        return [model.file for model in self.models if model.fails or not model.readable]

    @property
    def readable(self) -> bool:
        """Whether every model could be read."""
        return all(file.readable for file in self.report.files)

    @property
    def fails(self) -> bool:
        """Whether a demand is broken."""
        return any(file.fails for file in self.report.files)


def check(path: str | os.PathLike[str] = ".", options: CheckOptions | None = None, *, watch: Watcher = SILENT) -> CheckResult:
    """Check every model that the settings of a project name. The search for the settings begins at ``path``.

    A model that cannot be read is a finding. Raises :class:`irscope.UserError` if there are no settings, or none for this check.

    >>> check("/")
    Traceback (most recent call last):
    ...
    irscope.source.errors.UserError: there is no [tool.irscope.check] to run
    """
    options, path = options or CheckOptions(), os.fspath(path)
    if not os.path.exists(path):
        raise UserError(f"{path}: no such file or folder")
    config = read_config(options.config) if options.config is not None else find_config(path)
    if config is None or config.check is None:
        where = f"{config.source.name} has" if config is not None else "there is"
        raise UserError(f"{where} no [tool.irscope.check] to run", f"write into pyproject.toml:\n{EXAMPLE}")
    table = config.check
    baseline = config.resolve(table["baseline"]) if "baseline" in table else None
    if options.write_baseline and baseline is None:
        raise UserError("the settings name no baseline", 'baseline = "irscope-baseline.json" in [tool.irscope.check] does')
    if baseline is not None and not options.write_baseline and not os.path.exists(baseline):
        raise UserError(f"{baseline}: there is no such baseline", "irscope check --write-baseline makes it")
    chosen = Options(statistics=options.statistics, track_fusion=options.write_baseline, fresh=options.write_baseline)
    chosen.baseline = None if options.write_baseline else baseline
    chosen.rules, chosen.loops = table.get("lint", True), scalar_loops
    session = Session(chosen, config)
    models = list(_models(config, table))
    reports = [_one(session, config, file, own) for file, own in watch.track(models, "checking", len(models))]
    report = session.report()
    # In the order of the settings, unreadable models included; faults of the settings themselves come last.
    report.files = reports + [file for file in report.files if file not in reports]
    result = CheckResult(config, report, reports, baseline, session.accepted, session.stale)
    if options.write_baseline and baseline is not None:
        write_baseline(baseline, session.acceptable(), session.fusion)
        result.written, result.measured = len(session.acceptable()), len(session.fusion)
    return result


def _models(config: Config, check: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each model once, with its settings: those of ``check``, overridden by the ``[[check.model]]`` tables whose path matches."""
    common = {key: value for key, value in check.items() if key not in ("models", "model", "lint", "baseline")}
    tables: dict[str, dict[str, Any]] = {}
    for pattern in check.get("models", ()):
        for file in _matching(config, pattern):
            tables.setdefault(file, dict(common))
    for model in check["model"]:
        for file in _matching(config, model["path"]):
            tables.setdefault(file, dict(common)).update({key: value for key, value in model.items() if key != "path"})
    if not tables:
        raise UserError(f"{config.source.name}: [tool.irscope.check] names no models", EXAMPLE)
    yield from tables.items()


def _matching(config: Config, pattern: str) -> list[str]:
    """The files of a pattern, as a user in the current folder would write them; the pattern itself where nothing fits."""
    found = sorted(path for path in glob(config.resolve(pattern), recursive=True) if os.path.isfile(path))
    return [shown(path) for path in found] or [shown(config.resolve(pattern))]


def shown(path: str) -> str:
    """A path as a user in the current folder would write it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _one(session: Session, config: Config, file: str, table: dict[str, Any]) -> FileReport:
    """Check one model. A model that cannot be checked is a finding, so that the others are still reported."""
    try:
        if not os.path.exists(file):
            raise UserError(f"no file fits {file}", "write the dump before the check runs")
        with fresh_budget():
            reading = load(file)
            report = session.add(file, reading, {key: value for key, value in table.items() if key in Demands.__dataclass_fields__})
            if report.readable and (table.get("expect") or table.get("previous")):
                report.findings += _results(reading, config, table)
            return report
    except UserError as error:
        findings = list(error.findings)
        source = SourceText(file, "")
        findings.append(Finding(UnusableModel.code, UnusableModel.name, UnusableModel.severity, error.message, source, help=error.help))
        return FileReport(file, findings, readable=False)


def _results(reading: Reading, config: Config, table: dict[str, Any]) -> list[Finding]:
    """The results of the model compared with stored outputs and with the earlier version."""

    def arrays(key: str) -> Mapping[str, Array]:
        return read_arrays(config.resolve(table[key])) if table.get(key) else {}

    got, taken = _run(reading, table, Files(arrays("inputs"), arrays("weights"), arrays("constants")))
    findings = []
    if table.get("expect"):
        stored = arrays("expect")
        expected = [stored.get(f"out{i}") for i in range(len(got))]
        if all(one is None for one in expected):
            raise UserError(f"{table['expect']} holds none of the outputs", "they are named out0, out1, ...")
        findings += _compared(reading.module(), got, expected, table["expect"], table)
    if table.get("previous"):
        before = load(config.resolve(table["previous"]))
        earlier, _ = _run(before, table, Files({}, arrays("weights"), arrays("constants")), taken)
        findings += _compared(reading.module(), got, earlier, table["previous"], table)
    return findings


def _run(reading: Reading, table: dict[str, Any], arrays: Files, taken: Sequence[Array] = ()) -> tuple[list[Array], list[Array]]:
    """The outputs of a model, and the arrays that it ran on: ``taken`` from an earlier run, or else the given ``arrays``; those that are
    missing are drawn. Raises UserError where the shapes or element types of ``taken`` do not fit."""
    model = compiling.compile(reading, weights=arrays.weights, shapes=_shapes(table), constants=arrays.constants)
    given = arguments.by_name(arrays.inputs, model.inputs, table.get("inputs", "inputs"))
    arguments.missing_near(given, model.inputs, arrays.inputs)
    if taken and [(array.shape, array.dtype) for array in taken] != [(port.shape, port.dtype.numpy()) for port in model.inputs]:
        raise UserError(f"{reading.source.name} takes other inputs than the model that it is compared with")
    found = dict(enumerate(taken)) if taken else given.arrays
    found = {**arguments.drawn(model.inputs, [n for n in range(len(model.inputs)) if n not in found], table.get("seed", 0)), **found}
    used = [found[n] for n in range(len(model.inputs))]
    return model(*used), used


def _shapes(table: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """``shapes = {x = [8, 3], y = "8,3"}``."""
    bound = {}
    for name, shape in table.get("shapes", {}).items():
        parts = shape.split(",") if isinstance(shape, str) else shape
        try:
            bound[name] = tuple(whole_number(part) for part in parts if str(part).strip())
        except (TypeError, ValueError):
            help = 'shapes are written x = [8, 3, 224] or x = "8,3,224"'
            raise UserError(f"the shape of {name} in the settings is {shape!r}", help) from None
    return bound


def _compared(module: Module, got: list[Array], expected: Sequence[Array | None], other: str, table: dict[str, Any]) -> list[Finding]:
    if len(expected) != len(got):
        return [ResultsDiffer.broken(module, f"it gives {len(got)} outputs, {other} has {len(expected)}")]
    results = comparison.compare_all(got, expected, table.get("rtol"), table.get("atol"), flushed=module.flushes_denormals)
    faults = [result for result in results if result.fault]
    return [ResultsDiffer.broken(module, f"{result.name} is not that of {other}: {result.fault}") for result in faults]
