"""The dump of XLA's GPU fusion pass: ``*.priority_fusion_dump.txt``, a FusionProcessDumpProto in text form.

    fusion_steps { producer_ineligible { producer_name: "fusion.5" reason: "No users to fuse" } }
    fusion_steps { update_priority { producer_name: "add.10.0" consumer_names: "add.11.0" us_fused: 1.021 us_unfused: 2.034 } }
    fusion_steps { fusion { fusion_name: "fusion.4" producer_name: "mul.14.0" consumer_name: "mul.15.0" } }

XLA writes the file next to the HLO with ``XLA_FLAGS="--xla_dump_to=D --xla_dump_hlo_pass_re=.*fusion.*"``.
"""
from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.fusion.logs.events import FusionLog, LoggedStep
from irscope.source import UserError

TOKEN = re.compile(r'(?<![\w.])([\w.]+)\s*(?::\s*("(?:[^"\\]|\\.)*"|[^\s{}]+)|(\{))|(\})')
ESCAPE = re.compile(r"\\(.)")


def sniff(text: str) -> bool:
    """Whether the text is such a dump."""
    return re.search(r"^[ \t]*(fusion_steps|gpu_device_info)\s*\{", text, re.MULTILINE) is not None


def read(text: str, name: str) -> FusionLog:
    """The steps of the one run in a dump; none if nothing was joined or refused. Raises UserError for a time that is not a number."""
    log = FusionLog("xla-gpu", name, "XLA", device=name if "gpu_device_info" in text else "")
    log.runs.append([step for kind, fields in _steps(text) for step in _read(kind, fields, name)])
    return log


def _read(kind: str, fields: dict[str, list[str]], name: str) -> Iterator[LoggedStep]:
    producer = (fields.get("producer_name") or [""])[0]
    if kind == "fusion":
        yield LoggedStep(producer, (fields.get("consumer_name") or [""])[0], made=(fields.get("fusion_name") or [""])[0])
    elif kind == "producer_ineligible":
        yield LoggedStep(producer, "", words=(fields.get("reason") or [""])[0])
    elif kind == "update_priority":
        fused, apart = (_time(key, (fields.get(key) or ["0"])[0], name) for key in ("us_fused", "us_unfused"))
        yield from (LoggedStep(producer, consumer, times=(fused, apart)) for consumer in fields.get("consumer_names", [""]))


def _time(key: str, text: str, name: str) -> float:
    """Microseconds of a field."""
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{name} is not a dump of XLA's fusion pass: {key} is {text[:40]!r}, which is not a number") from None


def _steps(text: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Each message inside ``fusion_steps``: its name and its fields."""
    stack: list[str] = []
    fields: dict[str, list[str]] = {}
    for found in TOKEN.finditer(text):
        key, value, opening, closing = found.groups()
        if opening:
            stack.append(key)
            fields = {}
        elif closing:
            if len(stack) == 2 and stack[0] == "fusion_steps":
                yield stack[1], fields
            if stack:
                stack.pop()
        elif len(stack) == 2 and stack[0] == "fusion_steps":
            fields.setdefault(key, []).append(ESCAPE.sub(r"\1", value[1:-1]) if value.startswith('"') else value)
