"""The query language: parses a query and selects nodes.

    query  = and {("or" | "|") and}
    and    = not {("and" | "&") not}
    not    = ("not" | "!") not | "(" query ")" | test
    test   = column [compare value] | function "(" name {"," name} ")" | word
    compare= "=" "==" "!=" "<" "<=" ">" ">=" "~" "!~"
    value  = number with unit (1MB, 2GiB, 3k) | word with stars | "text" | /regular expression/

``=`` on text accepts ``*`` (``op=reduce*``), ``~`` a regular expression. A word alone selects nodes of that operator or name.
Functions: ``near(NODE, 2)`` (``near(NODE, 2, tuples, fan-out)`` goes through these), ``deps(NODE)``, ``uses(NODE)``, ``between(A, B)``
(also ``path``), ``dominators(NODE)``, ``dominators(A, B)``, ``postdominators(NODE)``.
"""
from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import translate

from irscope.analysis.dominators import dominators, dominators_between, postdominators
from irscope.analysis.neighbourhood import THROUGH, around, between, find_node, needed_by, needing
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node
from irscope.query.columns import COLUMNS, Column
from irscope.source import Finding, Severity, SourceText, UserError, did_you_mean

Test = Callable[[Survey, Graph, Node], bool]

# What a word is made of; scopes hold brackets, jit(f)/transpose(jvp(f))/add, so a bracket that touches a word belongs to it.
_LETTER = r"""(?:[^\s()&|!,=<>~"'\[{]|\[[^\]]*\]|\{[^}]*\})"""
_TOKEN = re.compile(r"""
    (?P<blank>\s+)
  | (?P<regex>/(?:\\.|[^/\\])+/)
  | (?P<text>"[^"]*"|'[^']*')
  | (?P<compare>==|!=|<=|>=|!~|=|<|>|~)
  | (?P<sign>&&|\|\||[()&|!,])
  | (?P<word>(?!(?:near|deps|uses|path|between|dominators|postdominators|not|and|or)\()LETTER+(?:\((?:[^()]|\([^()]*\))*\)LETTER*)*|LETTER+)
""".replace("LETTER", _LETTER), re.VERBOSE)
_NUMBER = re.compile(r"([0-9.]+(?:e[+-]?\d+)?)([kKmMgGtT]i?)?(?:B|bytes|FLOPs?|flops?)?")
_RADIUS = re.compile(r"[0-9]{1,9}")
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
"""Comparisons of numbers, by the sign in a query or a gate."""
_FUNCTIONS = {"near": (1, 4), "deps": (1, 1), "uses": (1, 1), "path": (2, 2), "between": (2, 2), "dominators": (1, 2),
              "postdominators": (1, 1)}
"""The functions with their least and most arguments."""
_USAGE = "near(NODE, 2), deps(NODE), uses(NODE), between(A, B), dominators(NODE), dominators(A, B), postdominators(NODE)"
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query."""

    text: str
    test: Test

    def select(self, survey: Survey) -> list[tuple[Graph, Node]]:
        """The nodes of a module that the query picks, in the order of the text, without synthetic nodes."""
        return [(graph, node) for graph in survey.module.graphs.values() for node in graph.nodes
                if not node.synthetic and self.test(survey, graph, node)]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(text: str) -> Query:
    """Read a query; raises UserError with a caret at the fault."""
    reader = _Reader(text)
    test = reader.query(0)
    if reader.token.kind != "end":
        raise reader.fault(f"unexpected {reader.token.text!r}", "tests are joined by and, or")
    return Query(text, test)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = self._split()
        self.token = next(self._tokens)

    def query(self, depth: int) -> Test:
        if depth > MAX_DEPTH:
            raise self.fault(f"more than {MAX_DEPTH} nested brackets")
        tests = [self._and(depth)]
        while self._take("or", "|", "||"):
            tests.append(self._and(depth))
        return tests[0] if len(tests) == 1 else lambda s, g, n: any(test(s, g, n) for test in tests)

    def fault(self, message: str, help: str = "", token: _Token | None = None) -> UserError:
        """The error to raise, pointing at a token (default: the next one)."""
        token = token or self.token
        finding = Finding("QRY001", "bad-query", Severity.ERROR, message, SourceText("query", self.text), token.at, max(1, len(token.text)),
                          help=help)
        return UserError(f"the query {self.text!r} cannot be read", findings=[finding])

    def _and(self, depth: int) -> Test:
        tests = [self._not(depth)]
        while self._take("and", "&", "&&"):
            tests.append(self._not(depth))
        return tests[0] if len(tests) == 1 else lambda s, g, n: all(test(s, g, n) for test in tests)

    def _not(self, depth: int) -> Test:
        negate = False
        while self._take("not", "!"):
            negate = not negate
        if self._take("("):
            test = self.query(depth + 1)
            if not self._take(")"):
                raise self.fault("a bracket is not closed", "expected )")
        else:
            test = self._test()
        return (lambda s, g, n: not test(s, g, n)) if negate else test

    def _test(self) -> Test:
        token = self.token
        if token.kind not in ("word", "text", "regex"):
            raise self.fault("the query ends too early" if token.kind == "end" else f"expected a column or a name, found {token.text!r}")
        self._next()
        if token.kind == "word" and token.text in _FUNCTIONS and self.token.text == "(":
            return self._function(token)
        column = COLUMNS.get(token.text) if token.kind == "word" else None
        if self.token.kind == "compare":
            if column is None:
                hint = did_you_mean(token.text, COLUMNS) or "columns: " + ", ".join(COLUMNS)
                raise self.fault(f"there is no column {token.text}", hint, token)
            return self._compare(column)
        if column is not None:
            if column.kind != "flag":
                example = f"{column.name}>1" if column.kind == "number" else f"{column.name}=..."
                raise self.fault(f"{column.name} needs a comparison", f"for example {example}", token)
            return lambda s, g, n: bool(column.ask(s, g, n))
        matches = self._matcher(token)
        return lambda s, g, n: matches(n.op.name) or matches(n.name)

    def _compare(self, column: Column) -> Test:
        compare = self._next()
        value = self._next()
        if value.kind not in ("word", "text", "regex"):
            raise self.fault(f"expected a value after {compare.text}", token=value)
        ask = column.ask
        if column.kind == "flag":
            wanted = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(value.text.lower())
            if wanted is None or compare.text not in ("=", "==", "!="):
                raise self.fault(f"{column.name} is true or false", f"write {column.name} or not {column.name}", value)
            wanted = wanted == (compare.text != "!=")
            return lambda s, g, n: bool(ask(s, g, n)) == wanted
        if column.kind == "number":
            return self._compare_number(column, compare, value)
        if compare.text in ("~", "!~"):
            pattern = self._regex(value)
            found = compare.text == "~"
            return lambda s, g, n: (pattern.search(str(ask(s, g, n))) is not None) == found
        if compare.text not in ("=", "==", "!="):
            raise self.fault(f"{column.name} is text", "compare it with =, !=, ~ or !~", compare)
        if column.name == "shape" and value.kind == "word":
            while self._take(","):
                value = _Token("word", f"{value.text},{self._next().text}", value.at)
            value = _Token("word", value.text.strip("[]").replace("x", ","), value.at)
        matches, equal = self._matcher(value), compare.text != "!="
        return lambda s, g, n: matches(str(ask(s, g, n))) == equal

    def _compare_number(self, column: Column, compare: _Token, value: _Token) -> Test:
        number = _NUMBER.fullmatch(value.text) if value.kind == "word" else None
        if number is None:
            raise self.fault(f"{column.name} is a number, and {value.text} is none", "such as 12, 1.5k, 4MB, 2GiB", value)
        try:
            limit = float(number.group(1)) * _UNITS[(number.group(2) or "").lower()]
        except ValueError:
            raise self.fault(f"{value.text} is no number", token=value) from None
        ask = column.ask
        test = COMPARE.get(compare.text)
        if test is None:
            raise self.fault(f"{column.name} is a number", "compare it with = != < <= > >=", compare)
        return lambda s, g, n: test(float(ask(s, g, n)), limit)

    def _function(self, name: _Token) -> Test:
        arguments: list[_Token] = []
        self._take("(")
        while self.token.kind in ("word", "text"):
            arguments.append(self._next())
            if not self._take(","):
                break
        if not self._take(")"):
            raise self.fault(f"{name.text}( is not closed", "expected )")
        words = [a.text.strip("\"'") for a in arguments]
        least, most = _FUNCTIONS[name.text]
        takes = "two nodes" if least == 2 else "one or two nodes" if name.text == "dominators" else "a node"
        bad_near = name.text == "near" and (not all(_RADIUS.fullmatch(word) for word in words[1:2]) or not set(words[2:]) <= set(THROUGH))
        if not least <= len(words) <= most or bad_near:
            takes += ", a radius, and what it goes through (tuples, fan-out)" if bad_near and len(words) > 2 else ""
            raise self.fault(f"{name.text} takes {takes}", _USAGE, name)
        picked: dict[int, set[Node]] = {}

        def test(survey: Survey, graph: Graph, node: Node) -> bool:
            if id(survey) not in picked:
                picked[id(survey)] = _picked(survey, name.text, words)
            return node in picked[id(survey)]
        return test

    def _matcher(self, value: _Token) -> Callable[[str], bool]:
        if value.kind == "regex":
            pattern = self._regex(value)
            return lambda text: pattern.search(text) is not None
        wanted = value.text[1:-1] if value.kind == "text" else value.text.lstrip("%")
        if "*" in wanted or "?" in wanted:
            stars = re.compile(translate(wanted))
            return lambda text: stars.match(text) is not None
        return lambda text: text == wanted

    def _regex(self, value: _Token) -> re.Pattern[str]:
        body = value.text[1:-1] if value.kind in ("regex", "text") else value.text
        try:
            return re.compile(body)
        except re.error as error:
            raise self.fault(f"not a regular expression: {error.msg}", token=value) from None
        except (OverflowError, RecursionError):
            raise self.fault("a regular expression that is nested too deeply, or repeats too often", token=value) from None

    def _take(self, *texts: str) -> bool:
        if self.token.kind in ("word", "sign") and self.token.text in texts:
            self._next()
            return True
        return False

    def _next(self) -> _Token:
        token = self.token
        if token.kind != "end":
            self.token = next(self._tokens)
        return token

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self.fault("unexpected character", token=_Token("bad", self.text[at], at))
            if found.lastgroup != "blank":
                yield _Token(str(found.lastgroup), found.group(), at)
            at = found.end()
        yield _Token("end", "", len(self.text))


def _picked(survey: Survey, function: str, words: list[str]) -> set[Node]:
    graph, node = find_node(survey, words[0])
    if function == "near":
        return around(survey, graph, node, int(words[1]) if len(words) > 1 else 2, words[2:])
    single = {"deps": lambda: needed_by(graph, node), "uses": lambda: needing(survey, graph, node),
              "postdominators": lambda: postdominators(survey, graph, node), "dominators": lambda: dominators(graph, node)}
    if len(words) == 1:
        return single[function]()
    other_graph, other = find_node(survey, words[1])
    if other_graph is not graph:
        raise UserError(f"%{node.name} and %{other.name} are in different graphs", f"{graph.name} and {other_graph.name}")
    return (dominators_between if function == "dominators" else between)(survey, graph, node, other)
