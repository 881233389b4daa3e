"""Inputs that reached something that no other did, in memory and in folders: a file each, whose name says whether it was deep."""
from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from irscope.formats.detect import detect_bytes
from tests.fuzz.entry import Entry, decode, format_of

SEEDS = Path(__file__).parent / "corpus"
"""The corpus of the repository."""
ROOT = Path(__file__).parents[2]
LONGEST = 20_000
"""Bytes of a sample that are taken."""
DEEP = 0.85
"""How often a deep entry is drawn: what changes a sound text is often sound, and errors are only so many."""

BY_FORMAT = 0.9
"""How often a format is drawn first, so that each comes up however many entries the others have."""


@dataclass(slots=True)
class Corpus:
    """Entries that were deep (tests/fuzz/entry.py), and the others."""

    deep: list[Entry] = field(default_factory=list)
    other: list[Entry] = field(default_factory=list)
    formats: dict[str, list[Entry]] = field(default_factory=dict)
    """Those that are deep, and the samples, by the format of their text."""

    def add(self, entry: Entry, deep: bool) -> None:
        (self.deep if deep else self.other).append(entry)
        if deep or not entry.args:
            self.formats.setdefault(format_of(entry), []).append(entry)

    def read(self, folder: Path) -> None:
        """Add the entries of a folder, by name."""
        for path in sorted(folder.glob("*.case")):
            self.add(decode(path.read_bytes()), path.name.startswith("deep"))

    def draw(self, rng: random.Random) -> Entry:
        """An entry; those that came last, which reached something new, come more often."""
        if rng.random() < BY_FORMAT:
            among = self.formats[rng.choice(sorted(self.formats.keys() - {"none"}))]
        else:
            among = self.deep if self.deep and (not self.other or rng.random() < DEEP) else self.other
        at = rng.randrange(len(among))
        return among[at if rng.random() < 0.5 else max(at, rng.randrange(len(among)))]

    def __len__(self) -> int:
        return len(self.deep) + len(self.other)

    def __iter__(self) -> Iterator[Entry]:
        yield from self.deep
        yield from self.other


def samples() -> Iterator[Entry]:
    """The texts and binary files of the repository that irscope reads, without a command line; the first part of long ones."""
    for path in sorted([*(ROOT / "samples").iterdir(), *(ROOT / "tests" / "data").rglob("*")]):
        if path.is_file():
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            entry = Entry((), {"a.txt": data if detect_bytes(data) is not None else data[:data.find(b"\n", LONGEST) + 1 or None]})
            if format_of(entry) != "none" and entry.size() <= 2 * LONGEST:
                yield entry
    for entry in [decode(path.read_bytes()) for path in sorted(SEEDS.glob("*.case"))]:
        yield from (Entry((), {"a.txt": content}) for name, content in entry.files.items() if name.endswith(".onnx"))


def file_name(data: bytes, deep: bool) -> str:
    """The name of the file of an entry."""
    return f"{'deep' if deep else 'other'}-{zlib.crc32(data):08x}.case"


def read_corpus(*folders: Path) -> Corpus:
    """The entries of several folders."""
    corpus = Corpus()
    for folder in folders:
        corpus.read(folder)
    return corpus


def with_samples(*folders: Path, formats: Collection[str] = ()) -> Corpus:
    """What inputs are drawn from: the samples, and the entries of several folders; those of some formats alone where they are given."""
    corpus = read_corpus(*folders)
    for entry in samples():
        corpus.add(entry, False)
    if not formats:
        return corpus
    chosen = Corpus(formats={name: entries for name, entries in corpus.formats.items() if name in formats})
    chosen.deep += [entry for entry in corpus.deep if format_of(entry) in formats]
    chosen.other += [entry for entry in corpus.other if format_of(entry) in formats]
    return chosen
