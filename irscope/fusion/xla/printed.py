"""The releases of XLA whose dump a text may be, by what differs in how they print: metadata, operands, configurations of backends."""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from irscope.fusion.xla.releases import RELEASES
from irscope.graph import Module
from irscope.ops.module_attributes import HloModule

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sign:
    """A part of a text that only some releases print: those from ``since`` on and before ``until``; ``words`` describe it."""

    pattern: re.Pattern[str]
    words: str
    since: Version = ()
    until: Version = (9999,)


_NAMES = "its metadata names files and lines, or jit(main)"
_ORDER = "the order of the keys in its backend_config"
SIGNS = (
    Sign(re.compile(r"/jit\(main\)/"), _NAMES, until=(0, 7)),
    Sign(re.compile(r" source_line="), _NAMES, until=(0, 8)),
    Sign(re.compile(r" source_end_line="), _NAMES, since=(0, 5)),
    Sign(re.compile(r"stack_frame_id="), "its metadata numbers the places in the program", since=(0, 8)),
    Sign(re.compile(r'"__ynn_fusion"'), "its calls of YNNPACK", since=(0, 9)),
    Sign(re.compile(r"type=TOTALORDER"), "how it writes the order of floats", until=(0, 11)),
    Sign(re.compile(r"order=TOTAL\b"), "how it writes the order of floats", since=(0, 11)),
    Sign(re.compile(r"#\d+[,)]"), "operands like %x#1", since=(0, 11)),
    Sign(re.compile(r'backend_config=\{"(?:outer_dimension_partitions|known_trip_count)"'), _ORDER, until=(0, 11)),
    Sign(re.compile(r'backend_config=\{"(?:fusion_config|dynamic_variables)"'), _ORDER, since=(0, 11)),
)
"""Seen in the dumps of jaxlib 0.4.38, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1."""


def version(release: str) -> Version:
    """The numbers in the name of a release: (0, 12, 0, 1) of ``jaxlib-0.12.0.1``."""
    return tuple(int(number) for number in re.findall(r"\d+", release))


def shown_signs(module: Module) -> list[Sign]:
    """The signs in a text that XLA printed (its first line has the layout of the entry); empty for others."""
    text = module.source.text
    if HloModule.of(module).entry_computation_layout is None:
        return []
    return [sign for sign in SIGNS if sign.pattern.search(text)]


def possible(signs: Iterable[Sign], releases: Iterable[str]) -> list[str]:
    """Those releases, by name and in their order, that print all of some signs."""
    signs = list(signs)
    return [name for name in releases if all(sign.since <= version(name) < sign.until for sign in signs)]


def other_release(module: Module, policy: str) -> list[str]:
    """A remark that a text looks like the dump of another release than that of ``policy`` (``xla-cpu@jaxlib-0.10.2``), and which policy to
    use for it; empty if nothing shows that."""
    compiler, _, name = policy.partition("@")
    signs = shown_signs(module)
    against = [sign for sign in signs if not sign.since <= version(name) < sign.until]
    others = possible(signs, RELEASES[compiler])
    if not against or not others:
        return []
    return [f"the text looks like a dump of another release than {name}, as {others[0]} writes them ({against[0].words}): "
            f"--policy {compiler}@{others[0]} decides as that one"]
