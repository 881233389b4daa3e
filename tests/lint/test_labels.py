"""Every warning on the real graphs of this repository has a verdict of somebody who read the graph: tests/lint/labels/*.toml.

A new warning makes this fail with "label me": read the graph there, and write down whether it is right and why; or mend the rule.
Graphs that may not be copied are linted by ``python benchmarks/lint_labels.py FOLDER...``.
"""

from __future__ import annotations

import hashlib
import json

import pytest

from benchmarks.lint_labels import FOLDER, Graph, graphs, in_repository, printed, section, text_of

ALL = graphs()
HERE = [graph for graph in ALL if graph.text]
PRECISION = 0.95


@pytest.mark.parametrize("graph", HERE, ids=lambda graph: graph.name)
def test_every_warning_is_labelled(graph: Graph) -> None:
    path = in_repository(graph)
    assert path is not None
    assert hashlib.sha256(text_of(path)).hexdigest() == graph.sha256, "the labels are of another text"
    found = printed(graph, path).findings
    unlabelled = [f"label me: {severity}[{rule}] {node} in {graph.name}" for rule, node, severity in found if graph.label(rule, node) is None]
    assert unlabelled == []


def test_labels_have_reasons_and_graphs_one_name() -> None:
    assert len(ALL) >= 60
    assert len({graph.name for graph in ALL}) == len({graph.sha256 for graph in ALL}) == len(ALL)
    assert all(len(label.why) > 40 for graph in ALL for label in graph.labels)


def test_warnings_are_right() -> None:
    """Of what was printed when all graphs were linted last."""
    told = json.loads((FOLDER / "printed.json").read_text())
    known = {graph.name: graph for graph in ALL}
    assert set(told) == set(known)
    verdicts = [known[name].label(rule, node) for name, findings in told.items() for rule, node, _ in findings]
    assert all(verdicts)
    right = sum(label.right for label in verdicts if label is not None)
    assert right >= PRECISION * len(verdicts)


def test_the_page_tells_of_them() -> None:
    text = "\n".join(section(FOLDER.parents[2]))
    assert "a precision of" in text
    assert f"{len(ALL)} graphs" in text
