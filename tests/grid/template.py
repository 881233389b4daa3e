"""Small programs around one kernel: what a template is, and how its text is made for a size, an element type and circumstances."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.grid.forms import FIRST, OTHERS, aliased
from tests.grid.sizes import ARRAYS
from tests.grid.text import Shape, Text, Value


class Maker(Text):
    """A text whose operands come in the forms that a case asks for. ``more`` are results beside the template's own."""

    def __init__(self, dtype: str, size: Shape, first: str = "plain", others: str = "plain") -> None:
        super().__init__()
        self.dtype, self.size = dtype, size
        self.more: list[Value] = []
        self.first: Value | None = None
        self._forms = first, others

    def operand(self, shape: Shape, dtype: str = "") -> Value:
        """The next operand of the kernel, by default of the case's element type."""
        first, others = self._forms
        dtype = dtype or self.dtype
        if self.first is None:
            self.first = FIRST[first](self, dtype, shape, self.more)
            return self.first
        form = OTHERS[others]
        return form(self, dtype, shape, self.more) if form else aliased(self, self.first, dtype, shape, self.more)

    def index(self, high: int, shape: Shape = (), dtype: str = "s32") -> Value:
        """Indices of -1 to ``high``: some lie outside of what has ``high`` elements."""
        return self.parameter(dtype, shape, -1, max(high, 0))


Build = Callable[[Maker], "Value | list[Value]"]


@dataclass(frozen=True, slots=True)
class Template:
    """``build`` writes the program of a size; ``family`` is the kernel family that takes it, at some size and element type at least."""

    name: str
    family: str
    build: Build
    sizes: tuple[Shape, ...]
    dtypes: tuple[str, ...]


TEMPLATES: dict[str, Template] = {}


def template(family: str, sizes: Sequence[Shape], dtypes: Sequence[str] = ARRAYS) -> Callable[[Build], Build]:
    """Enter a function as a template of its name."""
    def enter(build: Build) -> Build:
        name = str(getattr(build, "__name__"))  # noqa: B009
        assert name not in TEMPLATES, f"{name} is there twice"
        TEMPLATES[name] = Template(name, family, build, tuple(dict.fromkeys(sizes)), tuple(dtypes))
        return build
    return enter
