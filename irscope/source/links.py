"""Links of a terminal (OSC 8) from a line of the user's program to the file on this machine.

A dump must not make links of its own: ``file://host/share`` would have a click send a password to the host. So each link has an id that
this process alone knows, the guard of standard output lets no other pass, and only files that exist here are linked.
"""
from __future__ import annotations

import os
import re
import secrets
from functools import lru_cache
from urllib.parse import quote

_ID = f"irscope-{secrets.token_hex(8)}"
OWN_LINK = rf"\x1b\]8;id={_ID};file:///[A-Za-z0-9/._~%#-]*\x1b\\|\x1b\]8;;\x1b\\"
"""The pattern of the beginning of a link that :func:`linked` made, and of the end of any."""
# Terminals that are known to follow links. VTE does so from release 0.50.1 on (0.50.0 crashed).
_VARIABLES = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM")
_PROGRAMS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper")
_TERMS = ("xterm-kitty", "alacritty", "foot", "xterm-ghostty")
_VTE = 5001
_PLACE = re.compile(r"(?P<path>.+?):(?P<line>[0-9]+)(?::[0-9]+)?")


def linked(text: str, place: str) -> str:
    """``text`` as a link to ``place`` (``model.py:12``), or unchanged where no such file is on this machine."""
    found = _PLACE.fullmatch(place)
    if found is None:
        return text
    path = _existing(found["path"])
    return f"\x1b]8;id={_ID};file://{quote(os.fsencode(path))}#{found['line']}\x1b\\{text}\x1b]8;;\x1b\\" if path else text


@lru_cache(maxsize=4096)
def _existing(path: str) -> str:
    """The absolute path of a file; empty where there is none."""
    whole = os.path.abspath(path)
    return whole if whole.startswith("/") and not whole.startswith("//") and os.path.isfile(whole) else ""


def follows_links(stream: object) -> bool:
    """Whether ``stream`` is a terminal that follows links, by the variables that it sets; ``FORCE_HYPERLINK=0`` or ``1`` decides."""
    forced = os.environ.get("FORCE_HYPERLINK")
    if forced is not None:
        return forced != "0"
    if not getattr(stream, "isatty", lambda: False)() or "CI" in os.environ:
        return False
    vte = os.environ.get("VTE_VERSION", "")
    return (any(name in os.environ for name in _VARIABLES) or os.environ.get("TERM_PROGRAM") in _PROGRAMS
            or os.environ.get("TERM", "").startswith(_TERMS) or (vte.isdecimal() and len(vte) < 10 and int(vte) >= _VTE))
