"""What a function reports while it works: notes, and the stages of long work. The command line prints both; the default reports nothing."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from irscope.api.verification import Verification
from irscope.graph import Module
from irscope.source import UserError

if TYPE_CHECKING:
    from irscope.passes.manager import Step

T = TypeVar("T")


class Watcher:
    """Callbacks: override the methods of interest. One watcher may watch several calls."""

    def note(self, text: str) -> None:
        """A note to the user about the call: one line, without ``note:``."""

    def unusable(self, name: str, error: UserError) -> None:
        """One of several inputs cannot be used; the others still are."""

    @contextmanager
    def stage(self, label: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """A context for work that may take long. The function that it yields is called for each finished item of ``total``."""
        yield lambda: None

    def track(self, items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
        """The items, counted as a stage while the caller works on them."""
        with self.stage(label, total) as advance:
            for item in items:
                yield item
                advance()


class PassWatcher(Watcher):
    """Callbacks for each pass as it runs."""

    def before(self, name: str, module: Module) -> None:
        """The module right before a pass that ``print_before`` names."""

    def after(self, name: str, module: Module) -> None:
        """The module right after a pass that ``print_after`` names."""

    def step(self, step: Step) -> None:
        """What a pass did."""

    def done(self, text: str, steps: list[Step], broken: list[str]) -> None:
        """All passes have run: the text of the result, the steps and those that broke something. The last comparison follows."""

    def verified(self, step: Step | None, found: Verification) -> None:
        """Whether a step preserved the results; a step of None means all passes together."""


SILENT = Watcher()
