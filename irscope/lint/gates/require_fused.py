"""FUS018: a chain of operators that must be one kernel but is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice, pairwise

from irscope.analysis.values import written
from irscope.graph import Graph, Kind, Node
from irscope.lint.gate import Gate
from irscope.lint.planned import Planned
from irscope.ops import hlo, sets
from irscope.ops.attributes import GetTupleElement
from irscope.source import Finding, Note, UserError, did_you_mean

SEEN_THROUGH = sets.hlo("broadcast reshape bitcast copy convert transpose get-tuple-element") | sets.relay("reshape copy transpose")
"""What may stand between two operators of a chain without being named: it computes nothing."""
MAX_SHOWN = 20
MOST_CHAINS = 20_000
"""More chains are not looked at: their number may double with each operator of a graph."""
LISTED = 12
"""Operators that are named where a chain occurs nowhere."""


class RequireFused(Gate):
    """A chain of operators that is required to be one kernel is not.

    ## What it does
    Takes a chain such as ``dot,add,maximum`` (names may contain ``*``), finds every place where its operators follow each other, and
    requires that one kernel of the policy computes them all. An operator is named as the policy sees it (``dot``), or as the user wrote it
    (``aten::linear``, ``linear``, ``nn.dense``). Reshapes, broadcasts, casts and transposes may be between without being named. A
    pattern without a match is a finding too, because it protects nothing.

    ## Why is this bad?
    Performance that depends on a fusion is silently lost when the compiler is upgraded or a line of the model moves.

    ## Example
    ```
    irscope lint model.hlo --policy xla-cpu --require-fused 'dot,add,maximum'
    ```

    ## Use instead
    The finding names the edge that is not fused and the rule that decided; move the operator between, or remove the chain from the list.

    ## Known false positives
    None: it is a contract. If the operators also follow each other where fusion does not matter, add one more operator to the chain.
    """

    code, name, option = "FUS018", "require-fused", "--require-fused"

    @classmethod
    def judge(cls, planned: Planned, pattern: str) -> list[Finding]:
        """A finding for every occurrence that is apart, at its last operator; one when there is no occurrence, or nothing is known."""
        words = [word.strip() for word in pattern.split(",") if word.strip()]
        if len(words) < 2:
            raise UserError(f"{pattern!r} is no chain", "two operators or more with commas between: --require-fused 'dot,add,maximum'")
        if planned.unsized is not None:
            return [cls.not_known(planned.module, f"the kernels of {pattern} are", planned.unsized)]
        atoms = _Atoms(planned)
        chains = list(islice(_chains(atoms, words), MOST_CHAINS + 1))
        if len(chains) > MOST_CHAINS:
            message = f"more than {MOST_CHAINS:,} chains of {planned.module.name} are {pattern}"
            raise UserError(message, "name fewer operators, or rarer ones")
        if not chains:
            help = _where_it_ends(atoms, words)
            return [cls.broken(planned.module, f"no chain {pattern} in the graph that {planned.policy} looks at", help=help)]
        places = len(_places(chains))
        apart = _places(chain for chain in chains if not frozenset.intersection(*(atom.kernels for atom in chain)))
        findings = [cls._finding(planned, pattern, chain, places) for chain in apart[:MAX_SHOWN]]
        if len(apart) > MAX_SHOWN:
            findings.append(cls.broken(planned.module, f"{len(apart) - MAX_SHOWN} more chains {pattern} are apart"))
        return findings

    @classmethod
    def _finding(cls, planned: Planned, pattern: str, chain: tuple[_Atom, ...], n: int) -> Finding:
        notes = []
        for before, after in pairwise(chain):
            if not before.kernels & after.kernels:
                why = _reason(planned, before, after)
                notes.append(Note(f"{before} and {after} are in different kernels" + (f": {why}" if why else ""), before.node.loc))
        if not notes:
            notes.append(Note("each neighbour shares a kernel with the next, but no kernel has them all"))
        last = chain[-1]
        names = " -> ".join("%" + written(atom.node).name for atom in chain)
        message = f"{pattern} is not one kernel under {planned.policy}: {names} (one of {n} places)"
        return cls.broken(planned.module, message, at=(last.graph, written(last.node)), notes=tuple(notes))


@dataclass(slots=True, eq=False)
class _Atom:
    """An operator at work, a node or one in the body of a fusion (``outer``); ``kernels`` are those that compute it."""

    node: Node
    graph: Graph
    kernels: frozenset[int]
    outer: Node
    feeds: list[_Atom]

    def __str__(self) -> str:
        return f"%{written(self.node).name} ({self.node.op.name})"

    def words(self) -> set[str]:
        """The names by which the user may mean it."""
        names = {self.node.op.name} | {written.op.name for written in self.node.origin}
        return names | {name.rpartition("::")[2] for name in names} | {name.rpartition(".")[2] for name in names}


_Value = _Atom | tuple["_Value", ...] | None
"""Who makes a value: an atom, those of the elements of a tuple, or nobody (a parameter)."""


class _Atoms:
    """The operators of all plans with the bodies of fusions opened, and who feeds whom."""

    def __init__(self, planned: Planned) -> None:
        self.all: list[_Atom] = []
        self._after: dict[_Atom, list[_Atom]] = {}
        self._meant: dict[str, set[_Atom]] = {}
        number = 0
        for plan in planned.plans:
            kernels: dict[Node, set[int]] = {}
            for group in plan.groups:
                number += 1
                for node in group.nodes:
                    kernels.setdefault(node, set()).add(number)
            values: dict[Node, _Value] = {}
            for node in plan.graph.nodes:
                self._work(node, plan.graph, kernels, values)

    def _work(self, node: Node, graph: Graph, numbers: dict[Node, set[int]], values: dict[Node, _Value]) -> None:
        """Find who makes the value of a node. A policy names the fusion, or the nodes of its body; fusions do not stand in fusions."""
        kernels = frozenset(numbers.get(node, ()))
        if node.op is not hlo.fusion or not node.bodies:
            values[node] = self._made(node, graph, kernels, node, [values.get(operand) for operand in node.operands])
            return
        body = node.bodies[0]
        inner: dict[Node, _Value] = dict(zip(body.params, [values.get(operand) for operand in node.operands], strict=False))
        for step in body.nodes:
            if step not in inner:
                own = kernels | frozenset(numbers.get(step, ()))
                inner[step] = self._made(step, body, own, node, [inner.get(operand) for operand in step.operands])
        values[node] = inner.get(body.root) if body.root is not None else None

    def _made(self, node: Node, graph: Graph, kernels: frozenset[int], outer: Node, given: list[_Value]) -> _Value:
        if node.op is hlo.tuple:
            return tuple(given)
        if node.op is hlo.get_tuple_element and isinstance(given[0], tuple):
            index = GetTupleElement.of(node).index
            return given[0][index] if index < len(given[0]) else None
        atom = _Atom(node, graph, kernels, outer, [])
        for before in given:
            for one in before if isinstance(before, tuple) else (before,):
                if isinstance(one, _Atom):
                    one.feeds.append(atom)
        self.all.append(atom)
        return atom

    def after(self, atom: _Atom) -> list[_Atom]:
        """The atoms that take the value of an atom: see :func:`_next`."""
        if atom not in self._after:
            self._after[atom] = _next(atom)
        return self._after[atom]

    def meant(self, word: str) -> set[_Atom]:
        """The atoms that a word names."""
        if word not in self._meant:
            self._meant[word] = {atom for atom in self.all if any(fnmatchcase(name, word) for name in atom.words())}
        return self._meant[word]

    def reached(self, words: list[str]) -> list[set[_Atom]]:
        """For each word, the atoms where a chain of the words up to it ends; as far as there are any."""
        steps: list[set[_Atom]] = []
        for word in words:
            named = self.meant(word)
            found = named if not steps else {after for atom in steps[-1] for after in self.after(atom) if after in named}
            if not found:
                break
            steps.append(found)
        return steps


def _chains(atoms: _Atoms, words: list[str]) -> Iterator[tuple[_Atom, ...]]:
    """Every chain of atoms that the words name, each step a user of the one before, through what computes nothing."""
    steps = atoms.reached(words)
    if len(steps) < len(words):
        return
    # A step from which no chain goes on to the last word is left out: following all of them may take 2 ** len(words) steps.
    for number in reversed(range(len(words) - 1)):
        steps[number] = {atom for atom in steps[number] if not steps[number + 1].isdisjoint(atoms.after(atom))}
    for first in atoms.all:
        if first not in steps[0]:
            continue
        open_chains: list[tuple[_Atom, ...]] = [(first,)]
        while open_chains:
            chain = open_chains.pop()
            if len(chain) == len(words):
                yield chain
                continue
            open_chains += [(*chain, after) for after in atoms.after(chain[-1]) if after in steps[len(chain)]]


def _places(chains: Iterable[tuple[_Atom, ...]]) -> list[tuple[_Atom, ...]]:
    """One chain for each place in the text: several primitives may stand for one operator."""
    found: dict[tuple[Node, ...], tuple[_Atom, ...]] = {}
    for chain in chains:
        found.setdefault(tuple(written(atom.node) for atom in chain), chain)
    return list(found.values())


def _where_it_ends(atoms: _Atoms, words: list[str]) -> str:
    """How far a chain that occurs nowhere goes, and what follows there instead."""
    known = {name for atom in atoms.all for name in atom.words()}
    for word in words:
        if not any(fnmatchcase(name, word) for name in known):
            there = ", ".join(sorted({atom.node.op.name for atom in atoms.all})[:LISTED])
            return f"no operator is called {word}: " + (did_you_mean(word, known) or f"there are {there}")
    longest = len(atoms.reached(words))
    ends = [chain[-1] for chain in islice(_chains(atoms, words[:longest]), MAX_SHOWN)]
    ends.sort(key=lambda atom: atom.node.op.kind is Kind.LEAF)
    after = sorted({one.node.op.name for end in ends for one in atoms.after(end)})[:LISTED]
    begin = ",".join(words[:longest])
    return f"no {words[longest]} follows {begin}, at {ends[0]} for one: {', '.join(after) + ' does' if after else 'nothing does'}"


def _next(atom: _Atom) -> list[_Atom]:
    """The atoms that take the value: directly, or through what computes nothing (which may also be meant itself)."""
    found: list[_Atom] = []
    seen: set[int] = set()
    waiting = list(atom.feeds)
    while waiting:
        after = waiting.pop()
        if id(after) in seen:
            continue
        seen.add(id(after))
        found.append(after)
        if after.node.op in SEEN_THROUGH:
            waiting += after.feeds
    return sorted(found, key=lambda a: a.node.index)


def _reason(planned: Planned, before: _Atom, after: _Atom) -> str:
    """What the policy says of the edge between two atoms, or of one out of the first's kernel."""
    names = {before.node.name, before.outer.name}, {after.node.name, after.outer.name}
    nearly = ""
    for plan in planned.plans:
        for verdict in plan.unfused():
            producer, consumer = verdict.names
            if producer in names[0]:
                why = verdict.reason or verdict.cause or verdict.rule
                if consumer in names[1]:
                    return why
                nearly = nearly or why
    return nearly
