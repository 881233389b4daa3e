"""Writes the plans of ``tests/data/plans`` again: ``python -m tests.fusion.record_plans``. Read the difference before it is committed."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from irscope.api import load
from irscope.lint.planned import Planned
from tests.fusion.plan_text import plan_text

FOLDER = Path(__file__).parent.parent / "data" / "plans"
PROGRAM, TEXT = "\n=== ", "\n--- text\n"


def recorded(policy: str) -> Iterator[tuple[str, str, str]]:
    """The name, the plan and the text of each program of a policy."""
    for part in (FOLDER / f"{policy}.txt").read_text().split(PROGRAM)[1:]:
        head, text = part.split(TEXT)
        name, plan = head.split("\n", 1)
        yield name, plan, text


def made(text: str, policy: str) -> Planned:
    """The plan of a text as it is now."""
    reading = load(text)
    assert reading.ok, [finding.message for finding in reading.findings]
    return Planned(reading.module(), policy)


def main() -> None:
    """Write the file of each policy."""
    for path in FOLDER.glob("*.txt"):
        head = path.read_text().split(PROGRAM)[0]
        programs = [f"{name}\n{plan_text(made(text, path.stem))}{TEXT}{text}" for name, _, text in recorded(path.stem)]
        path.write_text(PROGRAM.join([head, *programs]))


if __name__ == "__main__":
    main()
