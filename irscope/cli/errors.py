"""Maps exceptions to exit codes: the only place where irscope decides its exit status.

0 fine, 1 findings or a failed comparison or gate, 2 usage, unreadable or unparsable input, 3 a defect of irscope, 130 interrupted.
"""
from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from irscope.cli.streams import guarded
from irscope.source import UserError, files_read

OK = 0
FINDINGS = 1
USAGE = 2
DEFECT = 3
INTERRUPTED = 130


def run(command: click.Command, args: Sequence[str] | None, name: str) -> int:
    """Run a click command and return its exit status. No exception escapes, except those that end the interpreter itself.

    A command succeeds by returning None; otherwise it returns its status as an int or calls ``ctx.exit``.
    """
    with guarded(wants_colour):
        return _run(command, args, name)


def _run(command: click.Command, args: Sequence[str] | None, name: str) -> int:
    try:
        status = _invoke(command, list(sys.argv[1:] if args is None else args), name)
        sys.stdout.flush()
    except BrokenPipeError:
        # `irscope show big.hlo | head` is no fault. The interpreter flushes stdout once more at its end; give it somewhere to go.
        _close_stdout()
        return OK
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return USAGE
    except Exception as error:
        fault = _fault_of_input(error)
        _say(fault.render() if fault is not None else defect(error))
        return USAGE if fault is not None else DEFECT
    return status


def _fault_of_input(error: Exception) -> UserError | None:
    """The message for an error that the user can act on: a fault of the input or the request, too little memory, a full disk, too many open
    files, or a path of the user that cannot be opened or written. None for a defect, which an error about irscope's own files is too."""
    if isinstance(error, UserError):
        return error
    if isinstance(error, MemoryError):
        return UserError("this machine does not have enough memory for that", "give a smaller file, or a part of the graph")
    if not isinstance(error, OSError):
        return None
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE):
        return UserError(f"the operating system reports: {error.strerror}", "free some, and try again")
    path = error.filename
    if not isinstance(path, str) or Path(path).resolve().is_relative_to(Path(__file__).parents[1]):
        return None
    return UserError(f"{path}: {error.strerror}")


def defect(error: BaseException) -> str:
    """The message for an unexpected exception: it is a defect of irscope, and how to report it."""
    shown, help = "", "IRSCOPE_TRACEBACK=1 shows where; please report it with that"
    if os.environ.get("IRSCOPE_TRACEBACK", "") not in ("", "0"):
        import traceback

        shown, help = "".join(traceback.format_exception(error)).rstrip() + "\n", "please report it with this traceback"
    what = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
    return (f"{shown}error: this is a defect of irscope, not of your input: {what[:300]}\n"
            f"   help: {help}, the input and the output of `irscope doctor`")


def _invoke(command: click.Command, args: list[str], name: str) -> int:
    """click's own main without its treatment of errors: it would turn a broken pipe into status 1."""
    completing = os.environ.get("_IRSCOPE_COMPLETE")
    if completing:
        from click.shell_completion import shell_complete

        _check_completion(completing)
        return shell_complete(command, {}, name, "_IRSCOPE_COMPLETE", completing)
    try:
        with files_read(), command.make_context(name, args) as context:
            status = command.invoke(context)
    except click.exceptions.Exit as end:
        status = end.exit_code
    except SystemExit as end:
        if isinstance(end.code, str):
            raise UserError(end.code) from None
        status = end.code
    return status if isinstance(status, int) else OK


def _check_completion(instruction: str) -> None:
    """Raise UserError where a shell asks for completions without the words that it completes, which click relies on."""
    shell, _, what = instruction.partition("_")
    number = os.environ.get("COMP_CWORD")
    if what == "complete" and ("COMP_WORDS" not in os.environ or number is None or (shell != "fish" and not number.isdecimal())):
        raise UserError("COMP_WORDS and COMP_CWORD are not the words of a shell and the number of one",
                        f'eval "$(_IRSCOPE_COMPLETE={shell}_source irscope)" sets completion up')


def _say(text: str) -> None:
    """Write to stderr, the leading word of each error in red where stderr is a terminal that wants colour."""
    if wants_colour(sys.stderr):
        red = click.style("error:", fg="red", bold=True)
        text = "\n".join(red + line[6:] if line.startswith("error:") else line for line in text.splitlines())
    with suppress(BrokenPipeError):
        print(text, file=sys.stderr)


def wants_colour(stream: object) -> bool:
    """Whether to colour what goes to ``stream``: a terminal that can, unless NO_COLOR; anything when FORCE_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE"):
        return True
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty()) and os.environ.get("TERM") != "dumb"


def _close_stdout() -> None:
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
