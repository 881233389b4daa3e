"""Checks what irscope shows at first against the truth of ``truth.py``: ``python -m benchmarks.first_view.check truth.json``.

For each text: 5 to 60 boxes in the SVG; the costliest kernel, the most work, the largest copy, the costliest edge between kernels and every
kind of leak are in words of the picture and of the page; the json holds every value that leaks. Prints a table; exit status 1 where
anything is missing.
"""
from __future__ import annotations

import base64
import gzip
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

from irscope import api
from irscope.api.options import ShowOptions, View

FEWEST, MOST = 5, 60
REPEATED = re.compile(r"(?:×|\bx)\d+\b")


def shown(path: str, view: View) -> str:
    """What irscope shows of a text in one view."""
    result = api.show(path, ShowOptions(view=view))
    if view is View.JSON:
        stream = io.StringIO()
        result.write(stream)
        return stream.getvalue()
    return result.draw().decode()


def words_of(svg: str) -> str:
    """The words that are seen in a picture: no tooltips."""
    texts = re.findall(r"<text\b[^>]*>(.*?)</text>", svg, re.DOTALL)
    return "\n".join(texts).replace("&gt;", ">").replace("&#45;", "-").replace("&#37;", "%").replace("&#160;", " ").replace("&#215;", "×")


def first_words_of(page: str) -> str:
    """The words that the page shows beside the drawing at first."""
    packed = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', page)
    data = json.loads(gzip.decompress(base64.b64decode(packed[1]))) if packed else {"highlights": []}
    return "\n".join(text for text, _ in data["highlights"])


def names_one(words: str, wanted: list[Any]) -> bool:
    """Whether any of the names is in the words, of an edge both ends as one; true where there is nothing to name."""
    def is_in(one: Any) -> bool:
        text = " -> ".join(f"%{name}" for name in one) if isinstance(one, list) else f"%{one}"
        return re.search(re.escape(text) + r"(?![\w.\-])", words) is not None
    return not wanted or any(map(is_in, wanted))


def faults(path: str, wanted: dict[str, Any]) -> tuple[list[str], int, bool]:
    """What is missing from the first view of a text, how many boxes it has, and whether a repeat is folded."""
    svg = shown(path, View.SVG)
    highlights = json.loads(shown(path, View.JSON))["modules"][0]["highlights"]
    places = {"picture": words_of(svg), "page": first_words_of(shown(path, View.HTML))}
    boxes = svg.count('class="node"')
    found = [] if FEWEST <= boxes <= MOST else [f"{boxes} boxes"]
    for place, words in places.items():
        found += [f"{kind} not in the {place}" for kind in ("kernels", "work", "copies", "edges") if not names_one(words, wanted[kind])]
        found += [f"{label} not in the {place}" for label in wanted["leaks"] if f"dtype leak {label}:" not in words]
    leaking = {name for leak in highlights["leaks"] for name in leak["nodes"]}
    missing = {name for names in wanted["leaks"].values() for name in names} - leaking
    found += [f"{len(missing)} leaks not in the json"] if missing else []
    return found, boxes, REPEATED.search(places["picture"]) is not None


def main(file: str) -> int:
    """Print the table; whether anything is missing."""
    status = 0
    print("| text | instructions | boxes | repeats | missing |\n|---|---|---|---|---|")
    for path, wanted in json.loads(Path(file).read_text()).items():
        found, boxes, repeated = faults(path, wanted)
        status |= bool(found)
        repeats, missing = "folded" if repeated else "-", "; ".join(found) or "nothing"
        print(f"| {Path(path).name} | {wanted['nodes']:,} | {boxes} | {repeats} | {missing} |", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
