"""``irscope.stats``: the figures of many files."""
from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irscope.api.options import StatsOptions
from irscope.api.paths import once_stdin
from irscope.fleet.files import find_files, no_dump
from irscope.fleet.stats import Stats, stats_of

Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class StatsResult:
    """The figures of ``files``, read lazily during iteration: one record per file, in order. ``skipped`` are files that are not dumps."""

    files: list[str]
    skipped: list[str]
    options: StatsOptions

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[Stats]:
        return stats_of(self.files, self.options.source_format, self.options.signature, self.options.jobs)


def stats(paths: Path | Sequence[Path], options: StatsOptions | None = None) -> StatsResult:
    """Count operators, parameters, FLOPs and bytes of files and of the dumps in folders.

    A file that cannot be read has a record with ``ok`` False and ``error``. Raises :class:`irscope.UserError` if there is no dump.

    >>> [record["error"] for record in stats("no-such-model.hlo")]
    ['1:1: no-such-model.hlo: no such file']
    """
    given = tuple(os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths))
    found = find_files(once_stdin(given))
    if not found.files:
        raise no_dump(given, found.skipped)
    return StatsResult(found.files, found.skipped, options or StatsOptions())
