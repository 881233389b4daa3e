"""Runs an entry in this process and says what irscope broke of its promises.

An entry must end with status 0, 1 or 2, within :data:`SECONDS` of CPU time and :data:`MEGABYTES` of further memory; what it prints must
be what its format is, and hold no control characters; files that the command line does not name as outputs are unchanged.
"""
from __future__ import annotations

import io
import os
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from irscope.backends import pool
from irscope.cli.errors import run
from irscope.cli.main import group
from irscope.source import UserError
from tests.fuzz.cache_edits import edit_cache
from tests.fuzz.conditioning import loses_digits
from tests.fuzz.entry import DEEP, Entry, format_of, kind
from tests.fuzz.promises import broken_promise
from tests.fuzz.reading import read_text

SECONDS = 10.0
"""CPU time that an input may take."""
MEGABYTES = 1000
"""Memory by which an input may let the process grow."""
ALLOWED = 600
"""Megabytes that an entry with limits allows irscope itself: a program may state arrays of any size, and is to be refused in time."""
FEW_THREADS = 4
"""Threads of the pools that stay for the next input."""
ROOM = 3 << 30
"""Bytes of address space that an input may take: the machine's memory is not spent on a defect."""
WRITERS = {"-o", "--output", "--write-baseline", "--save-outputs"}
TOLERANCES = {"--expect", "--expect-from", "--rtol", "--atol"}
"""Options with which a run may differ by right from what it is compared with."""
LIMIT = "s of processor time"
ENVIRONMENT = {"IRSCOPE_TRACEBACK": "1", "IRSCOPE_NO_PROGRESS": "1", "TERM": "xterm", "COLUMNS": "100"}


class TookTooLong(BaseException):
    """An input that takes too long; no Exception, so that nothing on the way takes it for one of its own."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an entry. ``defect`` is empty, or tells faults of different causes apart; ``why`` is for people."""

    status: int | None
    defect: str = ""
    why: str = ""
    said: str = ""
    out: str = ""
    seconds: float = 0.0
    deep: bool = False


class _Stream(io.TextIOWrapper):
    """A text stream in memory, which may pass for a terminal."""

    def __init__(self, terminal: bool = False, content: bytes = b"") -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8", errors="surrogateescape", newline="")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def close(self) -> None:
        """It is read when the command is through."""

    def text(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode("utf-8", "surrogateescape")


def run_entry(entry: Entry, folder: Path, twice: bool = False) -> Outcome:
    """Run an entry in a folder, which is empty before and after; ``twice``: a second run must say the same."""
    os.environ.update(ENVIRONMENT)
    _write(entry, folder)
    try:
        os.environ["IRSCOPE_CACHE"] = str(folder / ".cache") if entry.cache else "off"
        outcome = _once(entry, folder)
        if not outcome.defect and (twice or entry.cache):
            edit_cache(folder / ".cache", entry.cache)
            _clear(folder, ".cache")  # what the first run wrote may be a dump of the folder that the second one is given
            _write(entry, folder)
            again = _once(entry, folder)
            outcome = again if again.defect else _compared(entry, outcome, again)
        return outcome
    finally:
        _clear(folder)
        _end_threads()


def _end_threads() -> None:
    """End pools of many threads: each reserves 8 MB of address space, and this process stays for the inputs to come."""
    for threads, each in list(pool._pools.items()):
        if threads > FEW_THREADS:
            each.stop()
            del pool._pools[threads]


def _compared(entry: Entry, one: Outcome, two: Outcome) -> Outcome:
    """The outcome, a defect where two runs differ; times are not compared, nor is what a limit of time ended."""
    if LIMIT in one.said + two.said:
        return one
    same = one.status == two.status and ({"--timing", "--bench"} & set(entry.args) or entry.args[:1] == ("compile-and-run",) or one.out == two.out)
    if same:
        return one
    return Outcome(two.status, f"unequal {kind(entry)}", f"first status {one.status}, then {two.status}\n{one.out[-1500:]}\n---\n{two.out[-1500:]}")


def _once(entry: Entry, folder: Path) -> Outcome:
    """One run, judged."""
    out, err = _Stream(entry.terminal), _Stream(entry.terminal)
    before = sys.stdin, sys.stdout, sys.stderr, os.getcwd()
    memory, most = resident(), peak()
    sys.stdin, sys.stdout, sys.stderr = _Stream(content=entry.files.get("a.txt", b"")), out, err
    started = time.process_time()
    status, defect = None, ""
    try:
        os.chdir(folder)
        with at_most(SECONDS):
            status = _run(entry)
    except TookTooLong as late:
        defect = f"slow {_place(late)}"
        err.write("".join(traceback.format_exception(late, limit=-25)))
    except BaseException as error:
        defect = f"escaped {type(error).__name__} {_place(error)}"
        err.write("".join(traceback.format_exception(error, limit=-25)))
    finally:
        sys.stdin, sys.stdout, sys.stderr = before[:3]
        os.chdir(before[3])
    seconds = time.process_time() - started
    said, complaint = out.text(), err.text()
    grown = peak() - memory if peak() > most else 0
    if not defect and status not in (0, 1, 2):
        defect = f"status {status} {_told_place(complaint)}"
    if not defect and grown > MEGABYTES:
        defect = f"memory {kind(entry)}"
    if not defect and status == 1 and entry.args[0] == "compile-and-run" and not TOLERANCES & set(entry.args):
        defect = "" if _quietly(entry, folder) else "differs from the reference"
    if not defect and status == 1 and kind(entry) == "opt --verify" and not TOLERANCES & set(entry.args):
        defect = f"pass changes values {' '.join(word for word in entry.args if '-' in word[1:] and not word.startswith('-'))}"
    defect = defect or broken_promise(entry, status, said, complaint, folder) or _meddled(entry, folder)
    sound = status in (0, 1) and kind(entry) in DEEP and "did not look at" not in said + complaint
    return Outcome(status, defect, complaint[-6000:], complaint, said, seconds, sound and not defect)


def _quietly(entry: Entry, folder: Path) -> bool:
    """Whether the program loses so many digits that its difference says nothing; it runs again, and what it prints is dropped."""
    before = sys.stdin, sys.stdout, sys.stderr, os.getcwd()
    sys.stdout, sys.stderr = _Stream(), _Stream()
    try:
        os.chdir(folder)
        with at_most(SECONDS):
            return loses_digits(lambda: _run(entry))
    except (TookTooLong, UserError):
        return False
    finally:
        sys.stdin, sys.stdout, sys.stderr = before[:3]
        os.chdir(before[3])


def _run(entry: Entry) -> int:
    """The status of a command line."""
    if entry.args[:1] == ("read",):
        try:
            read_text(entry.files.get("a.txt", b"").decode("utf-8", "replace"))
        except UserError as refused:
            refused.render()
            return 2
        return 0
    limited = "--limit-time" in entry.args and "--limit-memory" not in entry.args
    return run(group, (*entry.args, "--limit-memory", f"{ALLOWED}MB") if limited else entry.args, "irscope")


def _write(entry: Entry, folder: Path) -> None:
    """Put the files of an entry into the folder."""
    for name, content in entry.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _meddled(entry: Entry, folder: Path) -> str:
    """Whether files were changed, removed or made that the command line does not name as outputs."""
    outputs = {entry.args[i + 1] for i, word in enumerate(entry.args[:-1]) if word in WRITERS} | {word[2:] for word in entry.args if word.startswith("-o")}
    if kind(entry) == "compile-and-run --emit":
        outputs |= {Path(name).with_suffix(".h").as_posix() for name in outputs if Path(name).name}  # a library comes with its header
    settings = b"\n".join(entry.files.values()) if "--write-baseline" in entry.args else b""
    for name, content in entry.files.items():
        path = folder / name
        if not path.is_file() or (path.read_bytes() != content and (name not in outputs or _is_read(entry, name))):
            return f"input changed {kind(entry)}"
    for name in _names(folder):
        if name not in entry.files and name not in outputs and not name.startswith(".cache/") and name.encode() not in settings:
            return f"file left {kind(entry)}"
    return ""


def _names(folder: Path) -> Iterator[str]:
    """The files in a folder and below it, by their paths in it."""
    for at, _, names in os.walk(folder):
        inside = os.path.relpath(at, folder)
        yield from (name if inside == "." else f"{inside}/{name}" for name in names if os.path.isfile(os.path.join(at, name)))


def _is_read(entry: Entry, name: str) -> bool:
    """Whether the command line names a file as an input too; a baseline may be read and written again."""
    args = entry.args
    given = [i for i, word in enumerate(args) if word == name and args[i - 1] not in WRITERS]
    reports = any(args[i - 1] in WRITERS - {"--write-baseline"} for i, word in enumerate(args) if word == name)
    settings = name == "irscope.toml" and args[0] in ("lint", "check")
    skipped = "." in args and format_of(entry) == "none"  # a folder's file that is no dump: an earlier report, say
    if args[0] == "check" and not re.search(rb"a\.txt|\*", entry.files.get("irscope.toml", b"")):
        skipped = True  # the settings name the models
    return (name == "a.txt" and not skipped) or settings or any(reports or args[i - 1] != "--baseline" for i in given)


def _clear(folder: Path, kept: str = "") -> None:
    """Remove all that is in a folder, but what is named ``kept``."""
    for path in folder.iterdir():
        if path.name != kept:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def resident() -> int:
    """Megabytes of memory that this process holds now."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() >> 20
    except OSError:
        return peak()


def peak() -> int:
    """The most megabytes that it ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


_FRAME = re.compile(r'File ".*?irscope/((?!cli/errors)[\w/]+\.py)", line \d+, in (\w+)')


def _place(error: BaseException) -> str:
    """The innermost function of irscope that an exception came through. Lines move with every change; functions stay."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/irscope/" in f.filename]
    return f"{frames[-1].filename.rpartition('/irscope/')[2]}:{frames[-1].name}" if frames else ""


def _told_place(complaint: str) -> str:
    """The same of a traceback that irscope printed, behind the name of the exception."""
    frames = _FRAME.findall(complaint)
    raised = re.findall(r"^(?:\w+\.)*(\w+)(?::|$)", complaint, re.M)
    name = next((r for r in reversed(raised) if r[0].isupper()), "exception")
    return f"{name} {':'.join(frames[-1])}" if frames else name


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TookTooLong when what stands inside uses more CPU time."""
    def late(number: int, frame: FrameType | None) -> None:
        raise TookTooLong(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
