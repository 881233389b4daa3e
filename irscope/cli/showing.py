"""Hands what ``show`` was asked for to the rooms that know, and what they say to the terminal or the file."""
from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from typing import TextIO

from irscope.cli.input import load
from irscope.cli.output import opened, paint_for, write_bytes
from irscope.cli.showing_log import log_lines, looked_at
from irscope.formats.detect import called
from irscope.graph import Reading
from irscope.query.choose import Choice, Wanted, choose, choose_modules
from irscope.source import Severity, UserError

TEXTS = ("tree", "text", "json")
"""Formats that hold several files, one after the other."""
DRAWN = ("dot", "svg", "png", "pdf")
"""Formats that are pictures."""


@dataclass(frozen=True, slots=True)
class Request:
    """The command line."""

    files: tuple[str, ...]
    format: str
    output: str
    wanted: Wanted
    depth: int | None
    by: str
    color_by: str
    dark: bool
    max_nodes: int | None
    all: bool
    width: int | None
    from_: str | None
    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]
    pass_: str | None = None
    """Of a log of passes the snapshot behind this one, or of this number."""
    lint: bool = False
    """What the rules find belongs to what is shown."""
    policy: str | None = None
    """The fusion policy whose kernels a drawing frames, on ``device``."""
    device: str | None = None

    def without_module(self) -> Request:
        """The request for one text of a folder, in which the module has been found already."""
        return replace(self, wanted=replace(self.wanted, module=None))


def show(request: Request) -> int:
    """Show each file; the status is 2 when one of them could not be read whole."""
    if request.policy is None and request.device is not None:
        raise UserError(f"--device {request.device} says nothing without a policy", "--policy xla-gpu")
    if request.policy is not None and request.format not in DRAWN:
        raise UserError(f"--policy {request.policy} frames kernels in a drawing",
                        "-o FILE.svg, .png, .pdf or .dot; or irscope lint --why-not-fused")
    if request.format not in TEXTS:
        if len(request.files) > 1:
            raise UserError(f"a drawing shows one file, and {len(request.files)} were given", "call irscope once for each")
        return _drawn(request, request.files[0])
    status = 0
    with opened(request.output, request.files, verbatim=request.format != "tree") as stream:
        for i, file in enumerate(request.files):
            if i and request.format == "tree":
                stream.write("\n")
            status = max(status, _written(request, file, stream))
    return status


def _written(request: Request, file: str, stream: TextIO) -> int:
    """Show one file as text; a file that cannot be read does not keep the others from being shown."""
    if file != "-" and os.path.isdir(file):
        from irscope.cli.showing_folder import show_folder

        return show_folder(request, file, stream)
    try:
        whole = _loaded(request, file)
        reading, told = looked_at(request, whole)
        choices = choices_of(request, reading)
    except UserError as error:
        if len(request.files) == 1:
            raise
        print(error.render(), file=sys.stderr)
        return 2
    if told is not None and request.format == "tree":
        for line in (*log_lines(whole, paint_for(stream, request.width), request.all), "", *told, *([""] if told else [])):
            stream.write(line + "\n")
    write_choices(request, reading, choices, stream)
    if request.format == "tree" and not request.wanted.picks and reading.format == "hlo" and file != "-":
        _write_memory(request, file, stream)
    return status_of(request, reading)


def _write_memory(request: Request, file: str, stream: TextIO) -> None:
    """XLA's own account of memory, where its reports lie beside the text."""
    from irscope.fleet.dump_folder import reports_beside

    if reports := reports_beside(file):
        from irscope.cli.showing_folder import memory_told

        for line in ("", *memory_told(reports, paint_for(stream, request.width))):
            stream.write(line + "\n")


def _loaded(request: Request, file: str) -> Reading:
    from irscope.cli.progress import Progress

    with Progress("reading"):
        return load(file, request.from_)


def choices_of(request: Request, reading: Reading) -> list[Choice]:
    """What to show of each module of a text."""
    if not reading.modules:
        errors = [f for f in reading.findings if f.severity is Severity.ERROR]
        raise UserError(f"{reading.source.name}: no module in it", findings=errors)
    several = request.format in ("tree", "json")
    modules = choose_modules(reading, request.wanted)
    if request.shapes or request.dtypes:
        from irscope.expand.bind import bind_types

        if any(not module.entry for module in modules):
            raise UserError(f"{reading.source.name} has no entry, whose inputs --shape and --dtype bind")
        modules = [bind_types(module, request.shapes, request.dtypes) for module in modules]
    # What the rules find stands with what the reader found, and is shown wherever that is.
    if request.lint:
        from irscope.lint.run import lint_module

        reading.findings += [finding for module in modules for finding in lint_module(module, whole=reading.ok)]
    return [choose(module, request.wanted, several) for module in modules]


def write_choices(request: Request, reading: Reading, choices: list[Choice], stream: TextIO) -> None:
    """Write what was chosen of one text as tree, text or json."""
    if request.format == "json":
        from irscope.render.json import write_json

        write_json(stream, reading, [(c.survey, c.graph, c.picked) for c in choices])
        return
    if request.format == "text":
        from irscope.render.text import text_lines

        for choice in choices:
            for line in text_lines(choice.survey, choice.graph, choice.picked, explicit=request.wanted.graph is not None):
                stream.write(line + "\n")
        return
    from irscope.render.screen import ScreenOptions, screen

    paint = paint_for(stream, request.width)
    options = ScreenOptions(request.depth, request.by, request.all, stream.isatty(), request.wanted.graph is not None)
    for i, choice in enumerate(choices):
        if i:
            stream.write("\n")
        for line in screen(reading, choice, paint, options):
            stream.write(line + "\n")


def _drawn(request: Request, file: str) -> int:
    if file != "-" and os.path.isdir(file):
        from irscope.cli.showing_folder import main_file

        file, request = main_file(request, file), request.without_module()
    reading, _ = looked_at(request, _loaded(request, file))
    draw_choice(request, reading, choices_of(request, reading)[0])
    return status_of(request, reading)


def status_of(request: Request, reading: Reading) -> int:
    """2 for a text that its own parser would refuse; where the output cannot hold the errors, they go to standard error."""
    if reading.ok:
        return 0
    if request.format == "text" or request.format in DRAWN or (request.format == "tree" and request.wanted.picks):
        name = called(reading.source.name)
        errors = [finding for finding in reading.findings if finding.severity is Severity.ERROR]
        print(UserError(f"{name}: shown is what was understood of it", findings=errors).render(), file=sys.stderr)
    return 2


def draw_choice(request: Request, reading: Reading, choice: Choice) -> None:
    """Write the drawing of one module."""
    if request.format == "html":
        from irscope.render.html import html_page

        write_bytes(request.output, html_page(choice.survey, reading.findings).encode(), request.files)
        return
    from irscope.cli.progress import Progress
    from irscope.render.drawing import DrawingOptions, drawing

    options = DrawingOptions(request.color_by, request.dark, request.max_nodes, request.depth)
    if request.policy is not None:
        from irscope.analysis.soundness import Use, require
        from irscope.lint.asked import kernels_by_node
        from irscope.lint.fusion import plans, version_of

        module = choice.survey.module
        require(reading, module, Use.POLICIES)
        kernels = kernels_by_node(module, plans(module, request.policy, request.device))
        options = replace(options, kernels=kernels, kernels_of=version_of(request.policy))
    with Progress("drawing"):
        data = drawing(reading, choice, request.format, options)
    write_bytes(request.output, data, request.files)
