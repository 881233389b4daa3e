"""Draws the next input: a text from the corpus or a random program, changed or not, and a command line for it."""
from __future__ import annotations

import gzip
import random
import re
from dataclasses import replace

from irscope.formats.detect import detect
from tests.fuzz.binary import vary_bytes
from tests.fuzz.cache_edits import draw_edit
from tests.fuzz.corpora import Corpus
from tests.fuzz.entry import Entry
from tests.fuzz.forms import Draw, command_line
from tests.fuzz.spice import SPICE
from tests.fuzz.spoil import MAX_TEXT, Mutator
from tests.fuzz.vary import Variation
from tests.programs.campaign import program_of

PROGRAM = 0.2
"""How often the text is a random program (tests/programs), which is sound, and not one of the corpus."""
SPOILED = 0.1
"""How often a text is spoiled; it is varied otherwise, so that it often stays sound."""
NEW_LINE = 0.75
"""How often an entry of the corpus gets another command line."""
SPOILERS = {name: Mutator(words) for name, words in SPICE.items()}
FORMATS = ("hlo", "torchscript", "relay", "stablehlo", "export")


def draw_entry(corpus: Corpus, rng: random.Random, programs: float = PROGRAM) -> Entry:
    """An input that has probably never been seen; ``programs``: how often its text is a random program."""
    bound: tuple[str, ...] = ()
    if not corpus or rng.random() < programs:
        base, bound = _program(rng)
    else:
        base = corpus.draw(rng)
    other = corpus.draw(rng) if corpus and rng.random() < 0.8 else _program(rng)[0]
    text, lent = _text(base), _text(other)
    framed = vary_bytes(base.files.get("a.txt", b""), other.files.get("a.txt", b""), rng) if rng.random() > SPOILED else None
    changed = change(text, lent, rng) if framed is None else framed.decode("utf-8", "surrogateescape")
    # Command lines of two texts compare one with a change of it, or with a stranger.
    files = {"a.txt": _bytes(changed, rng), "b.txt": _bytes(rng.choice((text, text, changed, lent)), rng)}
    kept = {name: content for name, content in base.files.items() if name not in files}
    if base.args and rng.random() > NEW_LINE:
        line, extra = _spoiled_line(base.args, rng), {name: _spoiled_bytes(content, rng) for name, content in kept.items()}
    else:
        draw = Draw(rng, changed[:MAX_TEXT], bound)
        line, extra = command_line(draw), draw.files
    entry = Entry(_inside(line), {**files, **extra}, rng.random() < 0.1)
    if not any(word in entry.args for word in ("b.txt", ".")):
        entry = replace(entry, files={name: content for name, content in entry.files.items() if name != "b.txt"})
    if line[:1] == ("compile-and-run",) and "--emit" not in line and rng.random() < 0.1:
        entry = replace(entry, cache=tuple(draw_edit(rng) for _ in range(rng.choice((1, 1, 2, 4)))))
    return entry


def change(text: str, other: str, rng: random.Random) -> str:
    """A text that is varied or spoiled, by what its format is; a binary one is spoiled byte by byte."""
    format = detect(text) if text.strip() else None
    if format not in FORMATS:
        return SPOILERS[rng.choice(FORMATS)].mutate(text, other, rng)
    if rng.random() < SPOILED:
        return SPOILERS[format].mutate(text, other, rng)
    return Variation(format).vary(text, other, rng)[:2 * MAX_TEXT]


def _program(rng: random.Random) -> tuple[Entry, tuple[str, ...]]:
    """A random program, and the options that tell the types of its inputs where the text does not."""
    program = program_of(rng.randrange(1 << 40))
    text = program.text()
    options = [("--shape", f"{v.name}={','.join(map(str, v.shape))}", "--dtype", f"{v.name}={v.dtype}") for v in program.inputs
            if re.search(rf"%{v.name} : Tensor\b", text)]
    return Entry((), {"a.txt": text.encode()}), tuple(word for words in options for word in words)


def _text(entry: Entry) -> str:
    """The main text of an entry. Bytes that are no text stay what they are, as surrogates."""
    return entry.files.get("a.txt", b"").decode("utf-8", "surrogateescape")


def _bytes(text: str, rng: random.Random) -> bytes:
    """The text as a file; now and then in another encoding, or packed."""
    try:
        content = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # other surrogates than those of bytes
        content = text.encode("utf-8", "replace")
    if rng.random() > 0.01:
        return content
    packed = gzip.compress(content, 1, mtime=0)
    return rng.choice((packed, packed[:rng.randrange(len(packed))], b"\xef\xbb\xbf" + content, text.encode("utf-16", "replace"),
                       content.replace(b"\n", b"\r\n")))


def _spoiled_line(args: tuple[str, ...], rng: random.Random) -> tuple[str, ...]:
    """A command line with, now and then, one word spoiled."""
    if rng.random() < 0.7 or len(args) < 2:
        return args
    at = rng.randrange(1, len(args))
    spoiler = SPOILERS["query" if args[at - 1] == "--where" else "arguments"]
    spoiled = spoiler.mutate(args[at], rng.choice(args), rng)
    return (*args[:at], spoiled, *args[at + 1:])


def _inside(args: tuple[str, ...]) -> tuple[str, ...]:
    """The command line without paths that lead out of the folder of the input: nothing else is to be read or written.

    One process works, since a worker of the fuzzer has no children.
    """
    args = tuple(word.replace("\0", "") for word in args)  # no system hands that on
    safe = [word if (at and args[at - 1] == "--where") or not (word.startswith("/") or ".." in word) else "x" for at, word in enumerate(args)]
    return tuple("1" if at and safe[at - 1] == "--jobs" else word for at, word in enumerate(safe))


def _spoiled_bytes(content: bytes, rng: random.Random) -> bytes:
    """Settings, arrays or logs, half of them with a change."""
    if rng.random() < 0.5:
        return content
    text = content.decode("latin-1")
    return SPOILERS["config"].mutate(text, text, rng).encode("latin-1", "replace")
