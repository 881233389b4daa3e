"""Several faults of one text are told at once, and no text whatever makes the reader stumble."""

from __future__ import annotations

import random
from pathlib import Path

from irscope.analysis.types import check_types
from irscope.formats.relay import print_module, read
from irscope.graph import Reading
from irscope.source import SourceText

SAMPLES = Path(__file__).resolve().parent.parent.parent / "samples"

BROKEN = """def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {
  %0 = add(%x, %z);
  %1 = nn.relu(%0;
  %2 = multiply(%1, %0);
  %3 = if (%x) { %y };
  let %q = subtract(%2, 3000000000i32);
  %5 = add(%q, %3);
  return %55;
}
def @g(%x: float32) { %x + }
"""


def test_reading_goes_on_behind_a_fault() -> None:
    reading = read(SourceText("t.relay", BROKEN))
    assert not reading.ok
    assert [(str(f.place()), f.message) for f in reading.findings] == [
        ("2:16", "`%z` is not defined"),
        ("3:18", "expected `,` or `)`, but here is `;`"),
        ("5:22", "expected `else`"),
        ("6:25", "3000000000 does not fit int32"),
        ("8:10", "`%55` is not defined; did you mean `%5`?"),
        ("10:28", "expected an expression, but here is `}`"),
    ]
    assert [g.name for g in reading.module().graphs.values()][-1] in ("main", "g")


def test_no_more_than_twenty_faults() -> None:
    lines = "".join(f"  %{i} = add(%x, %missing{i});\n" for i in range(50))
    reading = read(SourceText("t.relay", f"def @main(%x: float32) {{\n{lines}  %x\n}}\n"))
    assert 15 <= len(reading.findings) <= 20


PIECES = ["(", ")", "{", "}", ";", "%0", "%x", "=", "let %q = ", "fn (", "if (True) {", ".0", "[", "]", '"', "/*", "-", "@f(", "1f", "1e", "=>",
          "match (%x) {", "hlo.dot(", "Tensor[(", "?", "meta[relay.Constant][0]", "global(", "def @main("]


def test_mutated_texts_never_break_the_reader() -> None:
    """What is read of a mutated text is checked, printed, and read again."""
    draw = random.Random(7)
    texts = [f.read_text() for f in sorted(SAMPLES.glob("*.relay"))]
    texts.append("def @f(%c: bool, %t: (float32, float32)) { let %g = fn (%a: float32) { %g(%a) }; if (%c) { %g(%t.0) } else { [1, 2] } }")
    for _ in range(1500):
        text = draw.choice(texts)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(text) + 1)
            text = text[:at] + draw.choice(PIECES) + text[at:] if draw.random() < 0.5 else text[:at] + text[at + draw.randint(1, 9) :]
        reading = read(SourceText("mutated", text))
        if reading.ok and reading.modules:
            _use(reading)


def _use(reading: Reading) -> None:
    check_types(reading.module())
    again = read(SourceText("printed", print_module(reading.module())))
    assert again.ok, (reading.source.text, [f.render() for f in again.findings])
