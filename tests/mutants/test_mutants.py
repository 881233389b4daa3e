"""The mutation tests' own tests: where a text can be mutated, and that a copy is put back."""
from __future__ import annotations

from pathlib import Path

from tests.mutants.points import is_valid, points
from tests.mutants.trial import Trial, suites_of

TEXT = '''"""A docstring with 1 number."""
LIMIT: int = 4
OPS = {"add", "Sum of all"}


def f(x: int, names: list[str]) -> int:
    """Whether 1 < 2."""
    if x < LIMIT and not names:
        raise ValueError(f"{x + 1} is too small")
    names.append("é"); x += 1
    return max(x, 3)
'''


def changes(text: str) -> set[tuple[str, str]]:
    return {(p.old, p.new) for p in points("irscope/graph/f.py", text) if is_valid(p, text)}


def test_code_is_mutated_and_words_for_readers_are_not() -> None:
    found = changes(TEXT)
    assert found == {
        ("4", "(4 + 1)"), ('"add"', '"mutated"'), ("<", "<="), ("and", "or"), ("not ", ""), ("x < LIMIT and not names", "(not (x < LIMIT and not names))"),
        ('names.append("é")', "pass"), ("x += 1", "pass"), ("1", "(1 + 1)"), ("return max(x, 3)", "return None"), ("max", "min"), ("3", "(3 + 1)"),
    }


def test_a_change_is_made_where_it_says() -> None:
    [point] = [p for p in points("irscope/graph/f.py", TEXT) if p.old == "x += 1"]
    assert point.line == 10 and point.where == 'names.append("é"); x += 1'
    assert 'names.append("é"); pass' in point.apply(TEXT)


def test_a_mutant_is_noticed_and_taken_out_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name, text in {"irscope/__init__.py": "", "irscope/graph/__init__.py": "", "irscope/graph/small.py": "def double(x):\n    return x * 2\n",
                       "tests/graph/test_small.py": "from irscope.graph.small import double\n\ndef test_double():\n    assert double(3) == 6\n",
                       "tests/graph/test_other.py": "def test_other():\n    pass\n",
                       "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    trial = Trial(root, tmp_path / "copy")
    path = "irscope/graph/small.py"
    assert suites_of(root, path) == ["tests/graph/test_small.py", "tests/graph/test_other.py"]
    text = (root / path).read_text()
    said = {(p.old, p.new): trial.run(p).said for p in points(path, text) if p.old in ("2", "*")}
    assert said == {("*", "+"): "noticed", ("2", "(2 + 1)"): "noticed"}
    assert (tmp_path / "copy" / path).read_text() == text
