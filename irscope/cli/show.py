"""``irscope show``: a summary and a folded tree of dumps, their text, and drawings."""
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irscope import api
from irscope.api import redrawing
from irscope.api.options import ShowOptions, View, option
from irscope.api.paths import once_stdin, path_of
from irscope.cli.errors import OK, USAGE
from irscope.cli.options import options
from irscope.cli.output import opened, paint_for, write_bytes
from irscope.cli.terminal import TERMINAL, say
from irscope.source import UserError

if TYPE_CHECKING:
    from irscope.api import ShowResult

SUFFIXES = {".txt": "text", ".json": "json", ".dot": "dot", ".gv": "dot", ".svg": "svg", ".png": "png", ".pdf": "pdf", ".html": "html",
            ".htm": "html", ".hlo": "text"}


@dataclass(frozen=True, kw_only=True)
class ShowOutput:
    """Where and how it is written."""

    form: str | None = option(None, "What to print (default: by the suffix of -o, else tree).", "--format",
                              choices=tuple(view.value for view in View))
    output: str = option("-", "Write there; its suffix chooses the format (.svg .png .html .json .dot).", "-o", "--output",
                         metavar="FILE", shown=False)
    width: int | None = option(None, "Columns (default: the terminal's).", metavar="N", least=40)
    watch: bool = option(False, "Show it again whenever the file changes, until Ctrl-C.")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options(output=ShowOutput, request=ShowOptions)
def command(files: tuple[str, ...], output: ShowOutput, request: ShowOptions) -> int:
    """Summary and tree of a dump; also text, DOT, SVG, PNG, HTML and json.

    A folder written by XLA's --xla_dump_to shows its modules and what each pass changed; so does a log of TVM's passes.

    \b
    Examples:
      irscope show model.hlo
      irscope show model.hlo -o model.svg --color-by cost
      irscope show model.hlo -o model.html --lint
      irscope show model.hlo -o kernels.svg --policy xla-cpu
      irscope show model.hlo --around %fusion.3 --radius 1
      irscope show model.hlo --where 'op=dot and traffic>1MB'
      irscope show model.hlo -o model.svg --watch
    """
    request = replace(request, view=View(output.form or _by_suffix(output.output)))
    once_stdin(files)
    if output.watch:
        redrawing.repeat(files, output.output, lambda: _show(files, output, request), say)
    return _show(files, output, request)


def _show(files: tuple[str, ...], output: ShowOutput, request: ShowOptions) -> int:
    if not request.view.is_text:
        if len(files) > 1:
            raise UserError(f"a drawing shows one file, and {len(files)} were given", "call irscope once for each")
        shown = api.show(path_of(files[0]), request, watch=TERMINAL)
        write_bytes(output.output, shown.draw(TERMINAL), files)
        return _status(shown)
    status = OK
    with opened(output.output, files, verbatim=request.view is not View.TREE) as stream:
        for i, file in enumerate(files):
            if i and request.view is View.TREE:
                stream.write("\n")
            try:
                shown = api.show(path_of(file), request, watch=TERMINAL)
            except UserError as error:
                if len(files) == 1:
                    raise
                say(error.render())
                status = USAGE
                continue
            shown.write(stream, paint_for(stream, output.width), stream.isatty())
            status = max(status, _status(shown))
    return status


def _status(shown: ShowResult) -> int:
    """2 for a text that its own parser would reject; if the view cannot show the errors, they go to standard error."""
    if shown.unseen is not None:
        say(shown.unseen.render())
    return OK if shown.readable else USAGE


def _by_suffix(output: str) -> str:
    if output == "-":
        return "tree"
    suffix = Path(output).suffix.lower()
    if suffix not in SUFFIXES:
        raise click.BadParameter(f"{output}: no format has the suffix {suffix or '(none)'}; known are {', '.join(SUFFIXES)}, "
                                 "or give --format", param_hint="-o")
    return SUFFIXES[suffix]
