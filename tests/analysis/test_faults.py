"""Every message of the type checks for texts that break one rule each, and for their nearest correct forms, in golden files."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import irscope
from irscope.analysis.types import check_types
from tests.analysis.faulty import RELAY, TEXTS
from tests.analysis.test_types import RULES

MISTAKES = Path(__file__).resolve().parent.parent / "formats" / "relay_mistakes"


def faults_of(texts: Mapping[str, str], format: str) -> str:
    """The findings of the reader and of the type checks, text by text."""
    lines: list[str] = []
    for name, text in texts.items():
        lines.append(f"== {name}")
        reading = irscope.load(f"{text}\n", format=format)
        for finding in [*reading.findings, *(fault for module in reading.modules for fault in check_types(module))]:
            place = finding.place()
            at = f"{place.line}:{place.column}" if place is not None else "-"
            lines.append(f"{at} {finding.severity.name.lower()} {finding.code} {finding.name} {finding.graph}/{finding.node}: {finding.message}")
            lines += [f"    {finding.help}"] * bool(finding.help)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("name", "texts"), [("faults", TEXTS), ("rules", RULES)])
def test_faults_of_modules(name: str, texts: Mapping[str, str], golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.txt", faults_of(texts, "hlo"))


def test_faults_of_relay(golden: Callable[[str, str], None]) -> None:
    golden("relay_programs.txt", faults_of({name: f'#[version = "0.0.5"]\n{text}' for name, text in RELAY.items()}, "relay"))
    golden("relay_faults.txt", faults_of({path.stem: path.read_text() for path in sorted(MISTAKES.glob("*.relay"))}, "relay"))


def test_faults_of_onnx() -> None:
    models = pytest.importorskip("tests.formats.onnx_models")
    x, y = ("x", models.FLOAT, [2, 3]), ("y", models.FLOAT, [3])

    def faults(nodes: list[object], inputs: list[object], outputs: list[object]) -> list[tuple[str, str, str]]:
        return [(f.code, f.node, f.message) for f in check_types(irscope.load(models.model(nodes, inputs, outputs)).module())]
    assert faults([models.node("Relu", ["x"], ["y"])], [x], [y]) == [("SHP006", "y", "%y is declared f32[3], but Relu gives f32[2,3]")]
    assert faults([models.node("Relu", ["x"], ["y"])], [x], [("y", models.FLOAT, [2, 3])]) == []
    assert faults([models.node("Relu", ["x"], ["y"])], [x], [("y", models.FLOAT, ["n", 3])]) == []
    assert faults([models.node("Relu", ["x"], ["y"])], [("x", models.FLOAT, ["n", 3])], [y]) == []
    [fault] = faults([models.node("MatMul", ["x", "x"], ["y"])], [x], [("y", models.FLOAT, None)])
    assert fault[:2] == ("SHP006", "y") and "MatMul" in fault[2]
    body = models.graph([models.node("Relu", ["x"], ["z"])], [], [("z", models.FLOAT, [5])])
    inside = faults([models.node("If", ["c"], ["y"], then_branch=body, else_branch=body)], [x, ("c", models.BOOL, [])], [("y", models.FLOAT, None)])
    assert inside == [("SHP006", "z", "%z is declared f32[5], but Relu gives f32[2,3]")] * 2
