"""The outline of a module by the scopes of the user's program, looking through computations and fusions."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from irscope.analysis.calls import is_fusion
from irscope.analysis.classes import is_leaflike
from irscope.analysis.cost import ModuleCosts, is_kernel
from irscope.analysis.outline import Section, add_up, fold
from irscope.analysis.scopes import Scope
from irscope.graph import Graph
from irscope.graph.numbering import Numbering
from irscope.ops import hlo

MANY_CHILDREN = 12
_HEAD = re.compile(r"[^\d/()]*\d+(?=[_./\-])")


def outline_by_scope(title: str, graphs: Iterable[Graph], costs: ModuleCosts, structure: Numbering,
                     scopes: Callable[[Graph], list[Scope]]) -> Section:
    """Sections by the name paths of all nodes of ``graphs``, except reducers.

    A fused operation counts in the scope of the user's code; its kernel and its traffic count in that of the fusion.
    A chain of scopes with nothing else in them becomes one section, ``jit(step)/jvp(GPT)``.
    """
    calls = costs.calls
    root = Section(title, "module")
    places: dict[Scope, Section] = {(): root}
    classes: dict[Section, list[int]] = {root: []}
    for graph in graphs:
        if graph in calls.scalar:
            continue
        times, fused = calls.times[graph], graph in calls.fused
        cost, kinds = costs.graphs[graph], structure.nodes[graph]
        paths = scopes(graph)
        for i, node in enumerate(graph.nodes):
            if node.synthetic or node.op is hlo.parameter:
                continue
            section = places.get(paths[i]) or _place(paths[i], places, classes)
            section.nodes.append(node)
            section.n_nodes += 1
            section.ops[node.op.name] += 1
            if not is_leaflike(node):
                classes[section].append(kinds[i])
            section.is_open |= bool(cost.is_open[i])
            if not is_fusion(node):
                section.flops += times * cost.flops[i]
            if not fused:
                section.bytes += times * (cost.read[i] + cost.written[i])
                section.kernels += times * is_kernel(node)
    for section in list(root.walk()):
        _group_numbered(section, classes)
    shapes: dict[object, int] = {}
    for section in reversed(list(root.walk())):
        add_up(section, section.children)
        fold(section, classes[section], shapes)
        if len(section.children) == 1 and not section.nodes and section is not root:
            _absorb(section)
    return root


def _place(path: Scope, places: dict[Scope, Section], classes: dict[Section, list[int]]) -> Section:
    """The section of a path; creates it and its missing ancestors."""
    known = len(path)
    while path[:known] not in places:
        known -= 1
    section = places[path[:known]]
    for n in range(known, len(path)):
        child = places[path[:n + 1]] = Section(path[n], "scope")
        section.children.append(child)
        classes[child] = []
        section = child
    return section


def _group_numbered(section: Section, classes: dict[Section, list[int]]) -> None:
    """Put siblings that share a numbered head (``block_1_expand``, ``block_1_project``) under it: flat names often hide a hierarchy."""
    todo = [(section, "")]
    while todo:
        parent, above = todo.pop()
        if len(parent.children) <= MANY_CHILDREN:
            continue
        groups: dict[str, list[Section]] = {}
        for child in parent.children:
            head = _HEAD.match(child.title, len(above))
            groups.setdefault(head.group() if head else child.title, []).append(child)
        if len(groups) < 2:
            continue
        children: list[Section] = []
        for head_text, members in groups.items():
            head_text = above + head_text if not head_text.startswith(above) else head_text
            if len(members) < 2:
                children += members
                continue
            group = Section(head_text, "scope", children=members)
            classes[group] = []
            children.append(group)
            todo.append((group, head_text))
        parent.children = children


def _absorb(section: Section) -> None:
    """Merge an only child into its section, unless the child stands for several copies. The titles are joined."""
    child = section.children[0]
    if child.times > 1:
        return
    section.title += "/" + child.title
    section.nodes, section.children, section.shape = child.nodes, child.children, child.shape
