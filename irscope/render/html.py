"""One offline page: the whole module with its hierarchy, a search, a drawing that opens and closes, the text of every node.

The page loads nothing: graph, text, style and script are in one file. The graph is stored as columns of numbers and string tables,
compressed, because a hundred thousand nodes as objects would be a hundred megabytes.
"""
from __future__ import annotations

import gzip
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import astuple
from importlib.resources import files

from irscope.analysis.summary import Costly, summarise
from irscope.analysis.survey import Survey
from irscope.render.kernel_plan import KernelPlan
from irscope.render.labels import work_title
from irscope.render.page_data import page_data
from irscope.render.page_plans import plan_data
from irscope.render.paint import Paint
from irscope.render.palette import OF_DTYPE, STOPS, heat
from irscope.render.summary import LABEL, summary_lines
from irscope.render.theme import DARK, LIGHT, Theme
from irscope.source import Finding
from irscope.source.data_text import strict_json
from irscope.source.page_policy import policy_of
from irscope.source.visible import UNPRINTABLE, markup

N_COSTLY = 10
"""Operations in the list of the costliest."""
MAX_TEXT = 64 << 20
"""A longer dump is left out of the page; its nodes still show everything but their own line."""

PROGRAM = ("layout.js", "model.js", "state.js", "paint.js", "panes.js", "findings.js", "edges.js", "costliest.js", "overlay.js", "panel.js",
           "query.js", "search.js", "text.js", "minimap.js", "export.js", "events.js")
"""The script, in parts: each uses those before it, and all of them what they do at an event."""


def html_page(survey: Survey, findings: Sequence[Finding] = (), plans: Sequence[KernelPlan] = (),
              numbers: Sequence[tuple[str, str]] = ()) -> str:
    """The page as one text, with the kernels and unfused edges of fusion policies. ``numbers`` are files of numbers per node, by name."""
    source = survey.module.source
    data = page_data(survey, findings)
    data["plans"] = [plan_data(survey, plan) for plan in plans]
    # As wide as the pane shows in a few lines each; the label stands in the first columns.
    summary = summarise(survey, N_COSTLY)
    lines = list(summary_lines(summary, Paint(160, False, True), survey.module.attrs))[1:]
    data["costliest"] = [_costly(one, survey) for one in summary.costly]
    data["summary"] = [[line[:LABEL + 2].strip(), line[LABEL + 2:]] for line in lines]
    data["themes"] = {"light": _theme(LIGHT), "dark": _theme(DARK)}
    data["dtypes"] = {name: list(astuple(c)) for name, c in OF_DTYPE.items()}
    data["heat"] = [[share, *astuple(heat(share))] for share in STOPS]
    # As escapes: among its characters are surrogates, which no encoding has.
    data["unprintable"] = UNPRINTABLE.pattern.encode("unicode_escape").decode()
    data["numbers"] = [list(one) for one in numbers]
    data["hasText"] = bool(source.text) and len(source.text) <= MAX_TEXT
    text = source.text if data["hasText"] else ""
    style = _asset("page.css")
    program = '"use strict";\n' + "".join(map(_asset, PROGRAM)) + "start();\n"
    parts = {
        "POLICY": policy_of(program, style),
        "TITLE": markup(f"{survey.module.name} - {source.name}"),
        "STYLE": style,
        "DATA": _packed(strict_json(data, ensure_ascii=False, separators=(",", ":"))),
        "TEXT": _packed(text),
        "PROGRAM": program,
    }
    # In one pass, so that a name in the title is never taken for another part.
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return files("irscope.render").joinpath("page", name).read_text(encoding="utf-8")


def _packed(text: str) -> str:
    """Compressed and in letters that neither HTML nor an editor touches; the same bytes for the same text."""
    return b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode("ascii")


def _costly(one: Costly, survey: Survey) -> list[object]:
    """A row for ``page/costliest.js``."""
    node = one.node
    return [f"{one.graph.name}/{node.name}", work_title(node, survey.naming), one.share, one.flops, one.bytes, one.times, one.source]


def _theme(theme: Theme) -> dict[str, object]:
    return {"background": theme.background, "text": theme.text, "faint": theme.faint, "edge": theme.edge, "stored": theme.stored,
            "cluster": theme.cluster,
            "border": theme.cluster_border, "classes": {name: [c.fill, c.border, c.text] for name, c in theme.classes.items()}}
