"""``irscope.api.listed``: what irscope knows, by kind: operators, rules, passes, policies, formats, targets."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from irscope.formats import FORMATS, format_named
from irscope.lazy import LazyModule
from irscope.source import UserError, did_you_mean

if TYPE_CHECKING:
    from irscope import fusion, ops
    from irscope.backends import llvm_compile
    from irscope.formats.relay import operators as relay
    from irscope.formats.torchscript import operators as torchscript
    from irscope.lint import rule
    from irscope.passes import registry
else:  # each is needed for one kind only
    fusion, ops, registry = LazyModule("irscope.fusion"), LazyModule("irscope.ops"), LazyModule("irscope.passes.registry")
    relay, torchscript = LazyModule("irscope.formats.relay.operators"), LazyModule("irscope.formats.torchscript.operators")
    llvm_compile, rule = LazyModule("irscope.backends.llvm_compile"), LazyModule("irscope.lint.rule")

Row = dict[str, str]

# An example of each supported target; those that this LLVM was not built for are omitted.
TRIPLES = {
    "x86_64-unknown-linux-gnu": "Linux on x86-64",
    "aarch64-unknown-linux-gnu": "Linux on 64-bit ARM",
    "riscv64-unknown-linux-gnu": "Linux on 64-bit RISC-V",
    "armv7-linux-gnueabihf": "Linux on 32-bit ARM",
    "arm64-apple-macosx": "macOS on Apple silicon",
    "x86_64-pc-windows-msvc": "Windows on x86-64",
}


def _formats() -> list[Row]:
    """The formats that this version reads."""
    return [{"name": name, "title": format_named(name).TITLE, "reads": "yes"} for name in FORMATS]


def _ops() -> list[Row]:
    """The operators, with their place in fusion and the first sentence of their documentation."""
    torchscript.load()
    relay.load()
    return [{"name": op.name, "dialect": op.dialect, "kind": op.kind.name.lower(), "doc": _first_line(op.doc)} for op in ops.all_ops()]


def _rules() -> list[Row]:
    """The lint rules; ``irscope rule CODE`` explains one."""
    return [{"name": each.code, "rule": each.name, "level": str(each.level()), "severity": str(each.severity),
             "default": "on" if each.default else each.option or "off", "formats": ",".join(each.formats), "doc": each.title()}
            for each in rule.all_rules()]


def _passes() -> list[Row]:
    """The passes over graphs, each with what it does; built-in passes first, then those of installed packages."""
    own = registry.own_passes()
    rows = [{"name": name, "doc": _first_line(kind.__doc__)} for name, kind in own.items()]
    for name, point in registry.installed().items():
        try:
            doc = _first_line(registry.imported(point).__doc__)
        except UserError as error:
            doc = error.message
        if name not in own:
            rows.append({"name": name, "doc": doc})
    return rows


def _policies() -> list[Row]:
    """The fusion policies: compilers whose decisions irscope reproduces; ``irscope lint --why-not-fused --policy NAME``."""
    rows: list[Row] = []
    for name, module in fusion.POLICIES.items():
        rows.append({"name": name, "doc": _first_line(import_module(module).__doc__)})
        latest, *older = [f"{name}@{release}" for release in fusion.releases_of(name)] or [""]
        if fusion.follows_text(name):
            doc = f"The same as of one release; {name} means the newest that may have printed the text."
            rows += [{"name": release, "doc": doc} for release in (latest, *older)]
            continue
        rows += [{"name": release, "doc": f"The same as of an older release; {name} means {latest}."} for release in older]
    return rows


def _targets() -> list[Row]:
    """Targets for code generation; ``irscope compile-and-run --emit asm --target NAME`` also takes other triples of these processors."""
    here = llvm_compile.host()
    rows = [{"name": here.triple, "doc": f"this machine, {here.cpu}"}]
    for triple, doc in TRIPLES.items():
        with suppress(llvm_compile.CompileFailed):
            llvm_compile.cross(triple)
            rows += [{"name": triple, "doc": doc}] if triple != here.triple else []
    return rows


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]


KINDS: dict[str, Callable[[], list[Row]]] = {"formats": _formats, "ops": _ops, "passes": _passes, "rules": _rules, "policies": _policies,
                                         "targets": _targets}


def listed(kind: str) -> list[Row]:
    """The rows of a kind (formats, ops, passes, rules, policies, targets), each with at least a ``name``.

    Raises :class:`irscope.UserError` for an unknown kind.

    >>> [row["name"] for row in listed("formats")]
    ['hlo', 'torchscript', 'inductor', 'export', 'hlo-pb', 'onnx', 'relay', 'stablehlo']
    """
    if kind not in KINDS:
        raise UserError(f"there is no list of {kind}", did_you_mean(kind, KINDS) or f"the lists are {', '.join(KINDS)}")
    return KINDS[kind]()
