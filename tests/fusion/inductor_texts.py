"""Small TorchScript programs for the policy inductor, and what it makes of them."""
from __future__ import annotations

from irscope.api import load
from irscope.fusion import EdgeVerdict, Plan
from irscope.fusion.inductor.policy import POLICY
from irscope.graph import Module


def tensor(*sizes: int, dtype: str = "Float") -> str:
    """The type of a value without gaps."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return f"{dtype}({', '.join(map(str, sizes))}, strides=[{', '.join(map(str, reversed(strides)))}], requires_grad=0, device=cpu)"


def graph(inputs: dict[str, str], lines: str, result: str) -> Module:
    """A program from its inputs (name: type), its lines without types (``c = aten::relu(a)``) and the names that it returns."""
    head = ",\n      ".join(f"%{name} : {type}" for name, type in inputs.items())
    body: list[str] = []
    constants = 0
    for line in lines.strip().splitlines():
        name, _, call = line.strip().partition(" = ")
        operator, _, rest = call.partition("(")
        arguments = []
        for word in _split(rest.rsplit(")", 1)[0]):
            if word.startswith("%"):
                arguments.append(word)
                continue
            constants += 1
            arguments.append(f"%c{constants}")
            body.extend(_constant(f"c{constants}", word))
        body.append(f"  %{name} : Tensor = {operator}({', '.join(arguments)})")
    names = [f"%{n.strip()}" for n in result.split(",")]
    if len(names) > 1:
        types = ", ".join("Tensor" for _ in names)
        body.append(f"  %results : ({types}) = prim::TupleConstruct({', '.join(names)})")
        names = ["%results"]
    reading = load(f"graph({head}):\n" + "\n".join(body) + f"\n  return ({names[0]})\n")
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module()


def _split(text: str) -> list[str]:
    words, depth, word = [], 0, ""
    for c in text:
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            words.append(word.strip())
            word = ""
        else:
            word += c
    return [*words, word.strip()] if word.strip() else words


def _constant(name: str, word: str) -> list[str]:
    if word.startswith("["):
        inner = _split(word[1:-1])
        if inner and inner[0].startswith("%"):
            return [f"  %{name} : Tensor[] = prim::ListConstruct({', '.join(inner)})"]
        lines = [f"  %{name}_{i} : int = prim::Constant[value={w}]()" for i, w in enumerate(inner)]
        return [*lines, f"  %{name} : int[] = prim::ListConstruct({', '.join(f'%{name}_{i}' for i in range(len(inner)))})"]
    if word == "None":
        return [f"  %{name} : NoneType = prim::Constant()"]
    if word in ("True", "False"):
        return [f"  %{name} : bool = prim::Constant[value={int(word == 'True')}]()"]
    kind = "float" if "." in word or "e" in word else "int"
    return [f"  %{name} : {kind} = prim::Constant[value={word}]()"]


def plan(module: Module) -> Plan:
    """The plan of the whole program."""
    return POLICY.plan_module(module)[-1]


def verdict(made: Plan, producer: str, consumer: str) -> EdgeVerdict:
    """What became of one edge."""
    found = [v for v in made.verdicts if v.names == (producer, consumer)]
    assert len(found) == 1, [v.names for v in made.verdicts]
    return found[0]
