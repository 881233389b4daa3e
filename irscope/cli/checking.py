"""Runs ``irscope check``: finds the models, lints them against their budgets, compares what they compute, and tells all in one report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from typing import TYPE_CHECKING, Any

import click

from irscope.api import scalar_loops
from irscope.cli.errors import FINDINGS, OK, USAGE
from irscope.cli.input import load
from irscope.cli.lint import format_of, print_report
from irscope.cli.progress import track
from irscope.lazy import Array
from irscope.lint.baseline import write_baseline
from irscope.lint.config import Config, find_config, read_config
from irscope.lint.demands import Demands
from irscope.lint.gates.project import ResultsDiffer, UnusableModel
from irscope.lint.report import FileReport
from irscope.lint.session import Options, Session
from irscope.source import Finding, SourceText, UserError
from irscope.source.budget import fresh_budget

if TYPE_CHECKING:

    from irscope.graph import Module, Reading


EXAMPLE = '[tool.irscope.check]\nmodels = ["exports/*.hlo"]\nmax-kernels = 12'


@dataclass(frozen=True, slots=True)
class Request:
    """The command line."""

    path: str
    format_: str | None
    output: str | None
    config_file: str | None
    write_baseline: bool
    exit_zero: bool
    statistics: bool
    all_: bool = False


def run(request: Request) -> int:
    """Check every model; the status is 1 when a demand is broken, 2 when a model could not be looked at."""
    if not os.path.exists(request.path):
        raise UserError(f"{request.path}: no such file or folder")
    config = read_config(request.config_file) if request.config_file else find_config(request.path)
    if config is None or config.check is None:
        where = f"{config.source.name} has" if config is not None else "there is"
        raise UserError(f"{where} no [tool.irscope.check] to run", f"write into pyproject.toml:\n{EXAMPLE}")
    check = config.check
    baseline = config.resolve(check["baseline"]) if "baseline" in check else None
    if request.write_baseline and baseline is None:
        raise UserError("the settings name no baseline", 'baseline = "irscope-baseline.json" in [tool.irscope.check] does')
    if baseline is not None and not request.write_baseline and not os.path.exists(baseline):
        raise UserError(f"{baseline}: there is no such baseline", "irscope check --write-baseline makes it")
    options = Options(statistics=request.statistics, track_fusion=request.write_baseline, fresh=request.write_baseline)
    options.baseline = None if request.write_baseline else baseline
    options.rules, options.loops = check.get("lint", True), scalar_loops
    session = Session(options, config)
    reports: list[FileReport] = []
    models = list(_models(config, check))
    for file, table in track(models, "checking"):
        reports.append(_one(session, config, file, table))
    report = session.report()
    report.everything = request.all_
    # In the order of the settings, with what could not be looked at in its place; last the settings themselves, where they are at fault.
    report.files = reports + [file for file in report.files if file not in reports]
    if request.write_baseline and baseline is not None:
        write_baseline(baseline, session.acceptable(), session.fusion)
        click.echo(f"{baseline}: {len(session.acceptable())} findings accepted, {len(session.fusion)} models measured", err=True)
    print_report(report, request.format_ or format_of(config), request.output, [file for file, _ in models])
    failed = [file.file for file in reports if file.fails or not file.readable]
    others = f"; not {', '.join(failed)}" if failed else ""
    click.echo(f"{len(reports)} models, {len(reports) - len(failed)} as demanded{others}{_accepted(session, baseline)}", err=True)
    if request.exit_zero:
        return OK
    if any(not file.readable for file in report.files):
        return USAGE
    return FINDINGS if not request.write_baseline and any(file.fails for file in report.files) else OK


def _accepted(session: Session, baseline: str | None) -> str:
    """What the baseline kept out of the report, and what it holds that is mended: a broken demand that was accepted is said to be so."""
    if not session.accepted and not session.stale:
        return ""
    stale = f", and {session.stale} more that are gone: --write-baseline makes it anew" if session.stale else ""
    return f"; accepted by {_shown(baseline or '')}: {session.accepted}{stale}"


def _models(config: Config, check: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each model once, with its settings: those of ``check``, and those of the ``[[check.model]]`` tables whose path fits, over them."""
    common = {key: value for key, value in check.items() if key not in ("models", "model", "lint", "baseline")}
    tables: dict[str, dict[str, Any]] = {}
    for pattern in check.get("models", ()):
        for file in _fitting(config, pattern):
            tables.setdefault(file, dict(common))
    for model in check["model"]:
        for file in _fitting(config, model["path"]):
            tables.setdefault(file, dict(common)).update({key: value for key, value in model.items() if key != "path"})
    if not tables:
        raise UserError(f"{config.source.name}: [tool.irscope.check] names no models", EXAMPLE)
    yield from tables.items()


def _fitting(config: Config, pattern: str) -> list[str]:
    """The files of a pattern, as a user in the current folder would write them; the pattern itself where nothing fits."""
    found = sorted(path for path in glob(config.resolve(pattern), recursive=True) if os.path.isfile(path))
    return [_shown(path) for path in found] or [_shown(config.resolve(pattern))]


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _one(session: Session, config: Config, file: str, table: dict[str, Any]) -> FileReport:
    """Look at one model. What cannot be looked at is a finding, so that the others are still told."""
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
    """What the model computes, against stored outputs and against the earlier version."""
    from irscope.source.arrays import read_arrays

    def arrays(key: str) -> Mapping[str, Array]:
        return read_arrays(config.resolve(table[key])) if table.get(key) else {}

    got, taken = _run(reading, table, arrays("weights"), arrays("constants"), arrays("inputs"), [])
    findings = []
    if table.get("expect"):
        stored = arrays("expect")
        expected = [stored.get(f"out{i}") for i in range(len(got))]
        if all(one is None for one in expected):
            raise UserError(f"{table['expect']} holds none of the outputs", "they are named out0, out1, ...")
        findings += _compared(reading.module(), got, expected, table["expect"], table)
    if table.get("previous"):
        before = load(config.resolve(table["previous"]))
        earlier, _ = _run(before, table, arrays("weights"), arrays("constants"), {}, taken)
        findings += _compared(reading.module(), got, earlier, table["previous"], table)
    return findings


def _run(
    reading: Reading,
    table: dict[str, Any],
    weights: Mapping[str, Array],
    constants: Mapping[str, Array],
    inputs: Mapping[str, Array],
    taken: list[Array],
) -> tuple[list[Array], list[Array]]:
    """The outputs of a model, and the arrays it was run on: those given by name, then those of an earlier run, then drawn ones."""
    from irscope import api
    from irscope.backends.arguments import by_name, drawn, missing_near

    model = api.compile(reading, weights=weights, shapes=_shapes(table), constants=constants)
    given = by_name(inputs, model.inputs, table.get("inputs", "inputs"))
    missing_near(given, model.inputs, inputs)
    if taken and [array.shape for array in taken] != [port.shape for port in model.inputs]:
        raise UserError(f"{reading.source.name} takes other inputs than the model that it is compared with")
    found = dict(enumerate(taken)) if taken else given.arrays
    found = {**drawn(model.inputs, [n for n in range(len(model.inputs)) if n not in found], table.get("seed", 0)), **found}
    arrays = [found[n] for n in range(len(model.inputs))]
    return model(*arrays), arrays


def _shapes(table: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """``shapes = {x = [8, 3], y = "8,3"}``."""
    told = {}
    for name, shape in table.get("shapes", {}).items():
        parts = shape.split(",") if isinstance(shape, str) else shape
        try:
            told[name] = tuple(int(part) for part in parts if str(part).strip())
        except (TypeError, ValueError):
            help = 'shapes are written x = [8, 3, 224] or x = "8,3,224"'
            raise UserError(f"the shape of {name} in the settings is {shape!r}", help) from None
    return told


def _compared(module: Module, got: list[Array], expected: Sequence[Array | None], other: str, table: dict[str, Any]) -> list[Finding]:
    from irscope.backends.comparison import compare_all

    if len(expected) != len(got):
        return [ResultsDiffer.broken(module, f"it gives {len(got)} outputs, {other} has {len(expected)}")]
    results = compare_all(got, expected, table.get("rtol"), table.get("atol"), flushed=module.flushes_denormals)
    faults = [result for result in results if result.fault]
    return [ResultsDiffer.broken(module, f"{result.name} is not that of {other}: {result.fault}") for result in faults]
