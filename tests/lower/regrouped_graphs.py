"""Random graphs of sums inside sums: norms and softmaxes of values whose axes were cut, transposed and joined again."""
from __future__ import annotations

from math import prod
from random import Random

from tests.lower.random_graphs import Maker, Shape, listed

LESS = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }\n"
SHAPES: list[Shape] = [(64,), (2048,), (32, 64), (64, 32), (8, 16, 16), (16, 16, 8), (4, 8, 8, 8), (2, 32, 32), (48, 48), (24, 2, 48), (4, 12, 48)]
KINDS = ("unary binary select reshape transpose slice reverse concatenate pad reduce window update dynamic broadcast dot sort running "
         "regroup regroup regroup softmax softmax norm norm norm").split()
FACTORS = (2, 3, 4, 8, 16)


def regrouped_text(seed: int, size: int = 24) -> str:
    """A module whose values are large enough for repeated work to show."""
    return _Regrouping(Random(seed), SHAPES, LESS).text(size)


class _Regrouping(Maker):
    most = 20_000

    def step(self) -> None:
        getattr(self, self.random.choice(KINDS))()

    def regroup(self) -> None:
        """Cut the axes into small ones, transpose these, and join them into rows and columns: a window partition, a patch merging."""
        name, shape = self.pick()
        left, dims = prod(shape), list[int]()
        while left > 1 and len(dims) < 6:
            dims.append(self.random.choice([n for n in FACTORS if left % n == 0] or [left]))
            left //= dims[-1]
        if prod(shape) < 64:
            return
        dims += [left] * (left > 1)
        order = list(range(len(dims)))
        self.random.shuffle(order)
        turned = tuple(dims[d] for d in order)
        cut = self.add(tuple(dims), f"reshape({name})")
        moved = self.add(turned, f"transpose({cut}), dimensions={{{listed(order)}}}")
        at = self.random.randint(1, max(1, len(turned) - 1))
        self.add((prod(turned[:at]), prod(turned[at:])), f"reshape({moved})")

    def softmax(self) -> None:
        name, shape = self.pick()
        if shape:
            axis = self.axis(shape)
            top = self.along(name, shape, axis, "most", "-inf")
            power = self.add(shape, f"exponential({self.add(shape, f'subtract({name}, {top})')})")
            self.add(shape, f"divide({power}, {self.along(power, shape, axis, 'sum', '0')})")

    def norm(self) -> None:
        name, shape = self.pick()
        if shape:
            axis = self.axis(shape)
            centred = self.add(shape, f"subtract({name}, {self.along(name, shape, axis, 'sum', '0.1')})")
            square = self.add(shape, f"multiply({centred}, {centred})")
            self.add(shape, f"divide({centred}, {self.along(square, shape, axis, 'sum', '1')})")

    def running(self) -> None:
        name, shape = self.pick()
        if shape and 0 not in shape:
            axis = self.axis(shape)
            size = "x".join(str(n) if d == axis else "1" for d, n in enumerate(shape))
            pad = "x".join(f"{n - 1}_0" if d == axis else "0_0" for d, n in enumerate(shape))
            zero = self.add((), "constant(0)")
            self.add(shape, f"reduce-window({name}, {zero}), window={{size={size} pad={pad}}}, to_apply=sum")

    def sort(self) -> None:
        name, shape = self.pick()
        if shape:
            self.add(shape, f"sort({name}), dimensions={{{len(shape) - 1}}}, to_apply=less")

    def axis(self, shape: Shape) -> int:
        """Mostly the last one."""
        return len(shape) - 1 if self.random.random() < 0.7 else self.random.randrange(len(shape))

    def along(self, name: str, shape: Shape, axis: int, body: str, init: str) -> str:
        """A value reduced along an axis, and repeated along it."""
        kept = [d for d in range(len(shape)) if d != axis]
        first = self.add((), f"constant({init})")
        total = self.add(tuple(shape[d] for d in kept), f"reduce({name}, {first}), dimensions={{{axis}}}, to_apply={body}")
        return self.add(shape, f"broadcast({total}), dimensions={{{listed(kept)}}}")
