"""One offline page: the whole module with its hierarchy, a search, a drawing that opens and closes, the text of every node.

The page loads nothing: graph, text, style and script are in one file. The graph is stored as columns of numbers and string tables,
compressed, because a hundred thousand nodes as objects would be a hundred megabytes.
"""
from __future__ import annotations

import gzip
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from importlib.resources import files

from irscope.analysis.summary import Costly, summarise
from irscope.analysis.survey import Survey
from irscope.graph import Node
from irscope.render.categories import GROUPS, PALETTES, Palette
from irscope.render.kernel_plan import KernelPlan
from irscope.render.labels import work_title
from irscope.render.page_data import page_data
from irscope.render.page_memory import memory_data
from irscope.render.page_plans import plan_data
from irscope.render.page_stages import PageStage, stage_data
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
_GROUNDS = (("light", False), ("dark", True))
MAX_TEXT = 64 << 20
"""A longer dump is left out of the page; its nodes still show everything but their own line."""

PROGRAM = ("layout.js", "model.js", "state.js", "colours.js", "paint.js", "panes.js", "findings.js", "edges.js", "costliest.js",
           "overlay.js", "memory.js", "stages.js", "panel.js", "query.js", "search.js", "text.js", "minimap.js", "export.js", "events.js")
"""The parts of the script, in order: while it loads, a part uses only those before it; at an event, any part uses any other."""


@dataclass(frozen=True, slots=True)
class PageOptions:
    """What a page shows besides the module: kernels and unfused edges of fusion policies (``plans``), the user's ``numbers`` as names and
    texts of files, nodes that changed (with ``note`` in words), the buffers of an out-of-memory error (``oom``, as for
    :func:`memory_data`), and the ``stages`` of a compilation, the module last (``stages_left_out`` counts those that are not shown).
    ``color_by`` and ``dark`` are the colours at first."""

    plans: Sequence[KernelPlan] = ()
    numbers: Sequence[tuple[str, str]] = ()
    changes: Mapping[Node, str] | None = None
    note: str = ""
    oom: Mapping[str, object] | None = None
    color_by: str = "class"
    dark: bool = False
    stages: Sequence[PageStage] = ()
    stages_left_out: int = 0


def html_page(survey: Survey, findings: Sequence[Finding] = (), options: PageOptions | None = None) -> str:
    """The page as one text."""
    options = options or PageOptions()
    source = survey.module.source
    data = page_data(survey, findings, options.changes)
    data["plans"] = [plan_data(survey, plan) for plan in options.plans]
    # As wide as the pane shows in a few lines each; the label stands in the first columns.
    summary = summarise(survey, N_COSTLY)
    lines = list(summary_lines(summary, Paint(160, False, True), survey.module.attrs))[1:]
    data["costliest"] = [_costly(one, survey) for one in summary.costly]
    data["summary"] = [[line[:LABEL + 2].strip(), line[LABEL + 2:]] for line in lines]
    data["themes"] = {"light": _theme(LIGHT), "dark": _theme(DARK)}
    data["dtypes"] = {name: list(astuple(c)) for name, c in OF_DTYPE.items()}
    data["heat"] = {name: [[share, *astuple(heat(share, dark))] for share in STOPS] for name, dark in _GROUNDS}
    data["groups"] = [list(astuple(colours)) for colours in GROUPS]
    data["palettes"] = {name: _palette(palette) for name, palette in PALETTES.items()}
    data["colour"], data["dark"], data["note"] = options.color_by, options.dark, options.note
    # As escapes: among its characters are surrogates, which no encoding has.
    data["unprintable"] = UNPRINTABLE.pattern.encode("unicode_escape").decode()
    data["stages"], blocks, left_out = stage_data(options.stages)
    data["stagesLeftOut"] = options.stages_left_out + left_out
    data["numbers"] = [list(one) for one in options.numbers]
    data["hasText"] = bool(source.text) and len(source.text) <= MAX_TEXT
    text = source.text if data["hasText"] else ""
    style = _asset("page.css")
    program = '"use strict";\n' + "".join(map(_asset, PROGRAM)) + "start();\n"
    parts = {
        "POLICY": policy_of(program, style),
        "TITLE": markup(f"{survey.module.name} - {source.name}"),
        "STYLE": style,
        "DATA": _packed(_compact(data)),
        "MEMORY": _packed(_compact(memory_data(survey, options.oom))),
        "STAGES": "\n".join(f'<script type="text/plain" id="stage-{i}">{_packed(_compact(one))}</script>' for i, one in enumerate(blocks)),
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


def _compact(data: object) -> str:
    return strict_json(data, ensure_ascii=False, separators=(",", ":"))


def _palette(palette: Palette) -> dict[str, object]:
    grounds = {name: [list(astuple(palette.colours(category, dark))) for category in palette.fills] for name, dark in _GROUNDS}
    return {"title": palette.title, "names": list(palette.fills), "first": list(palette.first), **grounds}


def _costly(one: Costly, survey: Survey) -> list[object]:
    """A row for ``page/costliest.js``."""
    node = one.node
    return [f"{one.graph.name}/{node.name}", work_title(node, survey.naming), one.share, one.flops, one.bytes, one.times, one.source]


def _theme(theme: Theme) -> dict[str, object]:
    return {"background": theme.background, "text": theme.text, "faint": theme.faint, "edge": theme.edge, "stored": theme.stored,
            "cluster": theme.cluster, "border": theme.cluster_border, "classes": {name: astuple(c) for name, c in theme.classes.items()}}
