"""What a campaign has found so far, on disk: it goes on where it was stopped, as long as irscope's code is the same."""
from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Result:
    """One case and what became of it."""

    key: str
    said: str
    why: str = ""
    families: list[str] = field(default_factory=list)


def tree_hash(folder: Path = ROOT / "irscope") -> str:
    """The name that git gives to the folder's content as it lies on disk: the same code has the same name, whatever is committed."""
    return _tree(folder).hex()


def _tree(folder: Path) -> bytes:
    entries = []
    for path in folder.iterdir():
        if path.name == "__pycache__" or path.suffix == ".pyc":
            continue
        if path.is_dir():
            entries.append((path.name + "/", b"40000", path.name, _tree(path)))
        else:
            mode = b"100755" if os.access(path, os.X_OK) else b"100644"
            entries.append((path.name, mode, path.name, _hashed(b"blob", path.read_bytes())))
    return _hashed(b"tree", b"".join(mode + b" " + name.encode() + b"\0" + digest for _, mode, name, digest in sorted(entries)))


def _hashed(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha1(kind + b" %d\0" % len(content) + content, usedforsecurity=False).digest()


class State:
    """A folder with a line for every case that has run, and the CPU seconds that they took."""

    def __init__(self, folder: Path, tree: str) -> None:
        self._file = folder / f"{tree[:12]}.jsonl"
        self.folder, self.tree = folder, tree
        self.results: dict[str, Result] = {}
        self.seconds = 0.0
        folder.mkdir(parents=True, exist_ok=True)
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                self._take(line)

    def _take(self, line: str) -> None:
        try:
            data = json.loads(line)
        except ValueError:
            return  # the last line of a campaign that was killed while it wrote
        self.seconds += data.pop("seconds", 0.0)
        self.results.update({r["key"]: Result(**r) for r in data.get("results", ())})

    def add(self, results: list[Result], seconds: float) -> None:
        """Keep the results of a batch."""
        shown = [{k: v for k, v in (("key", r.key), ("said", r.said), ("why", r.why), ("families", r.families)) if v} for r in results]
        line = json.dumps({"seconds": round(seconds, 3), "results": shown})
        with self._file.open("a") as file:
            file.write(line + "\n")
        self._take(line)

    def count(self) -> Counter[str]:
        """How many cases ended how."""
        return Counter(r.said for r in self.results.values())
