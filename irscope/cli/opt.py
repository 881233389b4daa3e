"""``irscope opt``: runs graph passes in order, and verifies the results."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from irscope import api
from irscope.api.options import OptOptions, option
from irscope.api.paths import path_of
from irscope.api.verification import Verification
from irscope.api.watching import PassWatcher
from irscope.cli.errors import FINDINGS, OK
from irscope.cli.options import options
from irscope.cli.output import opened
from irscope.cli.terminal import Terminal, say

if TYPE_CHECKING:
    from irscope.graph import Module
    from irscope.passes.manager import Step


@dataclass(frozen=True, kw_only=True)
class OptOutput:
    """What to report, and where to write the result."""

    print_changes: bool = option(False, "Tell what each pass changed, on standard error.")
    timing: bool = option(False, "Tell how long each pass took and what it left, on standard error.")
    output: str = option("-", "Write the result to a file instead of standard output.", "-o", "--output", metavar="FILE", shown=False)


@click.command()
@click.argument("file")
@options(request=OptOptions, output=OptOutput)
def command(file: str, request: OptOptions, output: OptOutput) -> int:
    """Run graph passes over a dump and print the result in the IR that it came in.

    \b
    Examples:
      irscope opt model.relay --passes fuse-conv-relu,remove-dead --verify
      irscope opt model.hlo --passes simplify-algebra,share-equal --timing -o out.hlo
      irscope opt model.relay --infer --shape data=1,3,224,224
      irscope opt model.hlo --passes fold-constants,share-equal -o passes.html
    """
    wanted = replace(request, page=request.page or output.output.endswith(".html"))
    return OK if api.opt(path_of(file), wanted, watch=_Told(file, request, output)).ok else FINDINGS


class _Told(PassWatcher, Terminal):
    """Reports each pass on standard error, and writes the result before the last comparison."""

    def __init__(self, file: str, request: OptOptions, output: OptOutput) -> None:
        self.file, self.request, self.output = file, request, output

    def before(self, name: str, module: Module) -> None:
        _print_module("before", name, module)

    def after(self, name: str, module: Module) -> None:
        _print_module("after", name, module)

    def step(self, step: Step) -> None:
        for declined in step.declined:
            say(f"{step.name}: {declined}")
        for finding in step.broke:
            say(f"error: {step.name} broke a type: {finding.message}")
        if not self.output.print_changes:
            return
        if step.after is step.before:
            say(f"{step.name} changed nothing")
        else:
            from irscope.diff import compare
            from irscope.diff.report import as_text

            say(as_text(compare(step.before, step.after), f"before {step.name}", f"after {step.name}"))

    def verified(self, step: Step | None, found: Verification) -> None:
        say((f"{step.name}: " if step is not None else "") + str(found))

    def done(self, text: str, steps: list[Step], broken: list[str]) -> None:
        with opened(self.output.output, (self.file,), verbatim=True) as stream:
            stream.write(text)
        if self.output.timing:
            _tell_times(steps)
        if self.request.bisect:
            say(f"bisect: {broken[0] if broken else 'no pass'} {'is the first pass that ' if broken else ''}breaks the graph")


def _print_module(when: str, name: str, module: Module) -> None:
    """The graph around a pass, as TVM's PassPrintingInstrument prints it: such a log is read back by ``irscope show``."""
    from irscope.api.optimising import printed

    say(f"Print IR {when}: {name}\n{printed(module)}\n")


def _tell_times(steps: list[Step]) -> None:
    """One line per pass: its time and share, the time of the type check after it, and the statements before and after."""
    passes, types = sum(s.seconds for s in steps), sum(s.checking for s in steps)
    width = max([20, *(len(s.name) for s in steps)])
    say(f"{'timing':<{width}} {'pass':>12} {'share':>6} {'types':>12}   statements")
    for s in steps:
        share = f"{(s.seconds + s.checking) / (passes + types):.0%}" if passes + types else ""
        suffix = f"   for {s.required_by}" if s.required_by else ""
        say(f"{s.name:<{width}} {s.seconds * 1e3:>9.2f} ms {share:>6} {s.checking * 1e3:>9.2f} ms   {s.nodes[0]} -> {s.nodes[1]}{suffix}")
    say(f"{'all':<{width}} {passes * 1e3:>9.2f} ms {'':>6} {types * 1e3:>9.2f} ms")
