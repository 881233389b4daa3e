"""Every row of the table of identities holds: both sides give the same numbers where its condition does."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.analysis.identities import IDENTITIES, Identity
from irscope.analysis.reference import evaluate
from irscope.formats import hlo as hlo_format
from irscope.graph.pattern import PatternTerm
from irscope.ops import lookup
from irscope.source import SourceText

DTYPES = {"float": "f32", "int": "s32", "pred": "pred", "complex": "c64"}
NUMPY = {"f32": np.float32, "s32": np.int32, "pred": np.bool_, "c64": np.complex64}
SPECIAL: dict[str, dict[str, Any]] = {"ones": {"s32": -1, "pred": True}, "lowest": {"f32": -np.inf, "s32": -2**31}, "highest": {"f32": np.inf, "s32": 2**31 - 1}}


def kind_of(row: Identity) -> str:
    """An element type that the row holds for."""
    if row.name.startswith(("complex-", "real-", "imag-")):
        return "c64" if row.name.startswith("complex-") else "f32"
    if row.name.startswith(("and-", "or-", "xor-", "not-")):
        return "s32"
    return "pred" if row.kinds == {"pred"} else "f32" if "float" in row.kinds else "s32"


class Text:
    """A term as instructions of HLO, its names as parameters."""

    def __init__(self, dtype: str, row: Identity) -> None:
        self.dtype, self.row = dtype, row
        self.lines: list[str] = []
        self.params: dict[str, str] = {}
        self.bound: dict[str, str] = {}

    def dtype_of(self, name: str) -> str:
        """Masks, and what a condition says to be one, are truth values."""
        where = self.row.where
        truth = name == "mask" or (where is not None and where.ops == ("pred",) and where.operands[0].name == name)
        return "pred" if truth else self.dtype

    def write(self, term: PatternTerm, wanted: str) -> str:
        if term.number is not None:
            value = str(bool(term.number)).lower() if wanted == "pred" else term.number if wanted == "f32" else int(term.number)
            self.lines.append(f"k{len(self.lines)} = {wanted}[] constant({value})")
            scalar = self.lines[-1].split(" ")[0]
            self.lines.append(f"k{len(self.lines)} = {wanted}[4] broadcast({scalar}), dimensions={{}}")
            made = self.lines[-1].split(" ")[0]
        elif not term.ops:
            if term.name not in self.bound:
                dtype = self.bound[term.name] = self.dtype_of(term.name)
                self.params[term.name] = dtype
            return term.name
        elif term.name and term.name in self.bound:
            return term.name
        else:
            op, result = term.ops[0], wanted
            where = self.row.where.ops[0] if self.row.where is not None else ""
            inside = {"compare": self.dtype, "complex": "f32", "real": "c64", "imag": "c64"}.get(op, wanted)
            if op in ("real", "imag") and where == "real":
                inside = wanted
            if op == "compare" and where == "pred":
                inside = "pred"
            if op == "convert":
                inside = "pred" if where == "pred" else "f64" if where == "round_trip" and term.operands[0].ops else self.dtype
            operands = [self.write(o, "pred" if op == "select" and n == 0 else inside) for n, o in enumerate(term.operands)]
            attrs = "".join(f", {key}={value}" for key, value in term.attrs)
            made = f"t{len(self.lines)}"
            self.lines.append(f"{made} = {'pred' if op == 'compare' else result}[4] {op}({', '.join(operands)}){attrs}")
        if term.name:
            self.lines.append(f"{term.name} = {made}")
            self.bound[term.name] = wanted
        return made


def module_text(text: Text, made: str, wanted: str) -> str:
    """The instructions as a module; a name for an operator's result is that result."""
    alias = {line.split(" = ")[0]: line.split(" = ")[1] for line in text.lines if "(" not in line}
    body = [line for line in text.lines if "(" in line]
    for name, real in alias.items():
        body = [line.replace(f"({name},", f"({real},").replace(f"({name})", f"({real})").replace(f" {name})", f" {real})") for line in body]
    params = [f"{name} = {dtype}[4] parameter({n})" for n, (name, dtype) in enumerate(text.params.items())]
    made = alias.get(made, made)
    return "HloModule m\nENTRY e {\n" + "\n".join([*params, *body, f"ROOT out = ({wanted}[4]) tuple({made})"]) + "\n}\n"


def numbers(row: Identity, params: dict[str, str]) -> dict[str, Any]:
    rng = np.random.default_rng(len(row.name))
    given: dict[str, Any] = {}
    for name, dtype in params.items():
        values = rng.integers(0, 2, 4) if dtype == "pred" else rng.integers(1, 5, 4)
        given[name] = values.astype(NUMPY[dtype])
        if row.where is not None and row.where.ops[0] in SPECIAL and row.where.operands[0].name == name:
            given[name] = np.full(4, SPECIAL[row.where.ops[0]][dtype], NUMPY[dtype])
    return given


@pytest.mark.parametrize("row", IDENTITIES.values(), ids=lambda row: row.name)
def test_both_sides_agree(row: Identity) -> None:
    dtype = kind_of(row)
    wanted = "pred" if row.pattern.ops == ("compare",) else dtype
    before = Text(dtype, row)
    text = module_text(before, before.write(row.pattern.root, wanted), wanted)
    after = Text(dtype, row)
    after.params = dict(before.params)
    after.bound = dict.fromkeys(before.params, "")
    if row.to.ops == ("like",):
        made = after.write(PatternTerm(row.pattern.ops, row.to.operands, attrs=row.pattern.root.attrs), wanted)
    elif row.to.name and row.to.name not in before.params:  # an instruction of the pattern, or a number that it names
        after.bound = dict.fromkeys(before.params, "")
        inner = next(t for t in terms(row.pattern.root) if t.name == row.to.name)
        made = after.write(PatternTerm(inner.ops, inner.operands, "", inner.number, inner.attrs), wanted)
    else:
        made = after.write(row.to, wanted)
    other = module_text(after, made, wanted)
    given = numbers(row, before.params)
    results = []
    for source in (text, other):
        reading = hlo_format.read(SourceText("m.hlo", source))
        assert reading.ok, (source, [f.message for f in reading.findings])
        results.append(evaluate(reading.module().main(), list(given.values()))[0])
    left, right = (np.asarray(r, np.complex128 if wanted == "c64" else np.float64) for r in results)
    assert np.allclose(left, right, rtol=1e-5)


def terms(term: PatternTerm) -> list[PatternTerm]:
    return [term, *(inner for operand in term.operands for inner in terms(operand))]


def test_operators_of_the_rows_exist() -> None:
    for row in IDENTITIES.values():
        for term in (*terms(row.pattern.root), *terms(row.to)):
            for op in term.ops:
                assert op == "like" or lookup(op) is not None, (row.name, op)
