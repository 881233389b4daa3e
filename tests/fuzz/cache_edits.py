"""What may happen to entries of the compilation cache between two runs, as lines of an input: ``flip 7``, ``cut 3``, ``swap``, ``pipe``."""
from __future__ import annotations

import os
import random
from pathlib import Path

EDITS = ("flip", "cut", "grow", "empty", "swap", "pipe", "link", "mode", "folder")


def draw_edit(rng: random.Random) -> str:
    """A line that changes an entry."""
    return f"{rng.choice(EDITS)} {rng.randrange(1 << 16)}"


def edit_cache(folder: Path, edits: tuple[str, ...]) -> None:
    """Change the entries of a cache, which the number of each line tells apart."""
    for line in edits:
        entries = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        if not entries:
            return
        word, _, argument = line.partition(" ")
        number = int(argument or 0)
        _edit(word, number, entries[number % len(entries)], entries)


def _edit(word: str, number: int, path: Path, entries: list[Path]) -> None:
    content = bytearray(path.read_bytes())
    if word == "flip" and content:
        content[number % len(content)] ^= 1 << number % 8
        path.write_bytes(content)
    elif word == "cut":
        path.write_bytes(content[:number % (len(content) + 1)])
    elif word == "grow":
        path.write_bytes(content + bytes(number % 100))
    elif word == "empty":
        path.write_bytes(b"")
    elif word == "swap":
        path.write_bytes(entries[(number + 1) % len(entries)].read_bytes())
    elif word == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif word == "link":
        path.unlink()
        path.symlink_to("/dev/zero")
    elif word == "folder":
        path.unlink()
        path.mkdir()
    elif word == "mode":
        path.chmod(0o666)
