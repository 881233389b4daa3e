"""The command line parses, calls the api and prints: it does not grow again."""
from __future__ import annotations

import ast
from pathlib import Path

import irscope.cli
from irscope.cli.main import COMMANDS
from tests.conftest import Cli

FOLDER = Path(irscope.cli.__file__).parent
MOST = 900
"""Statements, docstrings aside. What a new command computes belongs into irscope/api."""
PARAMETERS = 6


def trees() -> dict[str, ast.Module]:
    return {path.name: ast.parse(path.read_text()) for path in sorted(FOLDER.glob("*.py"))}


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def test_statements() -> None:
    count = sum(isinstance(node, ast.stmt) and not is_text(node) for tree in trees().values() for node in ast.walk(tree))
    assert count <= MOST, count


def test_functions_have_few_parameters() -> None:
    many = [f"{name}:{node.name}" for name, tree in trees().items() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
            and len([a for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs) if a.arg != "self"]) > PARAMETERS]
    assert many == []


def test_every_option_says_what_it_does(cli: Cli) -> None:
    for name in COMMANDS:
        text = cli(name, "--help").stdout
        assert "  --limit-time" in text
        assert "[default: -]" not in text and "[default: False]" not in text, name
