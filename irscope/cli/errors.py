"""Maps exceptions to exit codes: the only place where irscope decides its exit status.

0 fine, 1 findings or a failed comparison or gate, 2 usage, unreadable or unparsable input, 3 a defect of irscope, 130 interrupted.
"""
from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
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
    except UserError as error:
        _say(error.render())
        return USAGE
    except OSError as error:
        fault = _refused_by_the_system(error)
        _say(fault.render() if fault else defect(error))
        return USAGE if fault else DEFECT
    except MemoryError:
        _say(UserError("this machine has not enough memory for that", "give a smaller file, or a part of the graph").render())
        return USAGE
    except Exception as error:
        _say(defect(error))
        return DEFECT
    return status


def _refused_by_the_system(error: OSError) -> UserError | None:
    """A full disk, or a path of the user's that cannot be opened or written; None where the path is one of irscope's own."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE):
        return UserError(f"the system refuses: {error.strerror}", "free some, and try again")
    path = error.filename
    if not isinstance(path, str) or Path(path).resolve().is_relative_to(Path(__file__).parents[1]):
        return None
    return UserError(f"{path}: {error.strerror}")


def defect(error: BaseException) -> str:
    """The message for an unexpected exception: it is a defect of irscope, and how to report it."""
    lines = []
    if os.environ.get("IRSCOPE_TRACEBACK", "") not in ("", "0"):
        import traceback

        lines.append("".join(traceback.format_exception(error)).rstrip())
    what = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
    lines.append(f"error: this is a defect of irscope, not of your input: {what[:300]}")
    if not lines[:-1]:
        lines.append("   help: IRSCOPE_TRACEBACK=1 shows where; please report it with that, the input and the output of `irscope doctor`")
    else:
        lines.append("   help: please report it with this traceback, the input and the output of `irscope doctor`")
    return "\n".join(lines)


def _invoke(command: click.Command, args: list[str], name: str) -> int:
    """click's own main without its treatment of errors: it would turn a broken pipe into status 1."""
    completing = os.environ.get("_IRSCOPE_COMPLETE")
    if completing:
        from click.shell_completion import shell_complete

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


def _say(text: str) -> None:
    """Write to stderr, the leading word of each error in red where stderr is a terminal that wants colour."""
    if wants_colour(sys.stderr):
        red = click.style("error:", fg="red", bold=True)
        text = "\n".join(red + line[6:] if line.startswith("error:") else line for line in text.splitlines())
    try:
        print(text, file=sys.stderr)
    except BrokenPipeError:
        pass


def wants_colour(stream: object) -> bool:
    """Whether to colour what goes to ``stream``: a terminal that can, unless NO_COLOR; anything when FORCE_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE"):
        return True
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty()) and os.environ.get("TERM") != "dumb"


def _close_stdout() -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass
