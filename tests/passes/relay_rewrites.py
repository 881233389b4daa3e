"""Random Relay programs full of what the rewriting passes look for: branches, chains of movement and conversions, constants, known types."""
from __future__ import annotations

import re
from random import Random

Shape = tuple[int, ...]
UNARY = ["tanh", "nn.relu", "abs", "negative", "sigmoid", "exp"]
BINARY = ["add", "subtract", "multiply", "maximum"]

FOLLOWING = ("nn.relu({})", "tanh({})", "clip({}, a_min=-1f, a_max=2f)", "multiply({}, 2f)", "expand_dims({}, axis=0)")
OWN = ("add", "subtract")
"""Steps with a vector of the branch's own."""
LAYOUTS = ("NCHW", "NHWC", "NCHW2c", "NCHW4c", "CHWN")


def random_rewrites(seed: int, size: int = 24) -> str:
    """A program of one function in the course's style, with a tuple of results."""
    return _Rewrites(Random(seed)).text(size)


class _Rewrites:
    STEPS = (
        "unary", "binary", "scalar", "again", "branches", "branches", "branches", "convolutions", "rectified", "rectified", "like", "filled", "limits",
        "widening", "shared_cast", "shared_cast", "slices", "slices", "layouts", "layouts", "reshapes", "transpose", "transpose", "vectors", "root",
        "padded", "padded", "known", "choice", "group_norm", "length", "ordered", "dropout")

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

    def dropout(self) -> None:
        name, shape, _ = self.pick()
        self.add(f"nn.dropout({name})", shape, part=".0")

    def transpose(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        axes = self.random.sample(range(len(shape)), len(shape))
        self.add(f"transpose({name}, axes=[{', '.join(map(str, axes))}])", tuple(shape[a] for a in axes), dtype)

    def results(self) -> list[str]:
        """Every value that no line reads, so that all of the program counts."""
        read = set(re.findall(r"%\w+", "".join(line.partition("=")[2] for line in self.lines)))
        return [name for name, _, _ in self.values if name.partition(".")[0] not in read]

    def list_of(self, n: int) -> str:
        return "[" + ", ".join(f"{self.random.choice([0.5, 1, 2, -3])}f" for _ in range(n)) + "]"

    def branches(self) -> None:
        """Dense layers that read the same value, most of them with the same steps behind."""
        name, shape, _ = self.pick(2)
        same = self.random.random() < 0.7
        steps = [self.random.choice((*FOLLOWING, "bias", "shared", *OWN)) for _ in range(self.random.randrange(4))]
        shared = self.param((1,))
        for _ in range(self.random.choice([2, 3])):
            units = self.random.choice([3, 8])
            self.add(f"nn.dense({name}, {self.param((units, shape[1]))}, units={units})", (shape[0], units))
            for step in steps if same else self.random.sample(steps, len(steps)):
                self.follow(step, units, shared)

    def follow(self, step: str, units: int, shared: str) -> None:
        last, shape, dtype = self.values[-1]
        if step == "bias":
            if len(shape) == 2:
                self.add(f"nn.bias_add({last}, {self.param((units,))})", shape)
        elif step in OWN:
            self.add(f"{step}({last}, {self.param(self.random.choice([(units,), (1,), ()]))})", shape)
        elif step == "shared":
            self.add(f"add({last}, {shared})", shape)
        else:
            self.add(step.format(last), (1, *shape) if step.startswith("expand") else shape, dtype)

    def convolutions(self) -> None:
        name, shape, _ = self.pick(4)
        if min(shape) < 1:
            return
        for _ in range(2):
            channels = self.random.choice([2, 4])
            self.add(f"nn.conv2d({name}, {self.param((channels, shape[1], 1, 1))}, channels={channels}, kernel_size=[1, 1])",
                     (shape[0], channels, *shape[2:]))
            last, made, _ = self.values[-1]
            self.add(f"multiply({last}, {self.param((channels, 1, 1))})", made)
            self.add(f"nn.relu({self.values[-1][0]})", made)

    def rectified(self) -> None:
        """A convolution, its rectifier, and perhaps somebody else who needs it."""
        name, shape, _ = self.pick(4)
        made = (shape[0], 4, *shape[2:])
        self.add(f"nn.conv2d({name}, {self.param((4, shape[1], 3, 3))}, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3])", made)
        last = self.values[-1][0]
        self.add(f"nn.relu({last})", made)
        if self.random.random() < 0.5:
            self.add(f"add({last}, {self.values[-1][0]})", made)

    def like(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        other = self.pick(wide=False)
        self.add(self.random.choice([f"zeros_like({name})", f"ones_like({name})", f"cast_like({name}, {other[0]})"]), shape, dtype)
        if "cast_like" in self.lines[-1]:
            self.values[-1] = (self.values[-1][0], shape, other[2])

    def filled(self) -> None:
        name, shape, _ = self.pick()
        what = self.random.choice(["zeros(shape={0}, dtype=\"float32\")", "ones(shape={0}, dtype=\"float32\")",
                                   "full(2f, shape={0}, dtype=\"float32\")"])
        self.add(what.format(f"[{', '.join(map(str, shape))}]"), shape)
        pair = [name, self.values[-1][0]]
        self.random.shuffle(pair)
        self.add(f"{self.random.choice([*BINARY, 'divide'])}({pair[0]}, {pair[1]})", shape)

    def limits(self) -> None:
        """Values cut off, as an integer, and as something else."""
        name, shape, _ = self.pick()
        low, high = self.random.choice([(0, 255), (-128, 127), (-1, 1), (0, 3)])
        self.add(f"clip({name}, a_min={low}f, a_max={high}f)", shape)
        for dtype in (self.random.choice(["int32", "int16"]), self.random.choice(["int32", "float32"])):
            self.add(f'cast({self.values[-1][0]}, dtype="{dtype}")', shape, dtype)

    def widening(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        chain = {"float32": ("float16", "float32"), "float16": ("float32", "float16")}.get(dtype, ("float32", "int32"))
        for wanted in chain:
            self.add(f'cast({self.values[-1][0] if wanted == chain[1] else name}, dtype="{wanted}")', shape, wanted)

    def padded(self) -> None:
        """Padding, and a convolution or a pooling that reads it."""
        name, shape, _ = self.pick(4)
        value = self.random.choice(["0f", "0f", "-3.40282e+38f", "1f"])
        sides = [self.random.choice([0, 1, 2]) for _ in range(4)]
        h, w = shape[2] + sides[0] + sides[1], shape[3] + sides[2] + sides[3]
        self.add(f"nn.pad({name}, {value}, pad_width=[[0, 0], [0, 0], {sides[:2]}, {sides[2:]}])", (*shape[:2], h, w))
        last = self.values[-1][0]
        kind = self.random.choice(["max", "max", "avg", "conv"])
        size, step = self.random.choice([2, 3]), self.random.choice([1, 2])
        if (value[0] == "-" and kind != "max") or min(h, w) < size:
            return
        made = ((h - size) // step + 1, (w - size) // step + 1)
        if kind == "conv":
            weight = self.param((4, shape[1], size, size))
            self.add(f"nn.conv2d({last}, {weight}, strides=[{step}, {step}], channels=4, kernel_size=[{size}, {size}])", (shape[0], 4, *made))
        else:
            counts = self.random.choice(["", ", count_include_pad=True"]) if kind == "avg" else ""
            self.add(f"nn.{kind}_pool2d({last}, pool_size=[{size}, {size}], strides=[{step}, {step}]{counts})", (*shape[:2], *made))

    def shared_cast(self) -> None:
        """A half made wide for several readers, some of which only move it."""
        name, shape, _ = self.pick()
        self.add(f'cast({name}, dtype="float16")', shape, "float16")
        self.add(f'cast({self.values[-1][0]}, dtype="float32")', shape)
        wide = self.values[-1][0]
        axes = self.random.sample(range(len(shape)), len(shape))
        self.add(f"transpose({wide}, axes={axes})", tuple(shape[a] for a in axes))
        for _ in range(self.random.choice([0, 1, 2])):
            self.add(f"{self.random.choice(UNARY)}({wide})", shape)

    def slices(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        for _ in range(self.random.choice([1, 2])):
            begin = [self.random.randrange(max(1, n // 3)) for n in shape]
            strides = [self.random.choice([1, 1, 2]) for _ in shape]
            end = [n - self.random.randrange(max(1, n // 4)) for n in shape]
            self.add(f"strided_slice({name}, begin={begin}, end={end}, strides={strides})",
                     tuple(len(range(b, e, s)) for b, e, s in zip(begin, end, strides, strict=True)), dtype)
            name, shape, _ = self.values[-1]

    def layouts(self) -> None:
        """Changes of layout and transposes, one behind the other."""
        name, shape, dtype = self.pick(4, wide=False)
        if shape[1] % 4:
            return
        sizes = dict(zip("NCHW", shape, strict=True))
        at = "NCHW"
        for wanted in self.random.sample(LAYOUTS, self.random.choice([1, 2, 3])):
            if wanted != at:
                self.add(f'layout_transform({name}, src_layout="{at}", dst_layout="{wanted}")', _laid(wanted, sizes), dtype)
            name, shape, _ = self.values[-1] if wanted != at else (name, shape, dtype)
            at = wanted
            if self.random.random() < 0.3:
                self.add(f"abs({name})", shape, dtype)
                name = self.values[-1][0]
        if len(shape) == 4 and self.random.random() < 0.5:
            axes = self.random.sample(range(4), 4)
            self.add(f"transpose({name}, axes={axes})", tuple(shape[a] for a in axes), dtype)

    def reshapes(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        self.add(f"expand_dims({name}, axis=1)", (shape[0], 1, *shape[1:]), dtype)
        total = 1
        for n in shape:
            total *= n
        self.add(f"reshape({self.values[-1][0]}, newshape=[{shape[0]}, -1])", (shape[0], total // shape[0]), dtype)

    def vectors(self) -> None:
        """Sums and products with constants."""
        name, shape, _ = self.pick()
        for _ in range(self.random.choice([1, 2, 3])):
            other = self.random.choice([self.list_of(shape[-1]), f"{self.random.choice([2, 3])}f"])
            self.add(f"{self.random.choice(['add', 'multiply'])}({name}, {other})", shape)
            name = self.values[-1][0]

    def root(self) -> None:
        name, shape, _ = self.pick()
        self.add(f"add(abs({name}), 1f)", shape)
        self.add(f"sqrt({self.values[-1][0]})", shape)
        self.add(f"divide({self.random.choice(['1f', '3f', name])}, {self.values[-1][0]})", shape)

    def known(self) -> None:
        """Arithmetic on constants alone."""
        self.add(f"{self.random.choice(BINARY)}({self.list_of(8)}, {self.list_of(8)})", (8,))
        self.add(f"{self.random.choice(UNARY)}({self.values[-1][0]})", (8,))
        self.add(f"add({self.values[1][0]}, {self.values[-1][0]})", (2, 8))

    def choice(self) -> None:
        name, shape, dtype = self.pick(wide=False)
        condition = self.random.choice(["less(1f, 2f)", "False", f"equal(ndarray_size({name}), 16)"])
        self.add(f"if ({condition}) {{\n    nn.relu({name})\n  }} else {{\n    negative({name})\n  }}", shape, dtype)

    def group_norm(self) -> None:
        name, shape, _ = self.pick(4)
        if shape[1] % 2 == 0:
            self.add(f"nn.group_norm({name}, {self.param((shape[1],))}, {self.param((shape[1],))}, num_groups=2, epsilon=0.1f)", shape)

    def length(self) -> None:
        name, shape, _ = self.pick()
        self.add(f"nn.l2_normalize({name}, eps=0.1f, axis=[{self.random.randrange(len(shape))}])", shape)

    def ordered(self) -> None:
        """Which of some dequantised values is largest."""
        name, shape, _ = self.pick(2)
        self.add(f'qnn.quantize({name}, 0.05f, 1, out_dtype="int8")', shape, "int8")
        quantised = self.values.pop()[0]
        self.add(f"qnn.dequantize({quantised}, {self.random.choice(['0.05f', '-0.05f'])}, 1)", shape)
        self.add(f"{self.random.choice(['argmax', 'argmin'])}({self.values[-1][0]}, axis=[1])", shape[:1], "int32")


def _laid(layout: str, sizes: dict[str, int]) -> Shape:
    """The shape in a layout such as ``NCHW4c``."""
    inner = int(layout[4]) if len(layout) > 4 else 0
    outer = tuple(sizes[c] // inner if c == "C" and inner else sizes[c] for c in layout[:4])
    return (*outer, inner) if inner else outer
