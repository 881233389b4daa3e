"""What a change saves or adds, in words."""

from __future__ import annotations

from irscope.lint.proven.fix import Saving
from irscope.lint.savings import human_bytes
from irscope.source.plural import plural


def saving_words(saves: Saving) -> str:
    """``1 kernel, 32 KiB``."""
    parts = [plural(round(saves.kernels), "kernel")] if saves.kernels > 0 else []
    parts += [human_bytes(saves.bytes)] if saves.bytes else []
    more = f" (and starts {plural(round(-saves.kernels), 'kernel')} more)" if saves.kernels < 0 else ""
    return ", ".join(parts) + more


def addition_words(more: Saving) -> str:
    """The positive parts of a difference: ``18 kernels, 646 MiB more``."""
    parts = [plural(round(more.kernels), "kernel")] if more.kernels > 0 else []
    parts += [human_bytes(more.bytes)] if more.bytes > 0 else []
    return f"{', '.join(parts)} more" if parts else "its time is longer"
