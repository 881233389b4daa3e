"""``irscope capture``: runs a program with the compiler's dumps switched on, and opens what it wrote."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from irscope.api.linting import LintResult, lint
from irscope.api.options import CaptureOptions, LintOptions, ShowOptions
from irscope.api.showing import ShowResult, show
from irscope.api.watching import SILENT, Watcher
from irscope.fleet import compile_folder
from irscope.fleet.compile_record import CompileRecord, read_record
from irscope.fleet.dump_folder import DumpedModule, read_folder
from irscope.fleet.timeline import figures_of_stages
from irscope.source import UserError

POLL = 0.5
"""Seconds between two looks at the size of the dumps."""
GRACE = 5.0
"""Seconds that a program has to end after it was asked to."""
LINTED = 5
"""How many of the costliest modules are linted."""
NOTHING = ("XLA and torch.compile dump what they compile: does the program call torch.compile, or import jax, torch_xla or TensorFlow with "
           "jit_compile=True, and did it set XLA_FLAGS itself? --functions names a module of XLA that must exist, such as jit_step")


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """What a program compiled: its exit ``status`` (negative: the signal), the folder as ``irscope.show`` shows it, and the findings in the
    costliest modules. ``stopped``: the dumps exceeded the size limit, and the program was ended."""

    status: int
    shown: ShowResult
    linted: LintResult
    stopped: bool = False

    @property
    def failed(self) -> bool:
        """Whether the program failed, or was ended."""
        return self.stopped or self.status != 0


@contextmanager
def capture(command: Sequence[str], options: CaptureOptions | None = None, *, watch: Watcher = SILENT) -> Iterator[CaptureResult]:
    """Run a program with the dumps of XLA and torch.compile switched on, and open the folder; unless it is kept, it is deleted after the
    block.

    The program's standard output goes to standard error. Raises :class:`irscope.UserError` if it cannot be started, if it compiled nothing,
    and if the folder to keep holds files already.

    >>> with capture(["no-such-program"]) as captured:
    ...     print(captured.shown)
    Traceback (most recent call last):
    ...
    irscope.source.errors.UserError: no-such-program: no such program
    """
    options = options or CaptureOptions()
    if not command:
        raise UserError("there is no program to run", "irscope capture -- python train.py")
    with _folder(options.keep) as folder:
        status, stopped = _run(command, environment(options, folder, os.environ), folder, options.max_size)
        if stopped:
            watch.note(f"the dumps exceeded {options.max_size:,} bytes, and the program was ended: --max-size allows more, "
                       "--functions takes fewer modules")
        elif status:
            watch.note(f"{command[0]} ended with status {status}")
        dumps = read_folder(folder)
        record = read_record(dumps)
        if not dumps.modules:
            raise UserError(f"{command[0]} ended with status {status}, and wrote no dump", NOTHING)
        shown = show(folder, ShowOptions(), watch=watch)
        with watch.stage("linting"):
            linted = lint(_to_lint(folder, dumps.modules, record), LintOptions())
        if options.keep is not None:
            watch.note(f"the dumps are in {options.keep}: irscope show {options.keep}")
        yield CaptureResult(status, shown, linted, stopped)


def environment(options: CaptureOptions, folder: str, base: Mapping[str, str]) -> dict[str, str]:
    """The environment of the program: its own XLA flags and those of the dumps after them, and the folder for torch.compile.

    >>> environment(CaptureOptions(functions=".*step.*"), "/d", {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"})["XLA_FLAGS"]
    '--xla_cpu_enable_fast_math=true --xla_dump_to=/d --xla_dump_hlo_as_text --xla_dump_hlo_module_re=.*step.*'
    """
    flags = [base.get("XLA_FLAGS", ""), f"--xla_dump_to={_quoted(folder)}", "--xla_dump_hlo_as_text"]
    if options.functions is not None:
        flags.append(f"--xla_dump_hlo_module_re={_quoted(options.functions)}")
    if options.passes:
        flags.append("--xla_dump_hlo_pass_re=.*")
    return {**base, "XLA_FLAGS": " ".join(filter(None, flags)), "TORCH_COMPILE_DEBUG_DIR": folder, "TORCH_TRACE": folder, **ALWAYS}


def _quoted(value: str) -> str:
    """The value of a flag as XLA reads it (xla/parse_flags_from_env.cc): blanks end one that is not in quotes.

    >>> _quoted("/my dumps")
    '"/my dumps"'
    """
    if not re.search(r"[\s'\"]", value):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


ALWAYS = {
    "TORCH_COMPILE_DEBUG": "1",
    # A program that comes from a compilation cache is not compiled, so nothing is dumped.
    "JAX_ENABLE_COMPILATION_CACHE": "false",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
}
"""Variables that do not depend on the options."""


@contextmanager
def _folder(keep: str | None) -> Iterator[str]:
    """The folder for the dumps: one to keep, which must be empty, or a temporary one."""
    if keep is not None:
        if os.path.isdir(keep) and os.listdir(keep):
            raise UserError(f"{keep} holds files already", "give a folder that is empty or not there: dumps of two runs would mix")
        os.makedirs(keep, exist_ok=True)
        yield os.path.abspath(keep)
        return
    with tempfile.TemporaryDirectory(prefix="irscope-capture-", ignore_cleanup_errors=True) as folder:
        yield folder


def _run(command: Sequence[str], env: dict[str, str], folder: str, most: int) -> tuple[int, bool]:
    """Run a program; returns its exit status, and whether its dumps exceeded a size."""
    try:
        program = subprocess.Popen(command, env=env, stdout=_standard_error())
    except FileNotFoundError:
        raise UserError(f"{command[0]}: no such program") from None
    except PermissionError:
        raise UserError(f"{command[0]} cannot be run: permission denied", "irscope capture -- python train.py") from None
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return program.wait(POLL), False
            if _size(folder) > most:
                return _end(program), True
    except BaseException:  # Ctrl-C reached the program too
        _end(program)
        raise


def _end(program: subprocess.Popen[bytes]) -> int:
    """Ask a program to end, and kill it if it still runs after :data:`GRACE` seconds. Returns its exit status."""
    program.terminate()
    with suppress(subprocess.TimeoutExpired):
        return program.wait(GRACE)
    program.kill()
    return program.wait()


def _standard_error() -> int | None:
    """The descriptor of standard error; None where it has none, as in tests and notebooks: the program then has our standard output."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def _size(folder: str) -> int:
    """The bytes of all files below a folder."""
    size = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                size += os.stat(os.path.join(parent, name)).st_size
    return size


def _to_lint(folder: str, modules: Sequence[DumpedModule], record: CompileRecord | None) -> list[str]:
    """The files to lint: the first stages of the costliest modules, which are closest to the user's program, and the records of
    torch.compile."""
    figures = list(figures_of_stages([module.last for module in modules]))
    order = sorted(range(len(modules)), key=lambda i: -(figures[i].flops + figures[i].bytes))
    chosen = [modules[i] for i in order[:LINTED]]
    firsts = [module.stages[0].path for module in chosen if not compile_folder.aot_id(module.name) and not module.stages[0].text]
    compiled = [stage.path for module in chosen if compile_folder.aot_id(module.name) for stage in module.stages if not stage.text]
    records = record.files if record is not None else []
    return list(dict.fromkeys([*firsts, *compile_folder.to_lint(compiled, folder, False), *records]))
