"""The page that lists what differs between the forms of a net, and the differences that no operator explains."""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from benchmarks.doors.comparing import Form

LISTED = 8
"""Operators that are named for one of the exported program."""
Found = dict[str, dict[str, Form]]
EXPORTERS = {"traced": "TorchScript (`torch.jit.trace`)", "onnx": "ONNX (`torch.onnx.export(dynamo=True)`)"}
KNOWN: dict[str, dict[str, str]] = {
    "traced": {"findings FUS009": "the rule is about TorchScript's own fuser",
               "numbers": "a trace keeps Python's numbers as tensors of float64, and their conversions are FLOPs"},
    "onnx": {},
}
"""Differences that come from no operator, by how they begin, with the reason."""
HEAD = """# One net through four doors

{nets} nets with random weights, ten of the zoo and ten modules written for this comparison, are exported as a `.pt2` archive, printed
(`print(ep)`), traced as TorchScript, and exported as ONNX. The archive and its text have the same kernels (of irscope's own policy, with
the same operators in each), FLOPs, findings and numbers. TorchScript and ONNX give the same numbers; where kernels, FLOPs or findings
differ, the exporter wrote other operators, which are listed below.

`python -m benchmarks.torch_doors --frameworks PYTHON --table docs/formats/torch-doors.md` writes this page, and fails where a difference
is not explained by an operator; PYTHON has torch, torchvision, timm, transformers and onnxscript.

## Nets
Each cell has kernels, FLOPs and findings; `=` is as in the archive. The error is the largest difference from torch's own results in any
form, relative to the largest value of an output.

| net | `.pt2` and text | TorchScript | ONNX | error |
|---|---|---|---|---|
"""
OPERATORS = """
## Operators that {exporter} changes
By operator of the exported program: how often it is there, what the exporter writes instead, and the differences in which it takes part,
over all nets: FLOPs (of this form, less those of the archive), kernels and findings (other ones, or another number).

| operator | exported | written | FLOPs | kernels | findings | nets |
|---|---|---|---|---|---|---|
"""


def faults(found: Found) -> Iterator[str]:
    """What must not be: wrong numbers, a text that differs from its archive, and differences that no changed operator explains."""
    for net, forms in found.items():
        for name, form in forms.items():
            if form.fault or not form.right:
                yield f"{net} {name}: {form.fault or f'wrong by {form.error:.0e}'}"
        archive, text = forms["pt2"], forms["text"]
        if (archive.kernels, archive.work, archive.found) != (text.kernels, text.work, text.found):
            yield f"{net}: the text differs from the archive"
        for name in EXPORTERS:
            yield from (f"{net} {name}: {what}" for what in unexplained(archive, forms[name], name))


def unexplained(archive: Form, form: Form, name: str) -> Iterator[str]:
    """Differences in which no changed operator takes part.

    An operator that is fused differently takes its neighbours out of their kernels: kernels that have an operator in common are judged
    together.
    """
    changed = {one for one in archive.written.keys() | form.written.keys() if is_changed(archive, form, one)}
    found = list(differences(archive, form))
    kernels = [names for what, names in found if what.startswith("kernels")]
    reached = len(changed) - 1
    while len(changed) != reached:
        reached = len(changed)
        changed.update(*(names for names in kernels if not changed.isdisjoint(names)))
    for what, names in found:
        known = any(what.startswith(beginning) for beginning in KNOWN[name])
        if changed.isdisjoint(names) and not known and not (name == "traced" and _are_numbers(archive, form, names)):
            yield what


def _are_numbers(archive: Form, form: Form, names: frozenset[str]) -> bool:
    """Whether FLOPs differ by the conversions of numbers alone, at most one for each operator."""
    return all(0 < form.work[one] - archive.work[one] <= sum(form.written.get(one, Counter()).values()) for one in names)


def differences(archive: Form, form: Form) -> Iterator[tuple[str, frozenset[str]]]:
    """What differs, with the operators that take part in it."""
    for name in archive.work.keys() | form.work.keys():
        if archive.work[name] != form.work[name]:
            yield f"FLOPs of {name}: {archive.work[name]} -> {form.work[name]}", frozenset((name,))
    for key in archive.kernels.keys() | form.kernels.keys():
        if archive.kernels[key] != form.kernels[key]:
            yield f"kernels {key}: {archive.kernels[key]} -> {form.kernels[key]}", frozenset(key.split(" + "))
    for key in archive.found.keys() | form.found.keys():
        if archive.found[key] != form.found[key]:
            yield f"findings {key}: {archive.found[key]} -> {form.found[key]}", frozenset((key.partition(" ")[2],))


def is_changed(archive: Form, form: Form, operator: str) -> bool:
    """Whether the form writes an operator of the exported program otherwise, or more or less often."""
    return _plain(archive.written.get(operator, Counter())) != _plain(form.written.get(operator, Counter()))


def _plain(written: Counter[str]) -> Counter[str]:
    """Names as they are alike in torch and in ONNX: ``masked_fill_`` and ``MaskedFill``."""
    return Counter({name.replace("_", "").lower(): n for name, n in written.items()})


def page(found: Found) -> str:
    """The page."""
    lines = [HEAD.format(nets=len(found)).rstrip("\n")]
    for net, forms in found.items():
        archive = forms["pt2"]
        cells = [_figures(archive), *(_figures(forms[name], archive) for name in EXPORTERS)]
        lines.append(f"| {net} | {' | '.join(cells)} | {max(form.error for form in forms.values()):.0e} |")
    for name, exporter in EXPORTERS.items():
        lines.append(OPERATORS.format(exporter=exporter).rstrip("\n"))
        lines += _operators(found, name)
        if KNOWN[name]:
            lines += ["", "Beside these:", *(f"- {known}: {reason}." for known, reason in KNOWN[name].items())]
    return "\n".join(lines) + "\n"


def _figures(form: Form, archive: Form | None = None) -> str:
    figures = [sum(form.kernels.values()), sum(form.work.values()), sum(form.found.values())]
    known = [None] * 3 if archive is None else [sum(archive.kernels.values()), sum(archive.work.values()), sum(archive.found.values())]
    return ", ".join("=" if figure == other else f"{figure:,}" for figure, other in zip(figures, known, strict=True))


def _operators(found: Found, name: str) -> Iterator[str]:
    """A row for each operator that is changed and takes part in a difference."""
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    before: defaultdict[str, int] = defaultdict(int)
    after: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for forms in found.values():
        archive, form = forms["pt2"], forms[name]
        parts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for what, names in differences(archive, form):
            for one in names:
                if is_changed(archive, form, one):
                    parts[one][what.split()[0]] += 1
        for one, counts in parts.items():
            rows[one].update(counts)
            rows[one]["work"] += form.work[one] - archive.work[one]
            rows[one]["nets"] += 1
            before[one] += sum(archive.written.get(one, Counter()).values())
            after[one].update(form.written.get(one, Counter()))
    for one, counts in sorted(rows.items()):
        written = ", ".join(f"{n} {name}" for name, n in after[one].most_common(LISTED)) or "-"
        more = ", ..." if len(after[one]) > LISTED else ""
        figures = f"{counts['work']:+,} | {counts['kernels']} | {counts['findings']} | {counts['nets']}"
        yield f"| {one} | {before[one]} | {written}{more} | {figures} |"
