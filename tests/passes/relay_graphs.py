"""Random small Relay programs: convolutions, dense layers, normalisation, movement, conversions, reductions, tuples."""
from __future__ import annotations

from random import Random

Shape = tuple[int, ...]
UNARY = ["tanh", "nn.relu", "abs", "negative", "sigmoid", "exp"]
BINARY = ["add", "subtract", "multiply", "maximum"]


def random_program(seed: int, size: int = 14) -> str:
    """A program of one function in the course's style, with one to three results."""
    return Maker(Random(seed)).text(size)


class Maker:
    STEPS: tuple[str, ...] = (
        "unary", "unary", "binary", "scalar", "convolution", "convolution", "dense", "norm", "transpose", "transpose", "reshape", "cast",
        "cast", "reduce", "concatenate", "pool", "dropout", "bias", "again", "layer_norm")
    """The methods that add lines, the likely ones more than once."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.params: list[str] = []
        self.lines: list[str] = []
        self.values: list[tuple[str, Shape, str]] = []

    def text(self, size: int) -> str:
        self.values.append((self.param((1, 4, 6, 6)), (1, 4, 6, 6), "float32"))
        self.values.append((self.param((2, 8)), (2, 8), "float32"))
        while len(self.lines) < size:
            getattr(self, self.random.choice(self.STEPS))()
        result = ", ".join(self.results())
        return "def @main({}) {{\n{}\n  return ({});\n}}\n".format(", ".join(self.params), "\n".join(self.lines), result)

    def results(self) -> list[str]:
        """Some values, and the last."""
        return [name for name, _, _ in (*self.random.sample(self.values, min(3, len(self.values))), self.values[-1])]

    def param(self, shape: Shape) -> str:
        name = f"%p{len(self.params)}"
        self.params.append(f"{name}: Tensor[({', '.join(map(str, shape))}), float32]")
        return name

    def add(self, what: str, shape: Shape, dtype: str = "float32", part: str = "") -> None:
        name = f"%{len(self.lines)}"
        self.lines.append(f"  {name} = {what};")
        self.values.append((name + part, shape, dtype))

    def pick(self, rank: int | None = None, wide: bool = True) -> tuple[str, Shape, str]:
        fitting = [v for v in self.values if (rank is None or len(v[1]) == rank) and (not wide or v[2] == "float32")]
        return fitting[-1 - min(int(self.random.expovariate(0.5)), len(fitting) - 1)]

    def unary(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        fitting = UNARY if dtype == "float32" else UNARY[:4] if dtype == "float16" else UNARY[1:4]
        self.add(f"{self.random.choice(fitting)}({name})", shape, dtype)

    def binary(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        alike = [n for n, s, d in self.values if s == shape and d == dtype]
        self.add(f"{self.random.choice(BINARY)}({name}, {self.random.choice(alike)})", shape, dtype)

    def scalar(self) -> None:
        name, shape, _ = self.pick()
        self.add(f"{self.random.choice(BINARY)}({name}, {self.random.choice(['0f', '1f', '0.5f', '2f'])})", shape)

    def again(self) -> None:
        """The same as a line before: something to share."""
        at = self.random.randrange(len(self.lines)) if self.lines else 0
        same = [v for v in self.values if v[0] == f"%{at}"]
        if same:
            self.add(self.lines[at].partition(" = ")[2].rstrip(";"), same[0][1], same[0][2])

    def convolution(self) -> None:
        name, shape, _ = self.pick(4)
        if min(shape[2:]) < 1:
            return
        weight = self.param((4, shape[1], 3, 3))
        self.add(f"nn.conv2d({name}, {weight}, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3])", (shape[0], 4, *shape[2:]))

    def dense(self) -> None:
        name, shape, _ = self.pick(2)
        units = self.random.choice([3, 8])
        for _ in range(self.random.choice([1, 3])):
            self.add(f"nn.dense({name}, {self.param((units, shape[1]))}, units={units})", (shape[0], units))

    def bias(self) -> None:
        name, shape, _ = self.pick(self.random.choice([2, 4]))
        self.add(f"nn.bias_add({name}, {self.param((shape[1],))})", shape)

    def norm(self) -> None:
        name, shape, _ = self.pick(self.random.choice([2, 4]))
        mean, gamma, beta = (self.param((shape[1],)) for _ in range(3))
        # A variance is positive.
        spread = self.param((shape[1],))
        self.lines.append(f"  %{len(self.lines)} = exp({spread});")
        self.add(f"nn.batch_norm({name}, {gamma}, {beta}, {mean}, %{len(self.lines) - 1}, epsilon=0.01f)", shape, part=".0")

    def layer_norm(self) -> None:
        name, shape, _ = self.pick(2)
        self.add(f"nn.layer_norm({name}, {self.param((shape[1],))}, {self.param((shape[1],))}, epsilon=0.1f)", shape)

    def dropout(self) -> None:
        name, shape, _ = self.pick()
        self.add(f"nn.dropout({name})", shape, part=".0")

    def transpose(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        axes = self.random.sample(range(len(shape)), len(shape))
        self.add(f"transpose({name}, axes=[{', '.join(map(str, axes))}])", tuple(shape[a] for a in axes), dtype)

    def reshape(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        made = (shape[0], -1) if len(shape) != 2 else (shape[0], shape[1], 1, 1)
        rest = 1
        for size in shape[1:]:
            rest *= size
        self.add(f"reshape({name}, newshape=[{', '.join(map(str, made))}])", tuple(rest if d == -1 else d for d in made), dtype)

    def cast(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        other = "float16" if dtype == "float32" else "float32"
        self.add(f'cast({name}, dtype="{other}")', shape, other)

    def reduce(self) -> None:
        name, shape, _ = self.pick()
        axis = self.random.randrange(len(shape))
        self.add(f"{self.random.choice(['sum', 'max', 'mean'])}({name}, axis=[{axis}], keepdims=True)", (*shape[:axis], 1, *shape[axis + 1:]))

    def concatenate(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        self.lines.append(f"  %{len(self.lines)} = ({name}, {name});")
        self.add(f"concatenate(%{len(self.lines) - 1}, axis=1)", (shape[0], shape[1] * 2, *shape[2:]), dtype)

    def pool(self) -> None:
        name, shape, _ = self.pick(4)
        self.add(f"nn.max_pool2d({name}, pool_size=[3, 3], padding=[1, 1, 1, 1])", shape)
