"""One JSON object a finding, a line each: for streams and jq."""

from __future__ import annotations

from irscope.lint.report import Report
from irscope.lint.reporters.json_ import edge_dict, finding_dict, stages_dict, statistic_dict
from irscope.source.data_text import strict_json


def write(report: Report) -> str:
    """Each line holds ``file`` and the keys of a finding, or under ``edge`` those of an edge, or under ``fusion`` what it is worth; with
    ``--statistics`` one line more a rule, under ``statistic``."""
    lines = [strict_json({"file": file.file, **finding_dict(f)}) for file in report.files for f in file.findings]
    lines += [strict_json({"file": file.file, "edge": edge_dict(e)}) for file in report.files for e in file.edges]
    lines += [strict_json({"file": file.file, "fusion": stages_dict(worth)}) for file in report.files for worth in file.stages]
    lines += [strict_json({"statistic": statistic_dict(row)}) for row in report.by_rule()] if report.statistics else []
    return "\n".join(lines)
