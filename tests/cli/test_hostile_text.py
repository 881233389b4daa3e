"""Names and strings of a stranger's dump cannot move a terminal's cursor, reorder a line, break a drawing, or run in a page."""
from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from irscope.source.visible import UNPRINTABLE, json_text, markup, one_line, visible
from tests.conftest import Cli

EVIL = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\u202egnp\u2066\u200b\x7f\x08</script><script>alert(1)</script>]]>&\"'"
HLO = f"""HloModule evil
ENTRY main {{
  %p = f32[8,8]{{1,0}} parameter(0), metadata={{op_name="jit(f)/{EVIL.replace('"', '')}/a" source_file="{EVIL.replace('"', '')}.py" source_line=1}}
  %q = f32[8,8]{{1,0}} negate(%p), metadata={{op_name="jit(f)/{EVIL.replace('"', '')}/b" source_file="x.py" source_line=3}}
  %t = f32[8,8]{{1,0}} tanh(%q), metadata={{op_name="jit(f)/{EVIL.replace('"', '')}/b"}}
  %u = f32[8,8]{{1,0}} tanh(%q), metadata={{op_name="jit(f)/{EVIL.replace('"', '')}/b"}}
  %s = f32[8,8]{{1,0}} add(%t, %u)
  ROOT %c = f32[8,8]{{1,0}} custom-call(%s), custom_call_target="{EVIL.replace('"', '')}", backend_config="{EVIL.replace('"', '')}"
}}
"""
BROKEN = HLO.replace("negate(%p)", f"negate(%absent), frontend_attributes={{x=\"{EVIL[:12]}\"}}")
TORCH = f"""graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %s : str = prim::Constant[value="{EVIL.replace('"', '')}"]()
  %y : Float(2, 2) = aten::relu(%x), scope: __module.{EVIL.replace('"', '')}/{EVIL.replace('"', '')} # {EVIL.replace('"', '')}.py:1:0
  %z : Float(2, 2) = aten::frobnicate(%y, %s)
  return (%z)
"""
RELAY = f"""def @main(%x: Tensor[(2), float32]) {{
  custom_op(%x, a="{EVIL.replace('"', '')}") /* {EVIL.replace('*', '')} */
}}
"""
TEXTS = {"evil.hlo": HLO, "broken.hlo": BROKEN, "evil.txt": TORCH, "evil.relay": RELAY}
FOR_PEOPLE = [
    ("show", "{}"), ("show", "{}", "--all"), ("show", "{}", "--lint"), ("show", "{}", "--where", "op!=zzz"), ("stats", "{}"),
    ("stats", "{}", "--format", "jsonl", "--signature"), ("lint", "{}"), ("lint", "{}", "--why-not-fused"), ("lint", "{}", "--audit", "memory"),
    *(("lint", "{}", "--format", f) for f in ("concise", "json", "jsonl", "sarif", "github", "gitlab", "junit", "markdown")),
    ("diff", "{}", "{}"), ("diff", "{}", "{}", "--format", "markdown"), ("compile-and-run", "{}"), ("show", "{}", "--format", "json"),
    ("show", "{}", "--around", "\x1b[31mred"), ("lint", "{}", "--select", "\x1b[31mred"), ("show", "{}.\x1b[2J"),
]


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("words", FOR_PEOPLE, ids=lambda words: visible(" ".join(words)))
def test_only_visible_characters_are_printed(cli: Cli, evil: Path, name: str, words: tuple[str, ...]) -> None:
    told = cli(*(word.format(evil / name) for word in words))
    assert told.exit_code in (0, 1, 2), told.output
    found = UNPRINTABLE.findall(told.stdout + told.stderr)
    assert not found, (found, told.output)


@pytest.mark.parametrize("name", ["evil.hlo", "evil.txt", "evil.relay"])
def test_drawings_are_well_formed(cli: Cli, evil: Path, name: str) -> None:
    for out in ("x.svg", "x.dot"):
        assert cli("show", evil / name, "-o", evil / out).exit_code == 0
        assert not UNPRINTABLE.search((evil / out).read_text())
    assert ElementTree.parse(evil / "x.svg").getroot().tag.endswith("svg")


def test_json_keeps_what_the_dump_says(cli: Cli, evil: Path) -> None:
    told = json.loads(cli("show", evil / "evil.hlo", "--format", "json").stdout)
    assert "\u202egnp\u2066" in json.dumps(told, ensure_ascii=False)


def test_program_text_in_a_pipe_is_not_changed(cli: Cli, evil: Path) -> None:
    assert cli("show", evil / "evil.hlo", "--format", "text").stdout == HLO
    assert EVIL.replace('"', "") in cli("opt", evil / "evil.relay", "--infer").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are those of POSIX")
@pytest.mark.parametrize("words", [("show", "--format", "text"), ("lint",), ("show",), ("opt", "--passes", "share-equal")])
def test_a_terminal_gets_no_controls_but_colours(evil: Path, words: tuple[str, ...]) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "FORCE_COLOR": "1"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen([sys.executable, "-m", "irscope", words[0], str(evil / "evil.hlo"), *words[1:]], stdout=theirs, stderr=theirs,
                               env=environment)
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    assert process.wait() in (0, 1)
    rest = re.sub(r"\x1b\[[\d;]*m|\r\n", "", said.decode())
    assert "evil" in rest
    assert not UNPRINTABLE.search(rest)


@pytest.mark.parametrize(("words", "data"), [
    (("show", "{0}", "-o", "{1}"), 3),
    (("diff", "{0}", "{2}", "--format", "html", "-o", "{1}"), 0),
])
def test_pages_run_their_own_script_alone(cli: Cli, evil: Path, words: tuple[str, ...], data: int) -> None:
    (evil / "other.hlo").write_text(HLO.replace("tanh(%q)", "cosine(%q)", 1))
    assert cli(*(word.format(evil / "evil.hlo", evil / "page.html", evil / "other.hlo") for word in words)).exit_code == 0
    page = (evil / "page.html").read_text()
    assert "unsafe-inline" not in page and page.count("script-src 'sha256-") == 1
    assert page.count("<script>") == 1 and page.count("<script type=") == data
    assert not re.search(r"\son\w+=|\sstyle=", page.partition("<script")[0])


def test_the_one_escape_function() -> None:
    assert visible("plain ü 漢\n\t") == "plain ü 漢\n\t"
    assert visible("\x1b[31m\x9b\u202e\x7f\r") == "␛[31m\ufffd\ufffd␡␍"
    assert len(visible(EVIL)) == len(EVIL)
    assert one_line("a\nb\tc\x00") == "a b c␀"
    assert markup('<\x1b&">') == "&lt;␛&amp;&quot;&gt;"
    assert json.loads(json_text(json.dumps([EVIL, "\ud800"], ensure_ascii=False) + "\r\n")) == [EVIL, "\ud800"]


@pytest.mark.parametrize(("encoding", "words"), [
    ("ascii", ("show",)), ("latin-1", ("show", "--ops")), ("ascii", ("show", "--format", "text")), ("ascii", ("show", "--format", "json"))])
def test_characters_that_the_encoding_lacks_are_replaced(tmp_path: Path, encoding: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "x.hlo"
    path.write_text('ENTRY main {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p), metadata={op_name="\u4e16/\u202e/\u00e9" '
                    'source_file="\u4e16.py" source_line=1}\n}\n')
    done = subprocess.run([sys.executable, "-m", "irscope", *words, str(path)], env={**os.environ, "PYTHONIOENCODING": encoding},
                          capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    if "json" in words:
        json.loads(done.stdout.decode(encoding))
