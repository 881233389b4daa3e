"""Running a TorchScript program over abstract values: what is known disappears, what depends on data is built, and both mean what torch means."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irscope
from irscope.graph import Module
from irscope.source import UserError
from tests.expand.torchscript_runs import graph, primitive, run

X = np.arange(-3, 3, dtype=np.float32)


def names(module: Module) -> list[str]:
    return [node.op.name for node in module.main().nodes if node.op.name != "parameter"]


RISKY = graph("""
    %none : NoneType = prim::Constant()
    %zero : int = prim::Constant[value=0]()
    %one : int = prim::Constant[value=1]()
    %two : int = prim::Constant[value=2]()
    %s : Tensor = aten::sum(%x, %none)
    %p : Tensor = aten::gt(%s, %zero)
    %c : bool = aten::Bool(%p)
    %y : Tensor = prim::If(%c)
      block0():
        %a : Tensor = aten::mul(%x, %two)
        -> (%a)
      block1():
        %b : Tensor = aten::sub(%x, %one, %one)
        -> (%b)
    return (%y)
""")


def test_a_branch_on_data_takes_either_way() -> None:
    assert "conditional" in names(primitive(RISKY, {"x": X}))
    assert run(RISKY, x=X + 5)[0].tolist() == ((X + 5) * 2).tolist()
    assert run(RISKY, x=X - 5)[0].tolist() == (X - 6).tolist()


def test_a_branch_on_what_is_known_is_taken_now() -> None:
    text = graph("""
        %two : int = prim::Constant[value=2]()
        %rank : int = aten::dim(%x)
        %flat : bool = aten::lt(%rank, %two)
        %y : Tensor = prim::If(%flat)
          block0():
            %a : Tensor = aten::neg(%x)
            -> (%a)
          block1():
            %m : str = prim::Constant[value="too many dimensions"]()
             = prim::RaiseException(%m)
            -> (%x)
        return (%y)
    """)
    assert names(primitive(text, {"x": X})) == ["negate"]
    assert run(text, x=X)[0].tolist() == (-X).tolist()
    with pytest.raises(UserError, match="raises an exception for these inputs: too many dimensions"):
        primitive(text, {"x": X.reshape(2, 3)})


def test_a_branch_that_raises_on_data_leaves_the_other() -> None:
    text = RISKY.replace("%b : Tensor = aten::sub(%x, %one, %one)", '%m : str = prim::Constant[value="no"]()\n         = prim::RaiseException(%m)').replace(
        "-> (%b)", "-> (%x)")
    assert "conditional" not in names(primitive(text, {"x": X}))


LOOP = graph("""
    %n : int = prim::Constant[value=TRIPS]()
    %true : bool = prim::Constant[value=1]()
    %one : int = prim::Constant[value=1]()
    %y : Tensor = prim::Loop(%n, %true, %x)
      block0(%i : int, %acc : Tensor):
        %next : Tensor = aten::add(%acc, %i, %one)
        -> (%true, %next)
    return (%y)
""")


@pytest.mark.parametrize("trips", [0, 1, 4, 300])
def test_a_counted_loop_is_unrolled_while_it_is_short(trips: int) -> None:
    text = LOOP.replace("TRIPS", str(trips))
    assert ("while" in names(primitive(text, {"x": X}))) is (trips > 256)
    np.testing.assert_allclose(run(text, x=X)[0], X + sum(range(trips)))


UNTIL = graph("""
    %many : int = prim::Constant[value=9223372036854775807]()
    %none : NoneType = prim::Constant()
    %two : int = prim::Constant[value=2]()
    %hundred : int = prim::Constant[value=100]()
    %true : bool = prim::Constant[value=1]()
    %zero : int = prim::Constant[value=0]()
    %y : Tensor, %count : int = prim::Loop(%many, %true, %x, %zero)
      block0(%i : int, %acc : Tensor, %k : int):
        %next : Tensor = aten::mul(%acc, %two)
        %s : Tensor = aten::sum(%next, %none)
        %small : Tensor = aten::lt(%s, %hundred)
        %go : bool = aten::Bool(%small)
        %k1 : int = aten::add(%k, %two)
        -> (%go, %next, %k1)
    return (%y, %count)
""")


@given(st.integers(1, 60))
@settings(max_examples=4, deadline=None)
def test_a_loop_whose_end_depends_on_data_runs_until_then(start: int) -> None:
    x = np.array([start, 1], np.float32)
    expected, count = x, 0
    while True:
        expected, count = expected * 2, count + 2
        if expected.sum() >= 100:
            break
    got, k = run(UNTIL, x=x)
    assert got.tolist() == expected.tolist()
    assert k.item() == count


def test_a_write_is_seen_through_every_alias() -> None:
    text = graph("""
        %zero : int = prim::Constant[value=0]()
        %one : int = prim::Constant[value=1]()
        %two : int = prim::Constant[value=2]()
        %three : int = prim::Constant[value=3]()
        %six : int[] = prim::Constant[value=[6]]()
        %c : Tensor = aten::add(%x, %zero, %one)
        %flat : Tensor = aten::view(%c, %six)
        %t : Tensor = aten::transpose(%c, %zero, %one)
        %part : Tensor = aten::slice(%t, %zero, %one, %three, %one)
        %w : Tensor = aten::mul_(%part, %two)
        %relu : Tensor = aten::relu_(%flat)
        %row : Tensor = aten::select(%c, %zero, %zero)
        %f : Tensor = aten::fill_(%row, %three)
        return (%c, %flat, %t, %part, %w, %row)
    """)
    x = X.reshape(2, 3)
    c = x + 0
    flat, t = c.reshape(6), c.T
    part = t[1:3]
    part *= 2
    np.maximum(flat, 0, out=flat)
    c[0] = 3
    for got, wanted in zip(run(text, x=x), [c, flat, t, part, part, c[0]], strict=True):
        assert got.tolist() == wanted.tolist()


def test_a_write_in_a_branch_reaches_the_tensor_outside() -> None:
    text = graph("""
        %none : NoneType = prim::Constant()
        %zero : int = prim::Constant[value=0]()
        %one : int = prim::Constant[value=1]()
        %two : int = prim::Constant[value=2]()
        %c : Tensor = aten::add(%x, %zero, %one)
        %head : Tensor = aten::slice(%c, %zero, %zero, %two, %one)
        %s : Tensor = aten::sum(%x, %none)
        %p : Tensor = aten::gt(%s, %zero)
        %b : bool = aten::Bool(%p)
         = prim::If(%b)
          block0():
            %w : Tensor = aten::mul_(%head, %two)
            -> ()
          block1():
            %v : Tensor = aten::neg_(%c)
            -> ()
        return (%c, %head)
    """)
    for x in (X + 5, X - 5):
        c = x.copy()
        if x.sum() > 0:
            c[:2] *= 2
        else:
            c = -c
        whole, head = run(text, x=x)
        assert whole.tolist() == c.tolist()
        assert head.tolist() == c[:2].tolist()


def test_lists_dicts_tuples_and_numbers_are_executed() -> None:
    text = graph("""
        %zero : int = prim::Constant[value=0]()
        %one : int = prim::Constant[value=1]()
        %key : str = prim::Constant[value="k"]()
        %list : Tensor[] = prim::ListConstruct(%x)
        %neg : Tensor = aten::neg(%x)
        %l2 : Tensor[] = aten::append(%list, %neg)
        %len : int = aten::len(%list)
        %d : Dict(str, int) = prim::DictConstruct(%key, %len)
        %n : int = aten::__getitem__(%d, %key)
        %t : (Tensor, int) = prim::TupleConstruct(%neg, %n)
        %a : Tensor, %m : int = prim::TupleUnpack(%t)
        %cat : Tensor = aten::cat(%list, %zero)
        %y : Tensor = aten::mul(%cat, %m)
        return (%y)
    """)
    assert run(text, x=X)[0].tolist() == (np.concatenate([X, -X]) * 2).tolist()
    assert set(names(primitive(text, {"x": X}))) == {"negate", "concatenate", "multiply", "constant", "broadcast"}


def test_sizes_go_through_tensors_and_fold() -> None:
    text = graph("""
        %zero : int = prim::Constant[value=0]()
        %two : int = prim::Constant[value=2]()
        %n : int = aten::size(%x, %zero)
        %nt : Tensor = prim::NumToTensor(%n)
        %div : Tensor = aten::floor_divide(%nt, %two)
        %half : int = aten::Int(%div)
        %size : int[] = prim::ListConstruct(%half, %two)
        %y : Tensor = aten::view(%x, %size)
        return (%y)
    """)
    assert names(primitive(text, {"x": X})) == ["reshape"]
    assert run(text, x=X)[0].shape == (3, 2)


def test_methods_and_functions_are_inlined_and_attributes_are_weights() -> None:
    text = """# method forward
graph(%self : __torch__.Top,
      %x : Tensor):
  %fc : __torch__.Linear = prim::GetAttr[name="fc"](%self)
  %y : Tensor = prim::CallMethod[name="forward"](%fc, %x)
  return (%y)
# method fc.forward
graph(%self : __torch__.Linear,
      %input : Tensor):
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %b : Tensor = prim::GetAttr[name="bias"](%self)
  %y : Tensor = aten::linear(%input, %w, %b)
  return (%y)
"""
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((4, 6), dtype=np.float32), rng.standard_normal(4, dtype=np.float32)
    np.testing.assert_allclose(run(text, {"fc.weight": w, "fc.bias": b}, x=X)[0], w @ X + b, rtol=1e-5)


def test_groups_run_their_graphs() -> None:
    text = """graph(%x : Tensor):
  %a : Float(6), %ok : bool = prim::TypeCheck[types=[Float(6)]](%x)
  %y : Tensor = prim::If(%ok)
    block0():
      %g : Tensor = prim::TensorExprGroup_0(%a)
      -> (%g)
    block1():
      %f : Function = prim::Constant[name="fallback_function", fallback=1]()
      %t : (Tensor) = prim::CallFunction(%f, %x)
      %u : Tensor = prim::TupleUnpack(%t)
      -> (%u)
  return (%y)
with prim::TensorExprGroup_0 = graph(%0 : Float(6)):
  %1 : Float(6) = aten::relu(%0)
  %2 : Float(6) = aten::neg(%1)
  return (%2)
"""
    assert run(text, x=X)[0].tolist() == (-np.maximum(X, 0)).tolist()


def test_a_size_that_depends_on_data_is_taken_from_the_inputs() -> None:
    text = graph("""
        %zero : int = prim::Constant[value=0]()
        %m : Tensor = aten::gt(%x, %zero)
        %list : Tensor?[] = prim::ListConstruct(%m)
        %y : Tensor = aten::index(%x, %list)
        return (%y)
    """)
    assert run(text, x=X)[0].tolist() == X[X > 0].tolist()
    assert run(text, x=-np.abs(X))[0].shape == (0,)


def test_missing_operators_are_told_all_at_once_with_their_nodes() -> None:
    text = """graph(%x : Float(2, 3)):
  %a : Float(2, 3) = my::one(%x)
  %b : Float(2, 3) = my::two(%a, %x)
  %c : Float(2, 3) = my::one(%b)
  return (%c)
"""
    with pytest.raises(UserError) as raised:
        primitive(text, {})
    message = raised.value.message
    assert "my::one(f32[2,3]) at %a, %c" in message.replace("Float(2, 3)", "f32[2,3]")
    assert "my::two" in message


@pytest.mark.parametrize(("statement", "words"), [
    ("%y : Tensor = aten::narrow(%x, %zero, %five, %five)", ["%y = aten::narrow", "5 elements from 5 on are out of range for dimension 0"]),
    ("%y : Tensor = aten::transpose(%x, %five, %five) # /m/net.py:7:4", ["%y = aten::transpose", "dimension 5 is out of range", "/m/net.py:7"]),
    ("%y : Tensor = aten::add(%x, %s, %five) # /m/net.py:7:4", ["%y = aten::add", "no overload", "/m/net.py:7"]),
    ("%y : Tensor = aten::view(%x, %l) # /m/net.py:7:4", ["%y = aten::view", "6", "/m/net.py:7"]),
])
def test_faults_name_the_node_and_its_source_line(statement: str, words: list[str]) -> None:
    text = graph(f"""
        %zero : int = prim::Constant[value=0]()
        %five : int = prim::Constant[value=5]()
        %s : str = prim::Constant[value="s"]()
        %l : int[] = prim::ListConstruct(%five)
        {statement}
        return (%y)
    """)
    with pytest.raises(UserError) as raised:
        primitive(text, {"x": X})
    for word in words:
        assert word in raised.value.message


def test_an_input_without_a_shape_and_a_weight_without_values_are_asked_for() -> None:
    with pytest.raises(UserError, match="does not say the shape of input %x"):
        primitive(RISKY, {})
    text = """graph(%self : __torch__.Net,
      %x : Float(6)):
  %weight : Tensor = prim::GetAttr[name="weight"](%self) # net.py:3:1
  %y : Tensor = aten::cumsum(%weight, %x)
  return (%y)
"""
    with pytest.raises(UserError, match="weight"):
        primitive(text, {})


def test_the_api_compiles_a_program() -> None:
    text = """graph(%self : __torch__.Linear,
      %x : Float(6)):
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %none : NoneType = prim::Constant()
  %y : Float(2) = aten::linear(%x, %w, %none)
  return (%y)
"""
    w = np.arange(12, dtype=np.float32).reshape(2, 6)
    model = irscope.compile(text, weights={"weight": w})
    assert model(X)[0].tolist() == (w @ X).tolist()


def test_a_loop_reads_and_writes_at_its_counter() -> None:
    text = graph("""
        %zero : int = prim::Constant[value=0]()
        %one : int = prim::Constant[value=1]()
        %many : int = prim::Constant[value=400]()
        %true : bool = prim::Constant[value=1]()
        %out : Tensor = aten::add(%x, %zero, %one)
        %s : Tensor = aten::select(%x, %zero, %zero)
        %total : Tensor = prim::Loop(%many, %true, %s)
          block0(%i : int, %acc : Tensor):
            %row : Tensor = aten::select(%out, %zero, %i)
            %next : Tensor = aten::add(%acc, %row, %one)
            %w : Tensor = aten::fill_(%row, %next)
            -> (%true, %next)
        return (%total, %out)
    """)
    x = (np.arange(400) % 7).astype(np.float32)
    total, out = run(text, x=x)
    assert total.item() == x.sum() + x[0]
    assert out.tolist() == (np.cumsum(x) + x[0]).tolist()


def test_more_recurrent_layers_than_parameters_are_refused_at_once() -> None:
    text = graph("""
        %w : Tensor = prim::GetAttr[name="w"](%self)
        %params : Tensor[] = prim::ListConstruct(%w, %w)
        %no : bool = prim::Constant[value=0]()
        %many : int = prim::Constant[value=9223372036854775807]()
        %p : float = prim::Constant[value=0.]()
        %y : Tensor, %h : Tensor = aten::gru(%x, %s, %params, %no, %many, %p, %no, %no, %no)
        return (%y)
    """, "%self : __torch__.M, %x : Float(5, 1, 3), %s : Float(1, 1, 4)")
    with pytest.raises(UserError, match="layers in 1 directions have more than 2 parameters"):
        run(text, x=np.zeros((5, 1, 3), np.float32), s=np.zeros((1, 1, 4), np.float32))


def test_what_a_view_is_made_of_stems_from_the_view_not_from_its_reader() -> None:
    text = graph("""
    %zero : int = prim::Constant[value=0]()
    %one : int = prim::Constant[value=1]()
    %t : Tensor = aten::transpose(%x, %zero, %one)
    %u : Tensor = aten::unsqueeze(%t, %zero)
    %y : Tensor = aten::exp(%u)
    return (%y)
""")
    made = primitive(text, {"x": np.zeros((2, 3), np.float32)}).main()
    assert [(n.op.name, n.origin[0].op.name) for n in made.nodes if n.op.name != "parameter"] == [
        ("transpose", "aten::transpose"), ("reshape", "aten::unsqueeze"), ("exponential", "aten::exp")]


def test_a_function_whose_graph_is_not_printed_is_told_by_its_name() -> None:
    with pytest.raises(UserError) as raised:
        run(graph("""
            %f : Function = prim::Constant[name="twice"]()
            %y : Tensor = prim::CallFunction(%f, %x)
            return (%y)
        """), x=X)
    assert "%y calls the Python function twice, whose body is not in the text" in raised.value.message


def test_a_dict_in_the_text() -> None:
    text = graph("""
        %d : Dict(str, int) = prim::Constant[value={"a": 2, "b": 3}]()
        %k : str = prim::Constant[value="b"]()
        %n : int = aten::__getitem__(%d, %k)
        %y : Tensor = aten::mul(%x, %n)
        return (%y)
    """)
    assert run(text, x=X)[0].tolist() == (3 * X).tolist()


def test_a_module_is_not_in_training_unless_a_file_says_so() -> None:
    text = """graph(%self : __torch__.Net, %x : Tensor):
  %t : bool = prim::GetAttr[name="training"](%self)
  %p : float = prim::Constant[value=0.5]()
  %y : Tensor = aten::dropout(%x, %p, %t)
  return (%y)
"""
    assert run(text, x=X)[0].tolist() == X.tolist()


@pytest.mark.parametrize("name", ["detach_", "requires_grad_"])
def test_what_only_tells_of_gradients_writes_nothing(name: str) -> None:
    text = graph(f"""
        %yes : bool = prim::Constant[value=1]()
        %y : Tensor = aten::{name}(%x{", %yes" if name == "requires_grad_" else ""})
        %z : Tensor = aten::neg(%y)
        return (%z)
    """)
    assert run(text, x=X)[0].tolist() == (-X).tolist()


def test_an_unknown_operator_that_writes_is_told_by_its_name() -> None:
    with pytest.raises(UserError) as raised:
        run(graph("%y : Tensor = aten::foo_(%x)\n%z : Tensor = aten::neg(%y)\nreturn (%z)"), x=X)
    assert "aten::foo_(Tensor) at %y" in raised.value.message
