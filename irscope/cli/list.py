"""``irscope list``: what irscope knows, by kind."""
from __future__ import annotations

import json
from collections.abc import Callable

import click

from irscope.formats import FORMATS, TITLES, readable

Row = dict[str, str]

# What people ask for; those that this LLVM was not built for are left out.
TRIPLES = {
    "x86_64-unknown-linux-gnu": "Linux on x86-64",
    "aarch64-unknown-linux-gnu": "Linux on 64-bit ARM",
    "riscv64-unknown-linux-gnu": "Linux on 64-bit RISC-V",
    "arm64-apple-macosx": "macOS on Apple silicon",
    "x86_64-pc-windows-msvc": "Windows on x86-64",
}


def formats() -> list[Row]:
    """The formats, and which of them this version reads."""
    known = readable()
    return [{"name": name, "title": TITLES[name], "reads": "yes" if name in known else "not yet"} for name in FORMATS]


def ops() -> list[Row]:
    """The operators, with their place in fusion and the first sentence of their documentation."""
    from irscope.formats.relay.operators import load as load_relay
    from irscope.formats.torchscript.operators import load as load_torchscript
    from irscope.ops import all_ops

    load_torchscript()
    load_relay()
    return [{"name": op.name, "dialect": op.dialect, "kind": op.kind.name.lower(), "doc": _first_line(op.doc)} for op in all_ops()]


def rules() -> list[Row]:
    """The lint rules; ``irscope rule CODE`` explains one."""
    from irscope.lint.rule import all_rules

    return [{"name": rule.code, "rule": rule.name, "severity": str(rule.severity), "doc": rule.title()} for rule in all_rules()]


def passes() -> list[Row]:
    """The passes over graphs, each with what is true afterwards; those of installed packages behind irscope's own."""
    from irscope.passes import PASSES, pass_named
    from irscope.passes.own import imported, installed
    from irscope.source import UserError

    rows = [{"name": name, "doc": _first_line(type(pass_named(name)).__doc__)} for name in PASSES]
    for name, point in installed().items():
        try:
            doc = _first_line(imported(point).__doc__)
        except UserError as error:
            doc = error.message
        if name not in PASSES:
            rows.append({"name": name, "doc": doc})
    return rows


def policies() -> list[Row]:
    """Whose fusion decisions irscope can tell; ``irscope lint --why-not-fused --policy NAME``."""
    from importlib import import_module

    from irscope.fusion import POLICIES, releases_of

    rows: list[Row] = []
    for name, module in POLICIES.items():
        rows.append({"name": name, "doc": _first_line(import_module(module).__doc__)})
        latest, *older = [f"{name}@{release}" for release in releases_of(name)] or [""]
        rows += [{"name": release, "doc": f"The same as of an older release; {name} means {latest}."} for release in older]
    return rows


def targets() -> list[Row]:
    """Machines that code can be made for; ``irscope compile-and-run --emit asm --target NAME`` takes any triple of LLVM's."""
    from irscope.backends import llvm_compile

    here = llvm_compile.host()
    rows = [{"name": here.triple, "doc": f"this machine, {here.cpu}"}]
    for triple, doc in TRIPLES.items():
        try:
            llvm_compile.cross(triple)
        except llvm_compile.CompileFailed:
            continue
        if triple != here.triple:
            rows.append({"name": triple, "doc": doc})
    return rows


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]


KINDS: dict[str, Callable[[], list[Row]]] = {"formats": formats, "ops": ops, "passes": passes, "rules": rules, "policies": policies,
                                         "targets": targets}


@click.command()
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to print.", show_default=True)
def command(kind: str, format_: str) -> None:
    """List what irscope knows of a kind.

    \b
    Examples:
      irscope list rules
      irscope list ops --format json
    """
    rows = KINDS[kind]()
    if format_ == "json":
        click.echo(json.dumps(rows, indent=1))
        return
    widths = [max(len(value) for value in column) for column in zip(*(row.values() for row in rows))]
    for row in rows:
        click.echo("  ".join(value.ljust(width) for value, width in zip(row.values(), widths)).rstrip())
