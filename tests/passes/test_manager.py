"""Passes run in order, are told step by step, and are held to types and numbers."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

import irscope
from irscope.cli.main import group
from irscope.graph import Builder, Module, Node
from irscope.passes.analyses import Analyses
from irscope.passes.base import Pass, rewritten
from irscope.passes.manager import _required, run_passes
from irscope.passes.registry import load_passes
from irscope.passes.soundness import unsound
from irscope.source import UserError

TEXT = """HloModule m
ENTRY e {
  p = f32[4,8] parameter(0)
  t = f32[8,4] transpose(p), dimensions={1,0}
  b = f32[4,8] transpose(t), dimensions={1,0}
  x = f32[4,8] exponential(b)
  y = f32[4,8] exponential(b)
  d = f32[4,8] negate(x)
  ROOT r = f32[4,8] add(x, y)
}
"""
OWN = '''
from irscope.graph import Builder, Module, Node
from irscope.ops import get
from irscope.passes.base import Pass, rewritten

class ExpToTanh(Pass):
    """Wrong on purpose."""
    name = "exp-to-tanh"

    def run(self, module: Module) -> Module:
        return rewritten(module, lambda b, n, o: b.add(get("tanh"), o) if n.op.name == "exponential" else None)
'''


class WrongType(Pass):
    """Gives the root a type that its operator does not have."""

    name = "wrong-type"

    def run(self, module: Module) -> Module:
        from irscope.graph import rewrite_module, tensor
        made = rewrite_module(module, lambda b, n, o: None)
        made.main().result().type = tensor("f32", 3)
        return made


def invoke(*args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(group, ["opt", *args])
    return done.exit_code, done.stdout, done.stderr


def test_steps_tell_what_each_pass_left() -> None:
    module = irscope.load(TEXT).module()
    steps = list(run_passes(module, ["share-equal", "simplify-algebra", "remove-dead"]))
    assert [s.name for s in steps] == ["share-equal", "simplify-algebra", "remove-dead"]
    assert steps[0].nodes[0] == 7
    assert all(s.after is t.before for s, t in pairwise(steps))
    assert not any(s.broke for s in steps)
    assert steps[-1].nodes[1] < 7


def test_a_pass_that_breaks_types_is_told() -> None:
    step = next(iter(run_passes(irscope.load(TEXT).module(), [WrongType()])))
    assert step.broke
    assert "f32[3]" in step.broke[0].message


def test_an_unknown_pass_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError) as error:
        list(run_passes(irscope.load(TEXT).module(), ["share-equl"]))
    assert "share-equal" in error.value.help


def test_the_command_prints_in_the_format_it_read_and_verifies(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    status, out, err = invoke(str(path), "--passes", "share-equal,simplify-algebra,remove-dead", "--verify", "--timing", "--print-before", "remove-dead")
    assert status == 0, err
    assert irscope.load(out).ok
    assert "transpose" not in out
    assert out.count("exponential(") == 1
    assert "verify: mean squared error 0" in err
    assert "Print IR before: remove-dead" in err


def test_a_wrong_pass_of_the_users_own_is_caught_by_numbers(tmp_path: Path) -> None:
    path, own = tmp_path / "m.hlo", tmp_path / "own.py"
    path.write_text(TEXT)
    own.write_text(OWN)
    assert list(load_passes(str(own))) == ["exp-to-tanh"]
    status, out, err = invoke(str(path), "--passes", "exp-to-tanh", "--load", str(own), "--verify")
    assert status == 1
    assert "tanh(" in out
    assert "NOT the same" in err


@pytest.mark.parametrize(("text", "words"), [("x = 1\n", "defines no pass"), ("raise ValueError('no')\n", "fails when it is imported")])
def test_files_without_passes(tmp_path: Path, text: str, words: str) -> None:
    own = tmp_path / "own.py"
    own.write_text(text)
    with pytest.raises(UserError, match=words):
        load_passes(str(own))
    with pytest.raises(UserError, match="no such file"):
        load_passes(str(tmp_path / "missing.py"))


class Counting(Pass):
    """Leaves the module as it is, and asks who uses what."""

    name = "counting"
    requires = ("infer-types", "users")

    def run(self, module: Module) -> Module:
        self.seen = self.result_of("users", module)
        return module


class Copying(Pass):
    """Copies the module; what was known of users holds for the old nodes only."""

    name = "copying"

    def run(self, module: Module) -> Module:
        from irscope.graph import rewrite_module
        return rewrite_module(module, lambda b, n, o: None)


class Forgetting(Copying):
    """Copies the module and says that nothing holds any more."""

    name = "forgetting"
    preserves = ()


class Keeping(Copying):
    """Copies the module and says that what depends on what is as it was."""

    name = "keeping"
    preserves = ("levels",)


RELAY = "def @main(%x: Tensor[(4), float32]) {\n  %0 = exp(%x);\n  add(%0, %0)\n}\n"


def ran(*passes: Pass | str) -> list[tuple[str, str]]:
    """The passes that ran, each with the one that required it."""
    return [(s.name, s.required_by) for s in run_passes(irscope.load(RELAY).module(), passes)]


def test_what_a_pass_requires_runs_first_unless_it_still_holds() -> None:
    assert ran(Counting()) == [("infer-types", "counting"), ("counting", "")]
    assert ran(Counting(), Copying(), Counting()) == [("infer-types", "counting"), ("counting", ""), ("copying", ""), ("counting", "")]
    assert ran(Counting(), Forgetting(), Counting())[2:] == [("forgetting", ""), ("infer-types", "counting"), ("counting", "")]


def test_analyses_are_worked_out_once_until_the_module_changes() -> None:
    first, second, third = Counting(), Counting(), Counting()
    list(run_passes(irscope.load(RELAY).module(), [first, second, Copying(), third]))
    assert first.seen is second.seen
    assert third.seen is not first.seen


def test_a_pass_says_which_analyses_still_hold() -> None:
    module = irscope.load(RELAY).module()
    analyses = Analyses(module)
    levels, users, types = analyses.of("levels"), analyses.of("users"), analyses.of("types")
    analyses.moved_to(Keeping().run(module), Keeping.preserves)
    assert analyses.of("levels") is levels
    assert analyses.of("users") is not users
    assert analyses.of("types") is not types
    with pytest.raises(UserError, match="there is no analysis 'level'"):
        analyses.of("level")


FAILING = '''
from irscope.passes import Pass
from irscope.passes.visitor import GraphMutator

class Typo(GraphMutator):
    def visit_exp(self, node, operands):
        return self.add("fast_expp", operands)

class Old(GraphMutator):
    def visit_add(self, node, operands):
        return self.add("multiply", node.operands)

class Misspelt(Pass):
    """Names an operator that is not there."""
    name = "misspelt"
    def run(self, module):
        return Typo().run(module)

class Nothing(Pass):
    """Forgets to return."""
    name = "nothing"
    def run(self, module):
        Typo()

class Raises(Pass):
    """Divides by zero."""
    name = "raises"
    def run(self, module):
        return 1 / 0

class Foreign(Pass):
    """Takes operands of the graph before."""
    name = "foreign"
    def run(self, module):
        return Old().run(module)
'''


@pytest.mark.parametrize(("name", "words"), [
    ("misspelt", "the pass misspelt fails: there is no operator 'fast_expp' in relay"),
    ("nothing", "the pass nothing gives no sound module: it gives NoneType, not a module"),
    ("raises", "the pass raises fails: ZeroDivisionError: division by zero"),
    ("foreign", "does not stand before it in main: operands are the new graph's"),
])
def test_what_fails_in_a_pass_of_ones_own_is_told_as_that(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "own.py").write_text(FAILING)
    (tmp_path / "m.relay").write_text(RELAY)
    status, _, err = invoke(str(tmp_path / "m.relay"), "--load", str(tmp_path / "own.py"), "--passes", name)
    assert status == 2 and words in err and "defect" not in err
    if name == "raises":
        assert "own.py, line 29: return 1 / 0" in err


def test_modules_that_no_pass_may_give() -> None:
    def module() -> tuple[Module, Node, Node]:
        made = irscope.load("HloModule m\nENTRY e {\n x = f32[2] parameter(0)\n ROOT n = f32[2] negate(x)\n}\n").module()
        return made, *made.main().nodes  # type: ignore[return-value]
    made, x, n = module()
    assert unsound(made) is None and unsound([]) == "it gives list, not a module"
    made.entry = "f"
    assert unsound(made) == "the module has no graph 'f', which is its entry"
    made, x, n = module()
    n.index = 2
    assert unsound(made) == "%n stands at place 1 of e and has the index 2: Graph.add numbers nodes"
    for operand, index in ((n, 1), (x, -1), (Node(x.op, "x", x.type, index=0), 0)):
        made, *_ = module()
        made.main().nodes[1].operands = (operand,)
        operand.index = index
        assert f"%n takes %{operand.name}, which does not stand before it in e" in (unsound(made) or "")
    made, x, n = module()
    n.operands = (n,)
    assert "%n takes %n, which does not stand before it in e" in (unsound(made) or "")
    made, x, n = module()
    made.main().root = Node(n.op, "r", n.type, (x,), index=1)
    assert unsound(made) == "%r, the result of e, is not among its nodes"
    made.main().root = Node(n.op, "r", n.type, (x,), index=-1)
    assert unsound(made) == "%r, the result of e, is not among its nodes"
    made, x, n = module()
    made.main().params.append(Node(x.op, "y", x.type, index=2))
    assert unsound(made) == "%y, a parameter of e, is not among its nodes"
    made.main().params[1:], made.main().root = [], None
    assert unsound(made) is None, "a graph may have no result"


def test_passes_run_behind_those_that_they_require(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"a": ("b", "c"), "b": ("d", "c", "users"), "c": ("d",), "d": (), "e": ("f",), "f": ("e",)}
    made = {name: type(name, (Pass,), {"name": name, "requires": requires})() for name, requires in needs.items()}
    monkeypatch.setattr("irscope.passes.manager.pass_named", made.__getitem__)

    def before(name: str, *holds: str) -> str:
        return " ".join(each.name for each in _required(made[name], set(holds)))
    assert [before(name) for name in "abcd"] == ["d c b", "d c", "d", ""]
    assert (before("a", "d"), before("a", "c"), before("a", "b"), before("a", "b", "c")) == ("c b", "d b", "d c", "")
    assert before("e") == "e f", "each once, though they require each other"


def test_an_analysis_is_computed_once_for_a_module() -> None:
    module, other = irscope.load(TEXT).module(), irscope.load(TEXT).module()
    looking = WrongType()
    first = looking.result_of("users", module)
    assert looking.result_of("users", module) is first and looking.result_of("users", other) is not first
    assert looking.result_of("users", module) is not first, "of one module at a time"


def test_a_fault_of_irscopes_own_passes_stays_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    from irscope.passes.remove_dead import RemoveDead

    def broken(self: RemoveDead, module: Module) -> Module:
        raise KeyError("x")
    monkeypatch.setattr(RemoveDead, "run", broken)
    with pytest.raises(KeyError):
        list(run_passes(irscope.load(RELAY).module(), ["remove-dead"]))


def test_passes_of_installed_packages_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "my_passes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-passes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[irscope.passes]\nexp-to-tanh = my_passes:ExpToTanh\nno-pass = my_passes:Module\n")
    (tmp_path / "my_passes.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    status, out, err = invoke(str(path), "--passes", "exp-to-tanh")
    assert status == 0 and "tanh(" in out, err
    listed = CliRunner().invoke(group, ["list", "passes"]).stdout
    assert "exp-to-tanh" in listed and "Wrong on purpose." in listed
    status, _, err = invoke(str(path), "--passes", "no-pass")
    assert status == 2 and "no subclass of irscope.passes.Pass" in err
    status, _, err = invoke(str(path), "--passes", "exp-to-tan")
    assert "did you mean exp-to-tanh?" in err


def test_results_of_another_shape_are_not_the_same(tmp_path: Path) -> None:
    own = OWN.replace('b.add(get("tanh"), o) if n.op.name == "exponential" else None', "None").replace(
        "return rewritten(module,", "made = rewritten(module,") + (
        "        main = made.main()\n        main.root = main.nodes[0]\n        return made\n")
    (tmp_path / "own.py").write_text(own)
    (tmp_path / "m.relay").write_text("def @main(%x: Tensor[(4, 1), float32]) {\n  reshape(%x, newshape=[1, 4])\n}\n")
    status, _, err = invoke(str(tmp_path / "m.relay"), "--load", str(tmp_path / "own.py"), "--passes", "exp-to-tanh", "--verify")
    assert status == 1
    assert "verify: result 0 has the shape [1, 4] before and [4, 1] after: NOT the same" in err


def test_constants_that_the_text_leaves_out_are_drawn_for_both(tmp_path: Path) -> None:
    path = tmp_path / "m.relay"
    path.write_text("def @main(%x: Tensor[(4), float32]) {\n  %0 = add(%x, meta[relay.Constant][0] /* ty=Tensor[(4), float32] */);\n"
                    "  %1 = add(%x, meta[relay.Constant][0] /* ty=Tensor[(4), float32] */);\n  multiply(%0, %1)\n}\n")
    status, out, err = invoke(str(path), "--passes", "share-equal", "--verify")
    assert status == 0 and "the same" in err, err
    assert "meta[relay.Constant][0]" in out


def test_verify_does_not_share_the_fault_of_a_pass_that_the_compiler_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """share-equal forgets the operands: the compiler runs it on both graphs, which then are wrong in the same way."""
    from irscope.passes.share_equal import ShareEqual

    def planted(self: ShareEqual, module: Module) -> Module:
        first: dict[str, Node] = {}

        def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
            if node.op.name != "exponential":
                return None
            return first.setdefault(builder.graph.name, builder.add(node.op, operands, node.attrs, node.type, name=node.name))
        return rewritten(module, rule)
    monkeypatch.setattr(ShareEqual, "run", planted)
    path = tmp_path / "m.hlo"
    path.write_text("HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  q = f32[4] parameter(1)\n  x = f32[4] exponential(p)\n"
                    "  y = f32[4] exponential(q)\n  ROOT r = f32[4] subtract(x, y)\n}\n")
    status, _, err = invoke(str(path), "--passes", "share-equal", "--verify")
    assert status == 1 and "NOT the same" in err


def test_timing_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "m.relay"
    path.write_text(RELAY)
    _, _, err = invoke(str(path), "--passes", "fuse-ops", "--timing")
    head, first, second, last = [line.split() for line in err.splitlines()]
    assert head == ["timing", "pass", "share", "types", "statements"]
    assert first[0] == "infer-types" and first[-2:] == ["for", "fuse-ops"]
    assert second[0] == "fuse-ops" and last[0] == "all"


def test_names_of_passes_that_do_not_run_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    for option in ("--print-before", "--print-after", "--disable", "--require"):
        status, _, err = invoke(str(path), "--passes", "share-equal", option, "share-equl")
        assert status == 2 and "did you mean share-equal?" in err
