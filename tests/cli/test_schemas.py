"""The json of every command follows the schema that is shipped for it (docs/json.md)."""
from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import irscope
from tests.conftest import REPO, Cli
from tests.schemas import conforms

PACKAGE = Path(irscope.__file__).parent
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in sorted((PACKAGE / "schemas").glob("*.json"))}
SCHEMAS["lint"] = json.loads((PACKAGE / "lint" / "report.schema.json").read_text())

DOCUMENTS = [
    ("show", "show samples/mlp.pre.hlo --format json"), ("show", "show samples/transformer.opt.hlo --format json --lint"),
    ("show", "show samples/tagger.inlined.txt --format json"), ("show", "show samples/dense.relay --format json"),
    ("show", "show samples/session.log --format json"), ("show", "show samples/wasteful.pre.hlo --format json --where op=add"),
    ("show", "show samples/rank_mismatch.relay --format json"),
    ("stats", "stats samples --format json --jobs 1 --signature"), ("stats", "stats samples/README.md --format json"),
    ("lint", "lint samples --format json --isolated --statistics"), ("lint", "lint samples/mlp.pre.hlo --why-not-fused --format json --isolated"),
    ("lint", "lint samples/mlp.pre.hlo --audit memory --format json"), ("lint", "lint samples/mlp.pre.hlo --audit dtype --format json"),
    ("compile-and-run", "compile-and-run samples/mlp.pre.hlo --format json --check --bench --runs 2"),
    ("compile-and-run", "compile-and-run samples/dense.relay --format json --engine reference"),
    ("compile-and-run", "compile-and-run samples/residual.pre.hlo --format json --profile --bench-seconds 0.01"),
    ("compile-and-run", "compile-and-run samples/newton.pre.hlo --format json --profile --bench-seconds 0.01 --peak table"),
    ("diff", "diff samples/mlp.pre.hlo samples/mlp.opt.hlo --format json --fail-if kernels>+0"),
    ("diff", "diff samples/mlp.pre.hlo samples/mlp.pre.hlo --format json"),
    ("rule", "rule DTY001 --format json"), ("rule", "rule --all --format json"),
    *[("list", f"list {kind} --format json") for kind in ("formats", "ops", "passes", "rules", "policies", "targets")],
    ("doctor", "doctor --format json"),
]
LINES = [
    ("lint-lines", "lint samples/wasteful.pre.hlo --format jsonl --isolated --statistics"),
    ("lint-lines", "lint samples/mlp.pre.hlo --why-not-fused --format jsonl --isolated"),
    ("lint-lines", "lint samples/mlp.pre.hlo --audit memory --format jsonl"),
]


@pytest.mark.parametrize(("name", "command"), DOCUMENTS, ids=[command for _, command in DOCUMENTS])
def test_documents(name: str, command: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPO)
    assert faults(name, json.loads(cli(*shlex.split(command)).stdout)) == []


@pytest.mark.parametrize(("name", "command"), LINES, ids=[command for _, command in LINES])
def test_lines(name: str, command: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPO)
    lines = cli(*shlex.split(command)).stdout.splitlines()
    assert lines and [fault for line in lines for fault in faults(name, json.loads(line))] == []


def test_records_of_stats_as_lines(cli: Cli, samples: Path) -> None:
    record = SCHEMAS["stats"]["$defs"]["record"]
    for line in cli("stats", samples, "--format", "jsonl").stdout.splitlines():
        assert conforms(json.loads(line), record, SCHEMAS["stats"]) == []


def test_check_reports_as_lint_does(cli: Cli, tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "irscope.toml").write_text(f'[check]\nmodels = ["{samples}/mlp.*.hlo", "none.hlo"]\nmax-kernels = 1\n')
    monkeypatch.chdir(tmp_path)
    assert faults("lint", json.loads(cli("check", "--format", "json").stdout)) == []


def test_every_schema_has_a_version_and_is_documented() -> None:
    page = (REPO / "docs" / "json.md").read_text()
    for name, schema in SCHEMAS.items():
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema", name
        assert schema["$id"].rpartition("-")[2] == "1", name
        assert name == "lint" or f"schemas/{name}.json" in page, name


def test_a_wrong_document_is_refused() -> None:
    assert faults("diff", {"same": 1})
    assert faults("rule", [{"code": "DTY001"}])


def faults(name: str, document: Any) -> list[str]:
    return conforms(document, SCHEMAS[name], SCHEMAS[name])
