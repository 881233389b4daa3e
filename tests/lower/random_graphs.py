"""Random small graphs as HLO text: pointwise work, movement, reductions, contractions and updates in any combination."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random

from tests.lower.whole import ADD, MAX, entry

Shape = tuple[int, ...]

SHAPES: list[Shape] = [(), (1,), (5,), (16,), (3, 4), (4, 3), (1, 12), (2, 3, 4), (4, 1, 5), (2, 17), (20, 3), (3, 20), (2, 2, 3, 2)]
UNARY = ["negate", "tanh", "abs", "sine", "floor", "sign"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]



def random_text(seed: int, size: int = 14) -> str:
    """A module with two to four inputs and one to three results."""
    return Maker(Random(seed)).text(size)


class Maker:
    """Writes one graph, step by step. ``shapes`` are those of its inputs, ``bodies`` the computations that its steps call beside sum and most."""

    most = 2000
    """Elements of the largest product."""

    def __init__(self, random: Random, shapes: Sequence[Shape] = SHAPES, bodies: str = "") -> None:
        self.random = random
        self.shapes = shapes
        self.bodies = bodies
        self.lines: list[str] = []
        self.values: list[tuple[str, Shape]] = []
        self.count = 0

    def text(self, size: int) -> str:
        for number in range(self.random.randint(2, 4)):
            self.add(self.random.choice(self.shapes), f"parameter({number})")
        while len(self.lines) < size:
            self.step()
        results = self.random.sample(self.values, min(len(self.values), self.random.randint(1, 3)))
        results.append(self.values[-1])
        types = ", ".join(_type(shape) for _, shape in results)
        self.lines.append(f"ROOT out = ({types}) tuple({', '.join(name for name, _ in results)})")
        return entry("\n".join(self.lines), ADD + MAX + self.bodies)

    def add(self, shape: Shape, what: str, dtype: str = "f32") -> str:
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {_type(shape, dtype)} {what}")
        if dtype == "f32":
            self.values.append((name, shape))
        return name

    def pick(self) -> tuple[str, Shape]:
        """A value, more often a late one."""
        return self.values[-1 - min(int(self.random.expovariate(0.4)), len(self.values) - 1)]

    def alike(self, shape: Shape) -> str:
        """A value of this shape: one that is there, or a broadcast of something smaller."""
        there = [name for name, s in self.values if s == shape]
        if there and self.random.random() < 0.7:
            return self.random.choice(there)
        small = [(name, s) for name, s in self.values if len(s) < len(shape) and _places(s, shape) is not None]
        if small:
            name, s = self.random.choice(small)
            places = _places(s, shape)
            assert places is not None
            return self.add(shape, f"broadcast({name}), dimensions={{{listed(places)}}}")
        scalar = self.add((), f"constant({self.random.choice(['0.5', '-1', '2', '0', '1'])})")
        return self.add(shape, f"broadcast({scalar}), dimensions={{}}")

    def step(self) -> None:
        kind = self.random.choice(["unary", "binary", "binary", "select", "reshape", "transpose", "slice", "reverse", "concatenate", "pad", "reduce",
                                   "reduce", "dot", "iota", "window", "update", "dynamic", "broadcast"])
        getattr(self, kind)()

    def unary(self) -> None:
        name, shape = self.pick()
        self.add(shape, f"{self.random.choice(UNARY)}({name})")

    def binary(self) -> None:
        name, shape = self.pick()
        self.add(shape, f"{self.random.choice(BINARY)}({name}, {self.alike(shape)})")

    def select(self) -> None:
        name, shape = self.pick()
        other = self.alike(shape)
        condition = self.add(shape, f"compare({name}, {other}), direction={self.random.choice(['LT', 'GE', 'NE'])}", "pred")
        self.add(shape, f"select({condition}, {other}, {name})")

    def broadcast(self) -> None:
        name, shape = self.pick()
        if len(shape) < 3 and prod(shape) < 40:
            at = self.random.randint(0, len(shape))
            n = self.random.choice([1, 2, 3])
            places = [d if d < at else d + 1 for d in range(len(shape))]
            self.add((*shape[:at], n, *shape[at:]), f"broadcast({name}), dimensions={{{listed(places)}}}")

    def reshape(self) -> None:
        name, shape = self.pick()
        fitting = [s for s in self.shapes if prod(s) == prod(shape)] + [(1, *shape), (*shape, 1), (prod(shape),)]
        self.add(self.random.choice(fitting), f"reshape({name})")

    def transpose(self) -> None:
        name, shape = self.pick()
        order = list(range(len(shape)))
        self.random.shuffle(order)
        self.add(tuple(shape[d] for d in order), f"transpose({name}), dimensions={{{listed(order)}}}")

    def slice(self) -> None:
        name, shape = self.pick()
        parts, made = [], []
        for n in shape:
            begin = self.random.randint(0, max(0, n - 1))
            end, step = self.random.randint(begin, n), self.random.choice([1, 1, 2])
            parts.append(f"[{begin}:{end}:{step}]")
            made.append(-(-(end - begin) // step))
        if 0 not in made or self.random.random() < 0.1:
            self.add(tuple(made), f"slice({name}), slice={{{', '.join(parts)}}}")

    def reverse(self) -> None:
        name, shape = self.pick()
        dims = [d for d in range(len(shape)) if self.random.random() < 0.5]
        self.add(shape, f"reverse({name}), dimensions={{{listed(dims)}}}")

    def concatenate(self) -> None:
        name, shape = self.pick()
        if shape:
            axis = self.random.randrange(len(shape))
            made = tuple(2 * n if d == axis else n for d, n in enumerate(shape))
            self.add(made, f"concatenate({name}, {self.alike(shape)}), dimensions={{{axis}}}")

    def pad(self) -> None:
        name, shape = self.pick()
        if not shape or 0 in shape:
            return
        value = self.add((), "constant(1.5)")
        sides = [(self.random.choice([0, 0, 1, 2, -1]), self.random.choice([0, 1, 3]), self.random.choice([0, 0, 0, 1])) for _ in shape]
        made = tuple(low + n + (n - 1) * hole + high for n, (low, high, hole) in zip(shape, sides))
        if min(made) > 0:
            self.add(made, f"pad({name}, {value}), padding={'x'.join('_'.join(map(str, s)) for s in sides)}")

    def reduce(self) -> None:
        name, shape = self.pick()
        how = self.random.choice(["trailing", "any", "leading"])
        if how == "trailing":
            dims = list(range(self.random.randint(0, len(shape)), len(shape)))
        elif how == "leading":
            dims = list(range(self.random.randint(0, len(shape))))
        else:
            dims = [d for d in range(len(shape)) if self.random.random() < 0.5]
        init = self.add((), "constant(0.25)")
        kept = tuple(n for d, n in enumerate(shape) if d not in dims)
        made = self.add(kept, f"reduce({name}, {init}), dimensions={{{listed(dims)}}}, to_apply={self.random.choice(['sum', 'most'])}")
        if self.random.random() < 0.6:
            back = [d for d in range(len(shape)) if d not in dims]
            wide = self.add(shape, f"broadcast({made}), dimensions={{{listed(back)}}}")
            self.add(shape, f"{self.random.choice(['subtract', 'maximum', 'multiply'])}({name}, {wide})")

    def dot(self) -> None:
        name, shape = self.pick()
        others = [(n, s) for n, s in self.values if shape and s and s[0] == shape[-1] and len(s) + len(shape) <= 5]
        if others:
            other, s = self.random.choice(others)
            made = (*shape[:-1], *s[1:])
            if prod(made) < self.most:
                self.add(made, f"dot({name}, {other}), lhs_contracting_dims={{{len(shape) - 1}}}, rhs_contracting_dims={{0}}")

    def iota(self) -> None:
        shape = self.random.choice([s for s in self.shapes if s])
        self.add(shape, f"iota(), iota_dimension={self.random.randrange(len(shape))}")

    def window(self) -> None:
        name, shape = self.pick()
        if len(shape) >= 2 and min(shape) >= 2:
            init = self.add((), "constant(-0.5)")
            made = tuple(n - 1 for n in shape)
            size = "x".join("2" for _ in shape)
            self.add(made, f"reduce-window({name}, {init}), window={{size={size}}}, to_apply={self.random.choice(['sum', 'most'])}")

    def starts(self, shape: Shape) -> str:
        """A start index for each dimension, some of them computed."""
        names = []
        for _ in shape:
            if self.random.random() < 0.5:
                names.append(self.add((), f"constant({self.random.randint(-2, 6)})", "s32"))
            else:
                scalars = [n for n, s in self.values if s == ()]
                source = self.random.choice(scalars) if scalars else self.add((), "constant(1.2)")
                names.append(self.add((), f"convert({source})", "s32"))
        return ", ".join(names)

    def update(self) -> None:
        name, shape = self.pick()
        parts = [(n, s) for n, s in self.values if len(s) == len(shape) and all(a <= b for a, b in zip(s, shape))]
        if shape and parts and 0 not in shape:
            part, _ = self.random.choice(parts)
            self.add(shape, f"dynamic-update-slice({name}, {part}, {self.starts(shape)})")

    def dynamic(self) -> None:
        name, shape = self.pick()
        if shape and 0 not in shape:
            sizes = tuple(self.random.randint(1, n) for n in shape)
            self.add(sizes, f"dynamic-slice({name}, {self.starts(shape)}), dynamic_slice_sizes={{{listed(sizes)}}}")


def _places(small: Shape, shape: Shape) -> list[int] | None:
    """Increasing dimensions of a shape that a smaller one fits, or None."""
    places: list[int] = []
    at = 0
    for n in small:
        while at < len(shape) and shape[at] != n:
            at += 1
        if at == len(shape):
            return None
        places.append(at)
        at += 1
    return places


def _type(shape: Shape, dtype: str = "f32") -> str:
    return f"{dtype}[{listed(shape)}]"


def listed(values: object) -> str:
    assert isinstance(values, list | tuple)
    return ",".join(map(str, values))
