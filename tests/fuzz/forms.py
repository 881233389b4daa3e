"""Command lines to draw from: what is asked of a text. Options are read from the commands themselves, so that a new one is drawn too."""
from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import click

from irscope.cli.main import COMMANDS, group
from irscope.fusion import POLICIES
from irscope.lint.config import KEYS
from irscope.lint.gates.expect_dtype import DTYPES as EXPECTED
from irscope.lint.machine import BUILT_IN
from irscope.lint.rule import all_rules
from irscope.passes.registry import own_passes
from irscope.query.columns import COLUMNS
from tests.fuzz.arrays import arrays
from tests.fuzz.spice import SPICE

FORMS = {
    "read FILE": 4,
    "show FILE": 3, "show FILE --format text": 1, "show FILE --format json": 1, "show DIR": 1,
    "show FILE --format dot": 4, "show FILE --format svg": 5, "show FILE --format html": 3, "show FILE --format dot --policy POLICY": 6,
    "show FILE --lint": 3, "show FILE --where QUERY": 3, "show FILE --around NODE --radius 1": 2, "show FILE --between NODE NODE": 1,
    "stats FILE OTHER --jobs 1": 3, "stats DIR --jobs 1 --format json": 1,
    "lint FILE --isolated": 8, "lint FILE OTHER --isolated": 1, "lint FILE --policy POLICY": 5, "lint FILE --format LINTFORMAT": 5,
    "lint FILE --why-not-fused --policy POLICY": 8, "lint FILE --why-not-fused NODE NODE --policy POLICY": 4,
    "lint FILE --why-not-fused --fusion-log LOG": 1,
    "lint FILE --audit AUDIT": 4, "lint FILE --fix": 4, "lint FILE --fix -o fixed.txt": 2, "lint FILE --config CONFIG": 3,
    "lint FILE --max-kernels 1 --max-traffic 1KiB --max-memory 1KiB --require-fused OPS --expect-dtype f16": 3,
    "lint FILE --write-baseline b.json": 1, "lint FILE --baseline BASELINE": 2,
    "opt FILE --passes PASS": 12, "opt FILE --passes PASS,PASS": 10, "opt FILE --passes PASS --verify": 3, "opt FILE --to hlo": 2,
    "opt FILE --passes PASS,PASS --bisect": 1, "opt FILE --infer --types": 2, "opt FILE --passes PASS --print-changes --style relay": 2,
    "diff FILE OTHER": 4, "diff FILE OTHER --format html": 1, "diff FILE OTHER --fail-if 'kernels>+0'": 1,
    "compile-and-run FILE --emit loops": 6, "compile-and-run FILE --emit llvm": 2, "compile-and-run FILE --check --threads 1": 2,
    "compile-and-run FILE --check --threads 2 --fill-elided": 2, "compile-and-run FILE --engine reference --fill-elided": 3,
    "compile-and-run FILE --inputs ARRAYS --threads 1": 2, "compile-and-run FILE --weights ARRAYS --threads 1": 1,
    "compile-and-run FILE --expect-from OTHER --threads 1": 1,
    "compile-and-run FILE --constants ARRAYS --engine reference --save-outputs out.npz": 1,
    "check --config CONFIG": 2, "rule RULE": 1, "list LIST": 1,
}
"""Command lines and how often each is drawn. Words in capitals stand for something that is drawn: see ``WORDS``."""
MORE = (0, 0, 0, 0, 0, 0, 0, 1, 1, 2)
"""How many options are added to a command line; one is drawn."""
LEFT_OUT = {
    "--load": "runs the Python code of its file", "--watch": "ends at Ctrl-C alone",
    "--jobs": "starts processes; the forms say --jobs 1", "--help": "prints",
    "--autotune": "compiles and times for seconds", "--bench": "times for a second", "--bench-seconds": "of --bench", "--runs": "of --bench",
    "--warmup": "of --bench",
}
"""Options that are not added, each with the reason."""
ALWAYS = {"--limit-time": "4"}
"""Options that every command line gets whose command has them: a program may loop for ever, and is to be ended in time."""


@dataclass(slots=True)
class Draw:
    """What is known while a command line is drawn: the text that it is for, another one, and the files that it needs beside them."""

    rng: random.Random
    text: str
    bound: tuple[str, ...] = ()
    """Options that tell the types that the text leaves open."""
    files: dict[str, bytes] = field(default_factory=dict)

    def node(self) -> str:
        """A name of the text, or none of it."""
        names: list[str] = re.findall(r"%?[A-Za-z_][\w.\-]*", self.text[:5000])
        return self.rng.choice(names or ["x"]) if self.rng.random() < 0.95 else "nobody"

    def op(self) -> str:
        found: list[str] = re.findall(r"(?<=[ :])[a-z][\w.\-]*(?=\()", self.text[:5000])
        return self.rng.choice((*found, "*", "dot", "add"))

    def query(self, depth: int = 0) -> str:
        """A query of columns, names and neighbourhoods, three deep at the most."""
        rng = self.rng
        if depth < 3 and rng.random() < 0.4:
            inner = self.query(depth + 1)
            return rng.choice((f"not {inner}", f"({inner})", f"{inner} and {self.query(depth + 1)}", f"{inner} or {self.query(depth + 1)}"))
        column = rng.choice(sorted(COLUMNS))
        value = rng.choice((self.node(), self.op(), str(rng.choice((0, 1, 4, 64))), "1KB", "f32", "8,*", "*", "/a.*/"))
        return rng.choice((f"{column}{rng.choice(('=', '!=', '~', '!~', '<', '<=', '>', '>='))}{value}", column, self.node(), self.op(),
                           f"near({self.node()}, {rng.randrange(4)})", f"deps({self.node()})", f"uses({self.node()})",
                           f"path({self.node()}, {self.node()})"))

    def pass_(self) -> str:
        return self.rng.choice(tuple(own_passes())) + ("" if self.rng.random() < 0.95 else self.rng.choice(("{x=1}", "{dtype=bf16}", "{layout=NHWC}", "{")))

    def config(self) -> bytes:
        """Settings, most of them as they should be."""
        lines = []
        for table in sorted(self.rng.sample(sorted(KEYS), self.rng.choice((1, 1, 2, 3)))):
            if table:
                heading = {"per-path": '[per-path."*"]', "per-scope": '[per-scope."a*"]', "suppress": "[[suppress]]", "check": "[check]",
                           "check.model": "[[check.model]]"}[table]
                lines.append(heading)
            keys = [key for key, sort in KEYS[table].items() if sort not in ("table", "list")]
            lines += [f"{key} = {self.setting(KEYS[table][key])}" for key in self.rng.sample(keys, self.rng.randrange(min(4, len(keys)) + 1))]
            if table.startswith("check"):
                lines.append('models = ["a.*"]' if table == "check" else 'path = "a.txt"')
        return "\n".join([*lines, ""]).encode()

    def setting(self, sort: str) -> str:
        rng = self.rng
        known = {"policy": f'"{self.policy()}"', "machine": f'"{rng.choice(BUILT_IN)}"', "count": str(rng.choice((0, 1, 7))),
                 "size": rng.choice(('"1KiB"', '"1GB"', "5")), "flag": "true", "dtype": f'"{rng.choice(sorted(EXPECTED))}"',
                 "severity": '"info"', "date": "2020-01-01", "number": "0.5", "rules": f'["{self.rule()}"]', "rule": f'"{self.rule()}"',
                 "texts": f'["{self.op()},{self.op()}"]', "text": f'"{self.node()}"'}
        return known[sort] if sort in known and rng.random() < 0.9 else rng.choice(('"x"', "1", "[]", "{}", "true", "nan"))

    def rule(self) -> str:
        return self.rng.choice([rule.code for rule in all_rules()] + ["DTY", "nothing"])

    def policy(self) -> str:
        return self.rng.choice(RELEASES if self.rng.random() < 0.3 else tuple(POLICIES))

    def file(self, name: str, content: bytes) -> str:
        """The name of a file that the command line needs; now and then it is spoiled, has an odd value, or is not there."""
        if self.rng.random() < 0.98:
            if self.rng.random() < 0.2:
                values = list(VALUE.finditer(content))
                begin, end = self.rng.choice(values).span() if values else (0, 0)
                content = content[:begin] + self.rng.choice(ODD) + content[end:]
            if content and self.rng.random() < 0.3:
                at = self.rng.randrange(len(content))
                content = content[:at] + self.rng.choice((b"", b"\0", b"\xff", b'"', content[:at])) + content[at + self.rng.randrange(9):]
            self.files[name] = content
        return name


RELEASES = ("xla-cpu@jaxlib-0.4.38", "xla-gpu@jaxlib-0.4.38", "xla-gpu@jaxlib-0.4.35-instruction-fusion", "irscope@0.1.0", "xla-gpu@none", "nobody")
BASELINE = b'{"version": 1, "findings": [{"fingerprint": "0123456789abcdef", "code": "DTY001", "message": "m", "count": 2}]}'
OOM = (b"Out of memory while trying to allocate 96 bytes.\nPeak buffers:\n\tBuffer 1:\n\t\tSize: 64B\n\t\tXLA Label: fusion\n\t\tShape: f32[16]\n",
       b"Largest program allocations in hbm:\n  1. Size: 6.00G\n     Shape: f32[8]{0:T(8)}\n     XLA label: fusion.1 = fusion(p), kind=kLoop\n")
MACHINE = b"""base = "h100"
title = "mine"
read_gbs = { value = 1500.0, source = "data sheet" }
write_gbs = 1500.0
overlaps = true
fast = 2.0
[launch_us]
value = 3.0
policies = { xla-gpu = 2.5 }
[matrix_gflops]
f32 = 40000.0
[[caches]]
bytes = 40000000
gbs = 5000.0
"""
VALUE = re.compile(rb"(?<=[=:\[,])\s*(?:[\d.]+|\"[^\"]*\"|true)")
"""A number or a text of a baseline, of settings or of a machine."""
ODD = (b"1e999", b"-1e999", b"inf", b"nan", b"5e-324", b"0", b"-1", b"1" + b"0" * 400, b"null", b"{}", b"[]", b"[" * 3000, b'"x"', b'"\\u0000"', b"true", b"[[1]]")
LOGS = (b"Fusing: %a with %b\n", b"V0922 fusion.py:1] cannot fuse buf0 with buf1: no shared data\n", b"")

WORDS: Mapping[str, Callable[[Draw], str]] = {
    "FILE": lambda d: "a.txt", "OTHER": lambda d: "b.txt", "DIR": lambda d: ".", "NODE": Draw.node, "QUERY": Draw.query, "POLICY": Draw.policy,
    "PASS": Draw.pass_, "RULE": Draw.rule, "OPS": lambda d: f"{d.op()},{d.op()}*", "LOG": lambda d: d.file("fusion.log", d.rng.choice(LOGS)),
    "CONFIG": lambda d: d.file("irscope.toml", d.config()), "BASELINE": lambda d: d.file("b.json", BASELINE),
    "ARRAYS": lambda d: d.file("x.npz", arrays(d.text, d.rng)),
    "AUDIT": lambda d: d.rng.choice("dtype shape layout memory parallel".split()),
    "LINTFORMAT": lambda d: d.rng.choice("concise json jsonl sarif github gitlab junit markdown".split()),
    "LIST": lambda d: d.rng.choice("formats ops passes rules policies targets".split()),
}
"""By word of a form: what stands for it."""
OPTIONS: Mapping[str, Callable[[Draw], str]] = {
    "--where": Draw.query, "--around": Draw.node, "--between": Draw.node, "--graph": Draw.node, "--module": Draw.node, "--policy": Draw.policy,
    "--device": lambda d: d.rng.choice(("h100", "a100", "b200", "x")), "--machine": lambda d: d.rng.choice((*BUILT_IN, d.file("m.toml", MACHINE))),
    "--pass": lambda d: d.rng.choice(("0", "1", "-1", "x")), "--passes": Draw.pass_, "--require": Draw.pass_, "--disable": Draw.pass_,
    "--print-before": lambda d: d.rng.choice(("all", d.pass_())), "--print-after": lambda d: d.rng.choice(("all", d.pass_())),
    "--output": lambda d: d.rng.choice(("out.svg", "out.html", "out.json", "out.dot", "out.txt", "-", "none/out.txt", "a.txt")),
    "-o": lambda d: d.rng.choice(("out.txt", "-", "a.txt", *d.files)), "--select": Draw.rule, "--ignore": Draw.rule,
    "--shape": lambda d: f"{d.node().lstrip('%')}={d.rng.choice(('2,3', '', '0', '-1', '8', 'x', '9999999999'))}",
    "--dtype": lambda d: f"{d.node().lstrip('%')}={d.rng.choice(('f32', 's8', 'bf16', 'x'))}",
    "--baseline": lambda d: d.file("b.json", BASELINE), "--write-baseline": lambda d: d.rng.choice(("new.json", "a.txt", *d.files)), "--require-fused": lambda d: f"{d.op()},{d.op()}",
    "--fusion-log": lambda d: d.file("fusion.log", d.rng.choice(LOGS)), "--config": lambda d: d.file("irscope.toml", d.config()),
    "--max-traffic": lambda d: d.rng.choice(("1KiB", "5", "1e9", "x")), "--max-memory": lambda d: d.rng.choice(("1KiB", "5", "1TB", "")),
    "--inputs": lambda d: d.file("x.npz", arrays(d.text, d.rng)), "--weights": lambda d: d.file("w.npz", arrays(d.text, d.rng)),
    "--constants": lambda d: d.file("c.npz", arrays(d.text, d.rng)), "--expect": lambda d: d.file("e.npz", arrays(d.text, d.rng)),
    "--oom": lambda d: d.file("oom.log", d.rng.choice(OOM)), "--expect-from": lambda d: d.rng.choice(("a.txt", "b.txt", "none.txt")), "--save-outputs": lambda d: d.rng.choice(("out.npz", "x.npz", "a.txt", *d.files)), "--cpu": lambda d: d.rng.choice(("v2", "v3", "v4", "haswell", "znver4", "x")),
    "--target": lambda d: d.rng.choice(("aarch64-unknown-linux-gnu", "riscv64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "nvptx64", "x-y")),
    "--fail-if": lambda d: d.rng.choice(("kernels>+0", "bytes>+5%", "ops.transpose>0", "x")), "--threads": lambda d: str(d.rng.choice((1, 2, 3))),
    "--partitions": lambda d: str(d.rng.choice((1, 2, 4, 8))),
}
"""By option: how its value is drawn. Options that are not here are drawn by the type that click knows of them."""


@cache
def options(command: str) -> tuple[click.Option, ...]:
    """The options of a command, as it declares them."""
    found = group.get_command(click.Context(group), command) if command in COMMANDS else None
    return tuple(p for p in (found.params if found else ()) if isinstance(p, click.Option) and p.opts[-1] not in LEFT_OUT)


def option(option: click.Option, draw: Draw) -> list[str]:
    """An option with a value, as words."""
    name, type = option.opts[-1], option.type
    if option.is_flag:
        return [name]
    if name in OPTIONS:
        return [name, *(OPTIONS[name](draw) for _ in range(option.nargs))]
    if isinstance(type, click.Choice):
        return [name, draw.rng.choice([str(choice) for choice in type.choices])]
    if isinstance(type, (click.IntRange, click.types.IntParamType)):
        return [name, str(draw.rng.choice((-1, 0, 1, 2, 5, 40, 100, 10**12)))]
    if isinstance(type, (click.FloatRange, click.types.FloatParamType)):
        return [name, draw.rng.choice(("0", "1e-6", "0.5", "1", "nan", "-1"))]
    return [name, draw.rng.choice(SPICE["arguments"])]


_FORMS, _WEIGHTS = list(FORMS), list(FORMS.values())


def command_line(draw: Draw) -> tuple[str, ...]:
    """A command line for the text of ``draw``; the files that it needs beside the text are put there."""
    form = draw.rng.choices(_FORMS, _WEIGHTS)[0]
    words = [",".join(WORDS[part](draw) if part in WORDS else part for part in word.split(",")) for word in form.replace("'", "").split()]
    known = options(words[0])
    for _ in range(draw.rng.choice(MORE) if known else 0):
        words += option(draw.rng.choice(known), draw)
    if draw.bound and any(o.opts[-1] == "--shape" for o in known):
        words += draw.bound
    for name, value in ALWAYS.items():
        if name not in words and any(name == o.opts[-1] for o in known):
            words += [name, value]
    if draw.rng.random() < 0.01:
        words.insert(draw.rng.randrange(len(words) + 1), draw.rng.choice(SPICE["arguments"]))
    return tuple(words)
