"""The fuzzer itself: its files, command lines and changes, what it takes for a defect, what it counts, and that it is led by coverage."""
from __future__ import annotations

import io
import random
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest

import irscope
from irscope.cli.errors import run
from irscope.cli.main import COMMANDS, group
from irscope.formats import FORMATS, format_named
from irscope.source import SourceText
from tests.fuzz import target
from tests.fuzz.binary import encode as encode_message
from tests.fuzz.binary import parse, vary_message, vary_zip
from tests.fuzz.conditioning import _loses_digits, compared
from tests.fuzz.corpora import ROOT, SEEDS, Corpus, read_corpus, with_samples
from tests.fuzz.coverage import Coverage
from tests.fuzz.distil import fewest
from tests.fuzz.draw import change, draw_entry
from tests.fuzz.entry import DEEP, Entry, decode, encode, formats_of, kind
from tests.fuzz.forms import FORMS, LEFT_OUT, WORDS, Draw, command_line, option
from tests.fuzz.judge import Judged, defect_of, new_worker
from tests.fuzz.minimise import smaller
from tests.fuzz.promises import broken_promise
from tests.fuzz.state import State, by_kind, units
from tests.fuzz.target import Outcome, at_most, run_entry
from tests.programs.campaign import program_of
from tests.programs.verdict import Verdict

HLO = b"ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n"


def show(*more: str, text: bytes = HLO) -> Entry:
    return Entry(("show", "a.txt", *more), {"a.txt": text})


def test_an_entry_is_read_as_it_was_written() -> None:
    entry = Entry(("show", "a b", "\n\0\udc80é"), {"a.txt": b"\xff\nfile x 3\n", "sub/b.txt": b""}, True, ("flip 7", "swap 0"))
    assert decode(encode(entry)) == entry


@pytest.mark.parametrize("data", [b'["show"]\nfile a.txt 9\nabc\n', b'["show"]\nnothing\n', b"[\n"])
def test_what_is_no_entry_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode(data)


def test_the_corpus_is_small_and_asks_for_everything() -> None:
    files = list(SEEDS.glob("*.case"))
    assert sum(file.stat().st_size for file in files) <= 200_000
    kinds = {kind(entry) for entry in read_corpus(SEEDS)}
    assert kinds >= DEEP | {"read", "show", "stats", "diff"}


FOUND = sorted((SEEDS.parent / "found").glob("*.case"))


@pytest.mark.parametrize("file", FOUND, ids=[file.stem for file in FOUND])
def test_what_was_a_defect_once_is_answered(file: Path, tmp_path: Path) -> None:
    assert run_entry(decode(file.read_bytes()), tmp_path).defect == ""


def test_a_second_run_finds_the_folder_as_the_first_did(tmp_path: Path) -> None:
    entry = Entry(("show", ".", "--output", "out.txt")).with_file("a.txt", HLO)
    outcome = run_entry(entry, tmp_path, twice=True)
    assert (outcome.status, outcome.defect) == (0, "")


def test_every_command_has_a_form() -> None:
    assert {form.split()[0] for form in FORMS} >= set(COMMANDS) - {"doctor", "capture"}, "doctor reads no input, and capture runs a program of the user's"


def test_every_option_is_drawn_or_left_out_for_a_reason() -> None:
    draw, drawn = Draw(random.Random(0), HLO.decode()), set()
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                words = option(parameter, draw)
                assert words[0] == parameter.opts[-1] and (len(words) > 1 or parameter.is_flag)
                drawn.add(words[0])
    assert set(LEFT_OUT) - {"--help"} <= drawn


def test_capitals_in_a_form_stand_for_something() -> None:
    assert {word for form in FORMS for part in form.split() for word in part.split(",") if word.isupper()} == set(WORDS)


def test_command_lines_follow_from_their_seed() -> None:
    lines = [[command_line(Draw(random.Random(7), HLO.decode())) for _ in range(3)] for _ in range(2)]
    assert lines[0] == lines[1]


def test_drawn_inputs_follow_from_their_seed_and_many_are_sound(tmp_path: Path) -> None:
    first, second = ([draw_entry(Corpus(), rng) for _ in range(80)] for rng in (random.Random(3), random.Random(3)))
    assert first == second
    outcomes = [run_entry(entry, tmp_path) for entry in first if kind(entry) in DEEP - {"compile-and-run"}]
    assert sum(outcome.deep for outcome in outcomes) > len(outcomes) / 4
    assert list(tmp_path.iterdir()) == []


def test_most_changed_graphs_of_fx_are_still_read() -> None:
    text, rng = (Path(__file__).parents[1] / "data" / "export" / "net.core.ep.txt").read_text(), random.Random(2)
    changed = [change(text, text, rng) for _ in range(60)]
    assert len(set(changed)) > 30
    assert sum(format_named("export").read(SourceText("t", text)).ok for text in changed) > 15


@pytest.mark.parametrize(("seed", "format"), [(0, "hlo"), (1, "torchscript"), (3, "relay")])
def test_most_changed_programs_are_still_read(seed: int, format: str) -> None:
    text, rng = program_of(seed).text(), random.Random(seed)
    changed = [change(text, text, rng) for _ in range(60)]
    assert len(set(changed)) > 30
    assert sum(format_named(format).read(SourceText("t", text)).ok for text in changed) > 15


def _prints(text: str) -> Callable[..., int]:
    def run(*given: object) -> int:
        sys.stdout.write(text)
        return 0
    return run


def _raises(*given: object) -> int:
    raise KeyError("x")


def _endless(*given: object) -> int:
    while True:
        pass


def _writes(*given: object) -> int:
    Path("a.txt").write_bytes(b"")
    return 0


def _takes_memory(*given: object) -> int:
    return len(b"x" * (target.peak() - target.resident() + 200 << 20)) and 0


BROKEN: dict[str, tuple[Callable[..., int], tuple[str, ...], str]] = {
    "a status that is ours": (lambda *given: 3, (), "status 3"),
    "status 2 without a word": (lambda *given: 2, (), "no word of an error show"),
    "an exception": (_raises, (), "escaped KeyError"),
    "no end": (_endless, (), "slow"),
    "too much memory": (_takes_memory, (), "memory show"),
    "an input that is overwritten": (_writes, (), "input changed show"),
    "a control character": (_prints("a\x1b]0;t\x07"), (), "control characters show"),
    "no JSON": (_prints("{"), ("--format", "json"), "malformed json"),
    "no XML": (_prints("<a>"), ("--format", "svg"), "malformed svg"),
    "another answer each time": (lambda *given: _prints(str(time.perf_counter_ns()))(), (), "unequal show"),
}


def test_words_behind_two_dashes_are_no_options(tmp_path: Path) -> None:
    entry = Entry(("lint", "a.txt", "--", "--format", "junit"), {"a.txt": b""})
    assert broken_promise(entry, 2, "error: no such file", "", tmp_path) == ""


def test_a_report_over_a_file_that_is_no_input_is_read(tmp_path: Path) -> None:
    entry = Entry(("lint", "a.txt", "-o", "m.toml"), {"a.txt": b"HloModule m\nENTRY e {\n", "m.toml": b"# a table of a machine\n"})
    outcome = run_entry(entry, tmp_path)
    assert (outcome.status, outcome.defect) == (2, "")


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_promise_is_a_defect(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, more, defect = BROKEN[what]
    monkeypatch.setattr(target, "run", run)
    monkeypatch.setattr(target, "SECONDS", 0.2 if what == "no end" else 10)
    monkeypatch.setattr(target, "MEGABYTES", 100)
    outcome = run_entry(show(*more), tmp_path, what == "another answer each time")
    assert outcome.defect.startswith(defect), outcome


def test_what_is_answered_well_is_none(tmp_path: Path) -> None:
    for entry in (show(), show("--format", "svg"), show("--format", "json", text=b"ENTRY \x1b {"), show("--nothing")):
        assert run_entry(entry, tmp_path, True).defect == ""
    assert run_entry(show("--format", "svg"), tmp_path).deep
    assert not run_entry(show("--format", "svg", text=b"ENTRY e {"), tmp_path).deep


def test_a_changed_cache_does_no_harm(tmp_path: Path) -> None:
    for edit in ("flip 99", "cut 70", "grow 3", "empty", "swap 1", "pipe", "link", "mode", "folder"):
        outcome = run_entry(Entry(("compile-and-run", "a.txt", "--check", "--threads", "1"), {"a.txt": HLO}, cache=(edit,)), tmp_path)
        assert (outcome.status, outcome.defect) == (0, ""), edit


def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(target.TookTooLong), at_most(0.05):
        while True:
            pass


def test_a_process_answers_for_an_input_or_dies_of_it() -> None:
    worker = new_worker(guided=False)
    try:
        verdict = worker.ask(encode(show()))
        assert isinstance(verdict, Judged) and (verdict.outcome.status, defect_of(verdict, show())) == (0, "")
    finally:
        worker.close()
    assert defect_of(Verdict("died", "the process ended with -11", "-11"), show()) == "died -11 show"
    assert defect_of(Verdict("died", "the process ended with 2", "2"), show()) == ""
    assert defect_of(Verdict("slow"), show()) == "endless show"


def test_an_input_is_made_small() -> None:
    entry = Entry(("show", "a.txt", "--all", "--dark"), {"a.txt": b"one\ntwo three\nfour", "b.txt": b"x"}, terminal=True)
    entry = replace(entry, cache=("flip 1", "cut 2"))
    small = smaller(entry, lambda e: b"hre" in e.files.get("a.txt", b"") and "--dark" in e.args and "cut 2" in e.cache)
    assert small == Entry(("show", "--dark"), {"a.txt": b"hre"}, cache=("cut 2",))


def test_the_fewest_bytes_that_reach_all_are_kept() -> None:
    lines = {name: frozenset(reached) for name, reached in ((b"aa", "12"), (b"b", "1"), (b"cccc", "123"), (b"dddddddd", "4"))}
    assert fewest(lines) == [b"aa", b"cccc", b"dddddddd"]
    assert fewest(lines, 6) == [b"aa", b"cccc"]


def test_coverage_tells_lines_once(tmp_path: Path) -> None:
    coverage, before = Coverage(), sys.gettrace()
    coverage.start()
    try:
        run_entry(show(), tmp_path)
        first = coverage.take()
        run_entry(show(), tmp_path)
        assert ("cli/show.py" in {file for file, _ in first}) and len(coverage.take()) < len(first) / 10
    finally:
        coverage.stop()
        sys.settrace(before)


def count(state: State, name: str, inputs: int, deep: int, bad: bool = False, rooms: frozenset[str] = frozenset(), format: str = "hlo") -> None:
    for number in range(inputs):
        state.add(name, format, Judged("clean", outcome=Outcome(0, deep=number < deep), rooms=rooms), bad)


def test_a_defect_restarts_the_count_of_its_cell(tmp_path: Path) -> None:
    state = State(tmp_path, tmp_path / "none.json")
    count(state, "lint", 5, 3)
    count(state, "lint", 2, 1, format="relay")
    count(state, "opt", 4, 2)
    count(state, "lint", 1, 0, bad=True)
    count(state, "lint", 2, 1)
    assert state.total == {"lint: hlo": 8, "lint: relay": 2, "opt: hlo": 4}
    assert state.clean == {"lint: hlo": 2, "lint: relay": 2, "opt: hlo": 4} and state.deep == {"lint: hlo": 1, "lint: relay": 1, "opt: hlo": 2}
    assert by_kind(state.clean) == {"lint": 4, "opt": 4}
    assert "| lint | 10 | 4 | 5 | 2 |" in "\n".join(state.report()) and "hlo 6, relay 2." in "\n".join(state.report())


def test_a_changed_folder_restarts_the_cells_that_use_it(tmp_path: Path) -> None:
    state = State(tmp_path, tmp_path / "none.json")
    count(state, "lint", 3, 3, rooms=frozenset({"lint", "formats"}))
    count(state, "opt", 4, 2, rooms=frozenset({"passes", "formats"}))
    count(state, "rule", 1, 0)
    assert state.learn(frozenset({"a.py:1"})) and not state.learn(frozenset({"a.py:1"}))
    state.keep("lint", "status 3", "why", encode(show()))
    state.write()
    again = State(tmp_path, tmp_path / "none.json")
    assert (again.clean, again.restarted, again.known, list(again.defects)) == (state.clean, [], {"a.py:1"}, ["status 3"])
    changed = {**units(), "passes": "other"}
    assert again.restart(changed) == ["opt: hlo", "rule: hlo"], "what folders rule uses has not been measured"
    assert again.clean["lint: hlo"] == 3 and again.clean["opt: hlo"] == 0 and again.total["opt: hlo"] == 4


def test_another_irscope_begins_with_what_is_known(tmp_path: Path) -> None:
    state = State(tmp_path, tmp_path / "none.json")
    state.learn(frozenset({"a.py:1"}))
    state.keep("lint", "status 3", "why", encode(show()))
    state.tree = "another"
    state.write()
    again = State(tmp_path, tmp_path / "none.json")
    assert (again.known, again.defects) == (set(), {})
    assert [decode(path.read_bytes()) for path in (tmp_path / "replay").glob("*.case")] == [show()]


def test_a_campaign_in_a_new_folder_goes_on_from_the_record(tmp_path: Path) -> None:
    record = tmp_path / "campaign.json"
    state = State(tmp_path / "one", record)
    count(state, "lint", 3, 2, rooms=frozenset({"lint"}))
    count(state, "opt", 1, 1, bad=True, rooms=frozenset({"passes"}))
    state.keep("opt", "status 3", "why", encode(show()))
    state.learn(frozenset({"a.py:1"}))
    state.cpu = 7.0
    state.write()
    state.record()
    other = State(tmp_path / "two", record)
    assert (other.total, other.clean, other.deep, other.cpu) == (state.total, {"lint: hlo": 3, "opt: hlo": 0}, {"lint: hlo": 2, "opt: hlo": 0}, 7.0)
    assert (other.known, other.defects) == (set(), {}), "what was reached, and the inputs of defects, are in the other folder"


def test_units_are_folders_and_files_of_commands_and_formats() -> None:
    assert {"lint", "lint/rules", "formats", "formats/hlo/reader.py", "version", "cli/opt.py", "api/linting.py"} <= set(units())
    assert not {"api", "cli", "formats/hlo", "expand/relay"} & set(units())


def test_dumps_of_two_formats_are_counted_apart() -> None:
    hlo, relay = b"HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }\n", b"def @main(%x: Tensor[(2), float32]) { tanh(%x) }\n"
    entry = Entry(("diff", "a.txt", "b.txt")).with_file("a.txt", hlo)
    assert [formats_of(each) for each in (entry, entry.with_file("b.txt", hlo), entry.with_file("b.txt", b"?"))] == ["hlo"] * 3
    assert formats_of(entry.with_file("b.txt", relay)) == "mixed"


def test_protos_are_changed_within_their_framing() -> None:
    inner = b"\x0a\x03abc\x10\x07"
    message = b"\x08\x96\x01\x12" + bytes([len(inner)]) + inner + b"\x1d\0\0\x80\x3f"
    fields = parse(message)
    assert fields is not None and encode_message(fields) == message and parse(message[:-1]) is None
    made = {encode_message(vary_message(parse(message) or [], lambda: parse(message) or [], random.Random(seed))) for seed in range(40)}
    assert len(made) > 20 and all(parse(data) is not None for data in made)


def test_archives_are_changed_within_their_framing() -> None:
    data = (ROOT / "tests/data/export/net.pt2").read_bytes()
    made = {vary_zip(data, random.Random(seed)) for seed in range(5)}
    assert len(made) == 5 and all(zipfile.ZipFile(io.BytesIO(one or b"")).testzip() is None for one in made)


def test_samples_of_every_format_are_drawn_from() -> None:
    assert set(with_samples(SEEDS).formats) >= set(FORMATS)


@pytest.mark.parametrize(("element", "is_lost"), [("f32", True), ("c64", True), ("s32", False)])
def test_a_difference_of_the_last_digits_of_the_inputs_says_nothing(element: str, is_lost: bool) -> None:
    """x - y of equal numbers, times a million: a step of an input moves the result by far more than the results differ."""
    dtype = np.dtype({"f32": np.float32, "c64": np.complex64, "s32": np.int32}[element])
    one = "(1000000, 0)" if element == "c64" else "1000000"
    module = irscope.load(f"ENTRY e {{\n  x = {element}[4] parameter(0)\n  y = {element}[4] parameter(1)\n  k = {element}[] constant({one})\n"
                          f"  b = {element}[4] broadcast(k), dimensions={{}}\n  d = {element}[4] subtract(x, y)\n"
                          f"  ROOT r = {element}[4] multiply(d, b)\n}}\n").module()
    arguments = [np.full(4, 3, dtype), np.full(4, 3, dtype)]
    assert _loses_digits(module, arguments, [np.full(4, 0.25 if is_lost else 1, dtype)]) == is_lost


def test_what_a_run_compares_with_the_reference_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "a.hlo"
    file.write_text("ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] negate(x)\n}\n")
    with compared() as found:
        assert run(group, ("compile-and-run", str(file), "--check"), "irscope") == 0
    (module, (given,), (result,)), = found
    assert module.main().result().op.name == "negate" and np.array_equal(result, -given)
