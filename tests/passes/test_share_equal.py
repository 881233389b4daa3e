"""share-equal and remove-dead over Relay: what is one afterwards, and what stays apart."""
from __future__ import annotations

import pytest

import irscope
from irscope.diff import compare
from irscope.formats.relay import print_module
from irscope.formats.torchscript import print_module as print_statements
from irscope.passes import pass_named
from irscope.passes.manager import chosen
from tests.passes.relay_runs import meaning_stays

TWICE = "def @main(%x: Tensor[(1, 16), float32]) {{\n  %0 = nn.relu(%x);\n  %1 = {0};\n  %2 = nn.relu(%x);\n  %3 = {1};\n  add(%1, %3)\n}}\n"


@pytest.mark.parametrize(("name", "first", "second", "left"), [
    ("share-equal", "add(%0, 1f)", "add(%2, 1f)", ["nn.relu", "add", "add"]),
    ("share-equal", "add(%0, 1f)", "add(%2, 2f)", ["nn.relu", "add", "add", "add"]),
    ("share-equal", "clip(%0, a_min=0f, a_max=6f)", "clip(%2, a_min=0f, a_max=5f)", ["nn.relu", "clip", "clip", "add"]),
    ("share-equal{skip=add}", "add(%0, 1f)", "add(%2, 1f)", ["nn.relu", "add", "add", "add"]),
    ("share-equal{skip=add+nn.relu}", "add(%0, 1f)", "add(%2, 1f)", ["nn.relu", "add", "nn.relu", "add", "add"]),
])
def test_what_is_done_once(name: str, first: str, second: str, left: list[str]) -> None:
    module = irscope.load(TWICE.format(first, second)).module()
    made = pass_named(name).run(module)
    assert [n.op.name for n in made.main().nodes if n.op.name not in ("parameter", "constant")] == left
    meaning_stays(module, made)


def test_weights_that_the_text_elides_stay_apart() -> None:
    """Nothing is known of them but their type: two of one type are not one."""
    module = irscope.load("""HloModule m
ENTRY e {
  a = f32[64] constant({...})
  b = f32[64] constant({...})
  x = f32[64] parameter(0)
  y = f32[64] multiply(x, a)
  z = f32[64] multiply(x, b)
  ROOT r = (f32[64], f32[64]) tuple(y, z)
}
""").module()
    assert len(pass_named("share-equal").run(module).main().nodes) == len(module.main().nodes)


def test_values_that_the_text_elides_stay_apart() -> None:
    """Two weights of one type whose values are left out are two weights, in functions that look alike too."""
    text = """HloModule m
        f { p = f32[4] parameter(0)
            w = f32[4] constant({...})
            ROOT r = f32[4] multiply(p, w) }
        g { p = f32[4] parameter(0)
            w = f32[4] constant({...})
            ROOT r = f32[4] multiply(p, w) }
        ENTRY e { a = f32[4] constant({...})
                  b = f32[4] constant({...})
                  x = f32[4] parameter(0)
                  c = f32[4] call(x), to_apply=f
                  d = f32[4] call(x), to_apply=g
                  ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(a, b, c, d) }"""
    module = irscope.load(text).module()
    made = pass_named("share-equal").run(module)
    assert len(set(made.main().result().operands)) == 4
    assert len({node.bodies[0] for node in made.main().nodes if node.bodies}) == 2


def test_levels_are_those_of_tvm() -> None:
    levels = {"share-equal": 3, "fold-constants": 2, "combine-parallel": 4, "simplify-algebra": 0, "simplify-inference": 0, "canonicalize-cast": 3,
              "fast-math": 4}
    assert {name: pass_named(name).opt_level for name in levels} == levels
    assert [p.name for p in chosen([pass_named(name) for name in levels], 2)] == ["fold-constants", "simplify-algebra", "simplify-inference"]


def test_functions_that_call_themselves() -> None:
    module = irscope.load("""
def @count(%n: int32) -> int32 {
  %0 = less(%n, 1);
  if (%0) {
    %n
  } else {
    %1 = subtract(%n, 1);
    %2 = @count(%1);
    %3 = subtract(%n, 1);
    %4 = @count(%3);
    add(%2, %4)
  }
}
def @main(%n: int32) -> int32 {
  @count(%n)
}
""").module()
    made = pass_named("share-equal").run(module)
    body = next(b for n in made.graphs["count"].nodes for b in n.bodies if any(o.op.name == "call" for o in b.nodes))
    assert all(b is made.graphs["count"] for n in body.nodes for b in n.bodies)
    assert [n.op.name for n in body.nodes if n.op.name not in ("parameter", "constant")] == ["subtract", "call", "add"]
    text = print_module(made)
    assert text.count("def @") == 2 and compare(made, irscope.load(text).module()).same


WRITES = {
    "a value between its two readers": ("""
      %a : Float(4) = aten::exp(%y)
      %w : Float(4) = aten::add_(%y, %x, %c1)
      %b : Float(4) = aten::exp(%y)""", 2),
    "a view of it": ("""
      %v : Float(2, 2) = aten::view(%y, %shape)
      %a : Float(4) = aten::exp(%y)
      %w : Float(2, 2) = aten::mul_(%v, %c2)
      %b : Float(4) = aten::exp(%y)""", 2),
    "one of two equal copies": ("""
      %a : Float(4) = aten::clone(%y, %none)
      %w : Float(4) = aten::mul_(%a, %c2)
      %b : Float(4) = aten::clone(%y, %none)""", 2),
    "an element of a list": ("""
      %l : Tensor[] = prim::ListConstruct(%y, %x)
      %a : Float(4) = aten::exp(%y)
      %p : Tensor, %q : Tensor = prim::ListUnpack(%l)
      %w : Float(4) = aten::mul_(%p, %c2)
      %b : Float(4) = aten::exp(%y)""", 2),
    "a branch": ("""
      %a : Float(4) = aten::exp(%y)
      %i : Float(4) = prim::If(%t)
        block0():
          %w : Float(4) = aten::mul_(%y, %c2)
          -> (%w)
        block1():
          -> (%x)
      %b : Float(4) = aten::exp(%y)""", 2),
    "another value": ("""
      %o : Float(4) = aten::clone(%x, %none)
      %a : Float(4) = aten::exp(%y)
      %w : Float(4) = aten::mul_(%o, %c2)
      %b : Float(4) = aten::exp(%y)""", 1),
    "nothing": ("""
      %a : Float(4) = aten::exp(%y)
      %i : Float(4) = prim::If(%t)
        block0():
          %w : Float(4) = aten::mul(%y, %c2)
          -> (%w)
        block1():
          -> (%x)
      %b : Float(4) = aten::exp(%y)""", 1),
}


@pytest.mark.parametrize("what", WRITES)
def test_values_that_a_statement_writes_in_place_stay_apart(what: str) -> None:
    lines, left = WRITES[what]
    text = f"""graph(%x : Float(4)):
      %none : NoneType = prim::Constant()
      %t : bool = prim::Constant[value=1]()
      %c1 : int = prim::Constant[value=1]()
      %c2 : int = prim::Constant[value=2]()
      %shape : int[] = prim::ListConstruct(%c2, %c2)
      %y : Float(4) = aten::neg(%x){lines}
      %r : Float(4) = aten::sub(%a, %b, %c1)
      return (%r)
    """
    made = pass_named("share-equal").run(irscope.load(text).module())
    clones = "clone" if "clone(%y" in lines else "exp"
    assert sum(n.op.name == f"aten::{clones}" and n.operands[0].name == "y" for n in made.main().nodes) == left
    assert irscope.verify(text, print_statements(made)).same


IN_BLOCKS = """graph(%x : Float(3)):
  %one : int = prim::Constant[value=1]()
  %n : int = prim::Constant[value=3]()
  %true : bool = prim::Constant[value=1]()
  %p : Tensor, %q : Tensor = prim::Loop(%n, %true, %x, %x)
    block0(%i : int, %u : Tensor, %v : Tensor):
      %a : Tensor = aten::mul(%u, %u)
      %b : Tensor = aten::mul(%u, %u)
      %c : Tensor = aten::{0}
      -> (%true, %a, %c)
  %r : Tensor = aten::add_(%p, %x, %one)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%p, %q)
  return (%t)
"""


@pytest.mark.parametrize(("third", "products"), [
    ("detach(%b)", 2),  # returns the memory of the second product, to which the statement after the loop would write too
    ("neg(%b)", 1),
])
def test_values_that_a_block_returns_stay_apart(third: str, products: int) -> None:
    module = irscope.load(IN_BLOCKS.format(third)).module()
    made = pass_named("share-equal").run(module)
    assert print_statements(made).count("aten::mul") == products
    assert irscope.verify(IN_BLOCKS.format(third), print_statements(made)).same


def test_results_stay_apart() -> None:
    """The caller may write to one of them."""
    text = "graph(%x : Float(3)):\n  %a : Tensor = aten::mul(%x, %x)\n  %b : Tensor = aten::mul(%x, %x)\n  return (%a, %b)\n"
    assert print_statements(pass_named("share-equal").run(irscope.load(text).module())).count("aten::mul") == 2


@pytest.mark.parametrize(("call", "left"), [
    ("aten::dropout(%x, %half, %true)", 2),
    ("aten::dropout(%x, %half, %false)", 1),
    ("aten::dropout(%x, %zero, %true)", 1),
    ("aten::dropout(%x, %half, %training)", 2),
    ("aten::alpha_dropout(%x, %half, %true)", 2),
    ("aten::rrelu(%x, %zero, %half, %true, %none)", 2),
    ("aten::rrelu(%x, %zero, %half)", 1),
    ("aten::bernoulli(%x, %none)", 2),
    ("aten::exponential(%x, %half, %none)", 2),
    ("aten::multinomial(%x, %one, %true, %none)", 2),
    ("aten::scaled_dot_product_attention(%y, %y, %y, %none, %half, %false, %none)", 2),
    ("aten::scaled_dot_product_attention(%y, %y, %y, %none, %zero, %false, %none)", 1),
])
def test_draws_of_random_numbers_stay_apart(call: str, left: int) -> None:
    """Two draws differ, however alike they look; in evaluation, or with probability 0, nothing is drawn."""
    module = irscope.load(f"""graph(%x : Float(3), %y : Float(1, 1, 3, 4), %training : bool):
  %one : int = prim::Constant[value=1]()
  %zero : float = prim::Constant[value=0.]()
  %half : float = prim::Constant[value=0.5]()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %a : Tensor = {call}
  %b : Tensor = {call}
  %c : Tensor = aten::sub(%a, %b, %one)
  return (%c)
""").module()
    assert print_statements(pass_named("share-equal").run(module)).count(call.partition("(")[0]) == left


@pytest.mark.parametrize(("op", "first", "second", "left"), [
    ('custom-call(x), custom_call_target="scale"', 'backend_config={"by":1}', 'backend_config={"by":2}', 2),
    ('custom-call(x), custom_call_target="scale"', 'backend_config="1"', 'backend_config="2"', 2),
    ('custom-call(x), custom_call_target="scale"', 'frontend_attributes={by="1"}', 'frontend_attributes={by="2"}', 2),
    ('custom-call(x), custom_call_target="Sharding"', "sharding={devices=[2]0,1}", "sharding={replicated}", 2),
    ("negate(x)", "sharding={devices=[2]0,1}", "sharding={replicated}", 2),
    ("negate(x)", "sharding={replicated}", "sharding={replicated}", 1),
    ("negate(x)", 'metadata={op_name="a"}', 'metadata={op_name="b"}', 1),
    ('custom-call(x), custom_call_target="scale"', 'backend_config="1", metadata={op_name="a"}',
     'backend_config="1", metadata={op_name="b"}', 1),
])
def test_what_the_text_states_beside_counts(op: str, first: str, second: str, left: int) -> None:
    """Attributes that irscope keeps as text say what a custom call computes, and where a value lies."""
    text = f"f32[8] {op}, "
    module = irscope.load(f"""HloModule m
f {{ x = f32[8] parameter(0)
     ROOT a = {text}{first} }}
g {{ x = f32[8] parameter(0)
     ROOT a = {text}{second} }}
ENTRY e {{ x = f32[8] parameter(0)
           a = {text}{first}
           b = {text}{second}
           c = f32[8] call(x), to_apply=f
           d = f32[8] call(x), to_apply=g
           ROOT t = (f32[8], f32[8], f32[8], f32[8]) tuple(a, b, c, d) }}
""").module()
    main = pass_named("share-equal").run(module).main()
    assert len({*main.result().operands}) == 2 * left
