"""The json of a module, and what is packed into the page (tests/browser opens it)."""
from __future__ import annotations

import base64
import gzip
import io
import json
import re
from typing import Any

from irscope import api
from irscope.analysis.survey import Survey
from irscope.render.html import html_page
from irscope.render.json import write_json
from tests.analysis.texts import FUSED, LOOP, layers, survey


def as_json(text: str) -> dict[str, Any]:
    reading = api.load(text)
    facts = Survey(reading.module())
    stream = io.StringIO()
    write_json(stream, reading, [(facts, None)])
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


def packed(page: str, name: str) -> str:
    found = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', page)
    assert found is not None
    return gzip.decompress(base64.b64decode(found[1])).decode()


def test_json_holds_figures_tree_graphs_and_nodes() -> None:
    found = as_json(FUSED)
    assert set(found) == {"version", "file", "format", "ok", "findings", "modules"}
    module = found["modules"][0]
    assert set(module) == {"name", "entry", "summary", "highlights", "tree", "graphs"}
    assert module["summary"]["nodes"] == sum(len(g["nodes"]) for g in module["graphs"]) == 14
    main = next(g for g in module["graphs"] if g["entry"])
    dot = next(n for n in main["nodes"] if n["name"] == "dot")
    assert dot == {"name": "dot", "op": "dot", "class": "contraction", "type": "f32[8,16]", "operands": ["x", "w"], "bytes": 512,
                   "attrs": {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0]}, "flops": 1024.0, "traffic": 896.0,
                   "scope": "jit(f)/dense/dot_general", "line": 20}


def test_json_of_a_text_with_faults_tells_them() -> None:
    found = as_json(FUSED.replace("reduce(biased, zero)", "reduce(biased, zeroo)"))
    assert found["ok"] is False
    assert found["findings"][0]["line"] == 23


def test_the_page_is_one_file_that_loads_nothing() -> None:
    facts = survey(FUSED)
    page = html_page(facts)
    assert page == html_page(survey(FUSED))
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!data:)", page)
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert packed(page, "text") == FUSED
    assert "{{" not in page.replace("{{0,1}}", "")


def test_the_page_knows_every_node_and_its_operands() -> None:
    facts = survey(LOOP)
    data = json.loads(packed(html_page(facts), "data"))
    by_name = {g["name"]: g for g in data["graphs"]}
    assert set(by_name) == set(facts.module.graphs)
    for graph in facts.module.graphs.values():
        told = by_name[graph.name]
        assert told["names"] == [n.name for n in graph.nodes]
        for node in graph.nodes:
            assert [node.index - back for back in told["operands"][node.index]] == [o.index for o in node.operands]
            assert data["titles"][told["title"][node.index]].split()[0] == node.op.name
    run = next(n for n in facts.module.graphs["main"].nodes if n.name == "run")
    bodies = by_name["main"]["bodies"][str(run.index)]
    assert [data["graphs"][b]["name"] for b in bodies] == ["cond", "body"]


def test_hostile_texts_do_not_leave_their_place() -> None:
    page = html_page(survey(FUSED.replace("HloModule fused", "HloModule fu.sed").replace("jit(f)/dense/add", "</script><b>x")))
    assert page.count("</script>") == 4
    assert "<b>x" not in page


def test_names_that_hold_line_feeds_stay_one_each() -> None:
    facts = survey(FUSED)
    nodes = facts.module.main().nodes
    nodes[1].name = "a\nb"
    data = json.loads(packed(html_page(facts), "data"))
    assert data["graphs"][0]["names"] == [node.name for node in nodes]


def test_repeated_layers_are_drawn_once() -> None:
    data = json.loads(packed(html_page(survey(layers(40))), "data"))
    main = data["graphs"][0]
    block = next(row for row in main["sections"] if row[2] == 40)
    assert block[3] == 40 * 4 + 1 + 40
    assert len(main["same"]) == 39 * 5
