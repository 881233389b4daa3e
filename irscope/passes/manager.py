"""Running passes in order: what each changed, how long it took, and whether the graph is still sound."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from irscope.analysis.types import check_types
from irscope.graph import Module
from irscope.passes import pass_named
from irscope.passes.base import Pass
from irscope.source import Finding, Severity, UserError

Observer = Callable[[str, Module], None]


@dataclass(frozen=True, slots=True)
class Step:
    """One pass that ran: the module before and after, the seconds, type errors that were not there before, and what it left alone."""

    name: str
    before: Module
    after: Module
    seconds: float
    broke: tuple[Finding, ...]
    declined: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[int, int]:
        """Statements before and after."""
        return _nodes(self.before), _nodes(self.after)


def run_passes(module: Module, passes: Sequence[Pass | str], before: Observer | None = None, check: bool = True) -> Iterator[Step]:
    """Run passes one after the other and tell each. ``before`` sees the module right before a pass.

    With ``check`` the types are inferred after each pass; errors that the module had before do not count.
    Raises UserError for an unknown name.
    """
    chosen = with_required([pass_named(p) if isinstance(p, str) else p for p in passes])
    faults = _faults(module) if check else set()
    for each in chosen:
        if before is not None:
            before(each.name, module)
        began = time.perf_counter()
        after = each.run(module)
        seconds = time.perf_counter() - began
        broke: tuple[Finding, ...] = ()
        if check and after is not module:
            broke = tuple(f for f in check_types(after) if f.severity is Severity.ERROR and _key(f) not in faults)
        yield Step(each.name, module, after, seconds, broke, tuple(each.declined))
        module = after


def chosen(passes: Sequence[Pass], opt_level: int | None = None, required: Sequence[str] = (), disabled: Sequence[str] = ()) -> list[Pass]:
    """The passes that run, as TVM's PassContext picks them: not disabled, and required or not above the level (None: any level)."""
    return [p for p in passes if p.name not in disabled and (p.name in required or opt_level is None or p.opt_level <= opt_level)]


def with_required(passes: Sequence[Pass]) -> list[Pass]:
    """The passes, with those that each requires right before it; one that just ran is not run again."""
    order: list[Pass] = []
    for each in passes:
        for name in each.requires:
            if not order or order[-1].name != name:
                order.append(pass_named(name))
        order.append(each)
    return order


def load_passes(path: str) -> dict[str, type[Pass]]:
    """The passes that a Python file of the user's own defines, by name. Raises UserError for a file that holds none."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("irscope_user_passes", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except Exception as error:
        raise UserError(f"{path} fails when it is imported: {type(error).__name__}: {error}") from error
    found = {v.name: v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Pass) and v is not Pass and v.name}
    if not found:
        raise UserError(f"{path} defines no pass", "a pass is a subclass of irscope.passes.Pass with a name and a method run(module)")
    return found


def _nodes(module: Module) -> int:
    return sum(not node.synthetic for graph in module.graphs.values() for node in graph.nodes)


def _faults(module: Module) -> set[tuple[str, str]]:
    return {_key(f) for f in check_types(module) if f.severity is Severity.ERROR}


def _key(finding: Finding) -> tuple[str, str]:
    return finding.node, finding.message
