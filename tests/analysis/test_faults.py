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


def told(texts: Mapping[str, str], format: str) -> str:
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
    golden(f"{name}.txt", told(texts, "hlo"))


def test_faults_of_relay(golden: Callable[[str, str], None]) -> None:
    golden("relay_programs.txt", told({name: f'#[version = "0.0.5"]\n{text}' for name, text in RELAY.items()}, "relay"))
    golden("relay_faults.txt", told({path.stem: path.read_text() for path in sorted(MISTAKES.glob("*.relay"))}, "relay"))
