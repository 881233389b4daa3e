"""What a notebook shows of irscope's objects.

Notebooks ask an object for a page (``_repr_html_``) and for a picture (``_repr_svg_``). The rooms that define the objects cannot draw:
``irscope.api`` sets the viewer, which does.
"""
from __future__ import annotations

from typing import Protocol


class Viewer(Protocol):
    """Shows objects; None for an object of which it has no such view."""

    def html(self, what: object) -> str | None: ...

    def svg(self, what: object) -> str | None: ...


_viewers: list[Viewer] = []


def set_viewer(viewer: Viewer) -> None:
    """Let objects be shown by ``viewer`` from now on."""
    _viewers[:] = [viewer]


class Viewable:
    """An object that a notebook shows as more than its ``repr``."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return _viewers[0].html(self) if _viewers else None

    def _repr_svg_(self) -> str | None:
        return _viewers[0].svg(self) if _viewers else None
