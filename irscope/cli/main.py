"""The ``irscope`` command: a table of subcommands, each imported when it is used."""
from __future__ import annotations

import atexit
import gc
import importlib
import os
from functools import cache
from importlib.util import find_spec
from typing import Any

import click

from irscope.cli import errors
from irscope.cli.limits import limited
from irscope.source import did_you_mean
from irscope.version import __version__

# name: (the place of its click command, what it does). A row whose module does not exist is not offered.
# The texts are here, so that `irscope --help` imports none of them.
COMMANDS: dict[str, tuple[str, str]] = {
    # Each text fits one line of a narrow terminal.
    "show": ("irscope.cli.show:command", "Summary and tree of a dump; or text, SVG, PNG, HTML, json."),
    "stats": ("irscope.cli.stats:command", "Count operators, parameters, FLOPs and bytes of many files."),
    "lint": ("irscope.cli.lint:command", "Find what is slow or wrong; say why operators do not fuse."),
    "compile-and-run": ("irscope.cli.compile_and_run:command", "Compile to native code, run, check and time."),
    "opt": ("irscope.cli.opt:command", "Run passes over a graph and print the result."),
    "diff": ("irscope.cli.diff:command", "Compare two graphs, whatever their names and order."),
    "capture": ("irscope.cli.capture:command", "Run a program and show what XLA or torch compiled for it."),
    "rule": ("irscope.cli.rule:command", "Explain a lint rule."),
    "list": ("irscope.cli.list:command", "What irscope knows: operators, rules, formats, targets, ..."),
    "check": ("irscope.cli.check:command", "Run the checks that a pyproject.toml configures."),
    "doctor": ("irscope.cli.doctor:command", "Report what irscope found on this machine."),
}

EPILOG = """\b
Exit status: 0 fine, 1 findings or a failed comparison, 2 unusable input or
request, 3 a defect of irscope, 130 interrupted.

\b
Examples:
  irscope show model.hlo              a summary and the tree of a dump
  irscope show model.hlo -o out.svg   the graph as a picture
  irscope lint model.hlo              what is slow or wrong in it, and why
  irscope compile-and-run model.hlo --check --bench

\b
Shell completion: eval "$(_IRSCOPE_COMPLETE=bash_source irscope)" in ~/.bashrc
(zsh_source, fish_source for the others).
"""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports each when it is used.

    However it is started (a console script, ``python -m``, a test runner), it returns the same exit codes, because ``main`` is the error
    boundary.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, (target, _) in COMMANDS.items() if _exists(target.partition(":")[0])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return limited(command)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            if os.path.exists(name):
                ctx.fail(f"{name} is a file, and no command; to see it: irscope show {name}")
            hint = did_you_mean(name, known) or f"the commands are: {', '.join(known)}"
            ctx.fail(f"there is no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def main(self, *args: Any, **extra: Any) -> Any:
        given = args[0] if args else extra.get("args")
        raise SystemExit(errors.run(self, given, extra.get("prog_name") or "irscope"))


@cache
def _exists(module: str) -> bool:
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


@click.group("irscope", cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="irscope %(version)s")
def group() -> None:
    """Read what machine-learning compilers print: show, lint and run it.

    Files may be paths, `-` for standard input, or .gz; the format is detected by content.
    """


def main(args: list[str] | None = None) -> int:
    """Run irscope with the given arguments (the process's own by default) and return the exit status."""
    if args is None:
        # At exit Python runs a full garbage collection: two seconds over 100,000 operators, for memory that is freed anyway.
        atexit.register(gc.freeze)
    return errors.run(group, args, "irscope")
