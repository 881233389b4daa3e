"""The comparison of the forms of a net: which differences an operator of the exporter explains."""
from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.doors.comparing import Form
from benchmarks.doors.nets import NETS
from benchmarks.doors.page import faults, page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "formats" / "torch-doors.md"


def form(written: dict[str, Counter[str]], kernels: tuple[str, ...], **work: int) -> Form:
    return Form(right=True, written=written, kernels=Counter(kernels), work=Counter(work))


ARCHIVE = form({"linear": Counter(linear=1), "relu_": Counter(relu_=1)}, ("linear + relu_",), linear=100, relu_=8)
SPLIT = {"linear": Counter(MatMul=1, Add=1), "relu_": Counter(Relu=1)}


def found(onnx: Form, text: Form = ARCHIVE) -> dict[str, dict[str, Form]]:
    return {"net": {"pt2": ARCHIVE, "text": text, "traced": ARCHIVE, "onnx": onnx}}


def test_a_changed_operator_explains_its_work_and_the_kernels_of_its_neighbours() -> None:
    made = found(form(SPLIT, ("linear", "relu_"), linear=108, relu_=8))
    assert list(faults(made)) == []
    assert "| linear | 1 | 1 MatMul, 1 Add | +8 | 2 | 0 | 1 |" in page(made)


def test_other_differences_are_faults() -> None:
    assert list(faults(found(form(SPLIT, ("linear + relu_",), linear=100, relu_=16)))) == ["net onnx: FLOPs of relu_: 8 -> 16"]
    assert list(faults(found(ARCHIVE, form(ARCHIVE.written, ("linear", "relu_"), linear=100, relu_=8)))) == [
        "net: the text differs from the archive"]
    assert next(iter(faults(found(Form(fault="refused"))))) == "net onnx: refused"


def test_the_page_has_every_net() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(NETS) == 20 and all(f"\n| {name} | " in text for name in NETS)
