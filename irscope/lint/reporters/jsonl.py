"""One JSON object a finding, a line each: for streams and jq."""

from __future__ import annotations

import json

from irscope.lint.report import Report
from irscope.lint.reporters.json_ import edge_dict, finding_dict, stages_dict, statistic_dict


def write(report: Report) -> str:
    """Each line holds ``file`` and the keys of a finding, or under ``edge`` those of an edge, or under ``fusion`` what it is worth; with
    ``--statistics`` one line more a rule, under ``statistic``."""
    lines = [json.dumps({"file": file.file, **finding_dict(f)}) for file in report.files for f in file.findings]
    lines += [json.dumps({"file": file.file, "edge": edge_dict(e)}) for file in report.files for e in file.edges]
    lines += [json.dumps({"file": file.file, "fusion": stages_dict(worth)}) for file in report.files for worth in file.stages]
    lines += [json.dumps({"statistic": statistic_dict(row)}) for row in report.by_rule()] if report.statistics else []
    return "\n".join(lines)
