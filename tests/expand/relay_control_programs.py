"""Relay programs of functions, branches, matches and tuples, whose expansion is compared with a golden file."""
from __future__ import annotations

_LIST = 'type List { Cons(float32, List), Nil, }\ntype Pair { Two(float32, float32), One(float32), }\n'
_BODIES = {
    "a tuple of parameters": "def @main(%x: (float32, (float32, int32))) { %0 = %x.1; (%0.1, %0.0, %x.0) }",
    "a function of functions": "def @main(%x: float32) { let %f = fn (%a: float32) { negative(%a) }; let %g = fn (%h: fn (float32) -> float32, %b: float32) "
    "{ %h(%h(%b)) }; %g(%f, %x) }",
    "a function that captures": "def @main(%x: float32, %y: float32) { let %f = fn (%a: float32) { add(%a, %y) }; %f(%f(%x)) }",
    "an operator as a value": "def @main(%x: float32) { let %f = negative; %f(%x) }",
    "a branch on data": "def @main(%c: bool, %x: float32) { if (%c) { (%x, negative(%x)) } else { (exp(%x), %x) } }",
    "branches that share": "def @main(%c: bool, %x: float32) { %0 = exp(%x); %1 = if (%c) { negative(%0) } else { %0 }; add(%1, %0) }",
    "branches of known conditions": "def @main(%x: float32) { if (True) { negative(%x) } else { %x } }",
    "a match of a constructor": _LIST + "def @main(%x: float32) { let %l = Cons(%x, Cons(2f, Nil)); match (%l) { Cons(%a, Cons(%b, _)) => add(%a, %b), _ => %x, } }",
    "a match that falls through": _LIST + "def @main(%x: float32) { let %l = Cons(%x, Nil); match (%l) { Cons(%a, Cons(%b, _)) => add(%a, %b), Cons(%a, _) => "
    "negative(%a), _ => %x, } }",
    "a match of a tuple": _LIST + "def @main(%x: float32) { let %t = (Two(%x, 3f), 4f); match (%t) { (One(%a), _) => %a, (Two(%a, %b), %c) => add(add(%a, %b), %c), } }",
    "a match without a case": _LIST + "def @main(%x: float32) { let %l = Cons(%x, Nil); match? (%l) { Nil => 1f, } }",
    "a constructor is returned": _LIST + "def @main(%x: float32) { Two(%x, %x) }",
    "a branch of a constructor": _LIST + "def @main(%c: bool, %x: float32) { let %l = if (%c) { Two(%x, 1f) } else { Two(2f, %x) }; match (%l) { Two(%a, %b) => "
    "add(%a, %b), One(%a) => %a, } }",
    "a branch of two constructors": _LIST + "def @main(%c: bool, %x: float32) { let %l = if (%c) { One(%x) } else { Two(2f, %x) }; match (%l) { Two(%a, %b) => "
    "add(%a, %b), One(%a) => %a, } }",
    "a counted loop": "def @main(%i: int32, %x: float32) -> float32 { if (less(%i, 10)) { @main(add(%i, 1), multiply(%x, 2f)) } else { %x } }",
    "a loop of known trips": "def @main(%x: float32) { @step(0, %x) }\ndef @step(%i: int32, %x: float32) -> float32 { if (less(%i, 3)) "
    "{ @step(add(%i, 1), multiply(%x, 2f)) } else { %x } }",
    "a loop of known trips in the other branch": "def @main(%x: float32) { @step(0, %x) }\ndef @step(%i: int32, %x: float32) -> float32 { if (less(2, %i)) "
    "{ negative(%x) } else { @step(add(%i, 1), multiply(%x, 2f)) } }",
    "a loop in the other branch": "def @main(%i: int32, %x: float32) -> float32 { if (less(10, %i)) { negative(%x) } else { @main(add(%i, 1), multiply(%x, 2f)) } }",
    "a loop that captures": "def @main(%n: int32, %k: float32, %x: float32) { let %loop = fn (%i: int32, %a: float32) -> float32 { if (less(%i, %n)) "
    "{ %loop(add(%i, 1), multiply(%a, %k)) } else { add(%a, %k) } }; %loop(0, %x) }",
    "a loop that writes a reference": "def @main(%n: int32, %x: float32) { let %r = ref(%x); let %loop = fn (%i: int32, %a: float32) -> float32 { if (less(%i, %n)) "
    "{ let %w = ref_write(%r, %a); %loop(add(%i, 1), negative(%a)) } else { %a } }; %loop(0, %x) }",
    "a loop that changes its type": "def @main(%i: int32, %s: (float32, float32)) { let %loop = fn (%j: int32, %t: (float32, float32)) { if (less(%j, %i)) "
    "{ %loop(add(%j, 1), (%t.0, %t)) } else { %t } }; %loop(0, %s) }",
    "a loop that carries a tuple": "def @main(%i: int32, %s: (float32, float32)) -> (float32, float32) { if (less(%i, 10)) { %0 = (%s.1, add(%s.0, %s.1)); "
    "@main(add(%i, 1), %0) } else { %s } }",
    "recursion that is no loop": "def @main(%i: int32, %x: float32) -> float32 { if (less(%i, 10)) { add(@main(add(%i, 1), %x), 1f) } else { %x } }",
    "references": "def @main(%x: float32) { let %r = ref(%x); let %_ = ref_write(%r, negative(%x)); ref_read(%r) }",
    "an unknown operator": "def @main(%x: float32) { frobnicate(%x) }",
    "an open size": "def @main(%x: Tensor[(?, 4), float32]) { nn.relu(%x) }",
}
PROGRAMS = {name: f'#[version = "0.0.5"]\n{text}\n' for name, text in _BODIES.items()}
