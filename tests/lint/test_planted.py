"""Small programs with one fault each, and their twins without it: each fault is found in each format, and no twin has a finding of these rules.

The programs were printed by jax 0.10.2 (.hlo) and torch 2.13 (.txt), and written by hand in Relay.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.lint import find_rule, lint_module
from irscope.source import Finding, Severity

FOLDER = Path(__file__).parent / "planted"
FORMATS = {"hlo": "hlo", "txt": "torchscript", "relay": "relay"}
PLANTED = {
    # class: (rule, the least severity, what it says)
    "baked": ("MEM006", Severity.INFO, "no parameter, and no buffer"),
    "baked_large": ("MEM003", Severity.INFO, "constants are part of the graph"),
    "chain_order": ("ALG010", Severity.WARNING, "take 269 M operations"),
    "constant_again": ("ALG001", Severity.INFO, "is the same in every run"),
    "conv_cast_relu": ("FUS021", Severity.INFO, "(convolution) and its activation"),
    "conv_reshape_relu": ("FUS021", Severity.INFO, "(convolution) and its activation"),
    "crossed_targets": ("BRD003", Severity.ERROR, "all 1048576 pairs are summed"),
    "diagonal": ("ALG011", Severity.WARNING, "a diagonal matrix of 1024 x 1024"),
    "gather_logits": ("ALG014", Severity.WARNING, "computes 512 rows or columns"),
    "half_total": ("DTY004", Severity.WARNING, "8192 terms are summed in"),
    "inverse": ("ALG012", Severity.WARNING, "is the inverse of a matrix"),
    "last_logits": ("ALG014", Severity.WARNING, "keeps 1"),
    "log_sigmoid": ("ALG017", Severity.WARNING, "where the sigmoid rounds to"),
    "log_softmax": ("ALG017", Severity.WARNING, "where the softmax rounds to 0"),
    "mask_multiply": ("DTY008", Severity.INFO, "is multiplied in"),
    "mean_of_squares": ("ALG018", Severity.WARNING, "is a difference of two means"),
    "narrow_sum": ("DTY011", Severity.WARNING, "are summed in s8"),
    "no_epsilon": ("FUS016", Severity.INFO, "nothing is added under the root"),
    "one_hot": ("ALG009", Severity.WARNING, "looks up rows"),
    "pad_slice": ("ALG015", Severity.WARNING, "2 products in between compute the padding"),
    "picked_softmax": ("ALG017", Severity.WARNING, "where the softmax rounds to 0"),
    "repeated_heads": ("BRD001", Severity.INFO, "8 times its size"),
    "rounded_between": ("DTY003", Severity.WARNING, "loses digits on the way"),
    "small_digits": ("ALG019", Severity.INFO, "loses the digits of a small x"),
    "softmax_raw": ("ALG006", Severity.ERROR, "without the maximum subtracted first"),
    "softmax_twice": ("ALG006", Severity.ERROR, "without the maximum subtracted first"),
    "softplus": ("ALG017", Severity.WARNING, "log(1 + exp(x)) is infinite"),
    "sort_max": ("ALG013", Severity.WARNING, "only the last 1 of each"),
    "sort_topk": ("ALG013", Severity.WARNING, "only the first 8 of each"),
    "tiny_loop": ("CTL009", Severity.INFO, "runs 3 times"),
    "topk_all": ("ALG013", Severity.WARNING, "only the first 4 of each"),
    "wrong_axis": ("FUS016", Severity.WARNING, "the result is wrong"),
}  # fmt: skip
RULES = sorted({rule for rule, _, _ in PLANTED.values()} | {"FUS016"})
"""The rules of the faults, and the one that once called a product with softmaxed weights an attention."""


def programs(kind: str) -> list[Path]:
    return sorted(path for path in FOLDER.iterdir() if path.name.split(".")[1] == kind)


def lint(path: Path, *rules: str) -> list[Finding]:
    reading = irscope.load(path.read_text(), format=FORMATS[path.suffix[1:]])
    return lint_module(reading.module(), [find_rule(rule) for rule in rules])


@pytest.mark.parametrize("path", programs("bad"), ids=lambda path: path.name)
def test_a_fault_is_found(path: Path) -> None:
    rule, severity, says = PLANTED[path.name.split(".")[0]]
    found = lint(path, rule)
    assert found
    assert max(finding.severity for finding in found) >= severity
    assert any(says in finding.message for finding in found)


@pytest.mark.parametrize("path", programs("good"), ids=lambda path: path.name)
def test_its_twin_has_no_finding(path: Path) -> None:
    assert [finding.render() for finding in lint(path, *RULES)] == []


def test_each_class_has_programs_in_its_formats() -> None:
    """And each fault has a twin in the same format."""
    given = {(path.name.split(".")[0], path.suffix) for path in programs("bad")}
    twins = {(path.name.split(".")[0], path.suffix) for path in programs("good")}
    assert {name for name, _ in given} == set(PLANTED)
    assert given <= twins
    for name, (rule, _, _) in PLANTED.items():
        formats = {FORMATS[suffix[1:]] for of, suffix in given if of == name}
        assert formats <= set(find_rule(rule).formats), name
