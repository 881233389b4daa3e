"""Random small programs on images, as written in NCHW or NHWC: everything that a layout reaches."""
from __future__ import annotations

from collections.abc import Callable
from random import Random

Sizes = dict[str, int]
"""The size of each axis by its letter, in the order of the layout; letters that are gone are gone."""


def image_program(seed: int, size: int = 16, places: bool = True) -> str:
    """A program with one image as input, weights as further inputs, and three results; ``places`` allows ``argmax``, which rounding may turn."""
    return _Maker(Random(seed)).text(size, places)


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.layout = random.choice(["NCHW", "NHWC"])
        self.params: list[str] = []
        self.lines: list[str] = []
        self.values: list[tuple[str, Sizes]] = []

    def text(self, size: int, places: bool) -> str:
        first = {letter: {"N": 2, "C": 8, "H": 6, "W": 5}[letter] for letter in self.layout}
        self.values.append((self.param(first), first))
        kinds: list[Callable[[str, Sizes], None]] = [
            self.conv, self.conv, self.conv, self.pointwise, self.pointwise, self.sum, self.beside, self.bias, self.norm, self.pool, self.overall,
            self.concat, self.split, self.slice, self.pad, self.back_and_forth, self.along, self.reduce, self.resize, self.where]
        if places:
            kinds.append(self.top)
        while len(self.lines) < size:
            whole = [v for v in self.values if len(v[1]) == 4]
            self.random.choice(kinds)(*whole[-1 - min(int(self.random.expovariate(0.8)), len(whole) - 1)])
        results = ", ".join(name for name, _ in (*self.random.sample(self.values, 2), self.values[-1]))
        return "def @main({}) {{\n{}\n  return ({});\n}}\n".format(", ".join(self.params), "\n".join(self.lines), results)

    def param(self, sizes: Sizes) -> str:
        name = f"%p{len(self.params)}"
        self.params.append(f"{name}: Tensor[({', '.join(map(str, sizes.values()))}{',' * (len(sizes) == 1)}), float32]")
        return name

    def line(self, text: str) -> str:
        self.lines.append(f"  %{len(self.lines)} = {text};")
        return f"%{len(self.lines) - 1}"

    def add(self, text: str, sizes: Sizes, part: str = "") -> None:
        self.values.append((self.line(text) + part, sizes))

    def axis(self, letter: str, sizes: Sizes) -> int:
        place = list(sizes).index(letter)
        return self.random.choice([place, place - len(sizes)])

    # ------------------------------------------------------------------ operators

    def conv(self, x: str, sizes: Sizes) -> None:
        c, out = sizes["C"], self.random.choice([4, 8])
        kind = self.random.choice(["plain", "plain", "depthwise", "grouped" if c % 4 == 0 else "plain"])
        k = self.random.choice([1, 3])
        if min(sizes["H"], sizes["W"]) < 1:
            return
        groups, out = (c, c) if kind == "depthwise" else (2, out) if kind == "grouped" else (1, out)
        kernel = "OIHW" if self.layout == "NCHW" else "HWOI" if kind == "depthwise" else "HWIO"
        weight = self.param({letter: {"O": out, "I": c // groups, "H": k, "W": k}[letter] for letter in kernel})
        self.add(f"nn.conv2d({x}, {weight}, padding=[{k // 2}, {k // 2}], groups={groups}, channels={out}, kernel_size=[{k}, {k}], "
                 f'data_layout="{self.layout}", kernel_layout="{kernel}")', {**sizes, "C": out})

    def pointwise(self, x: str, sizes: Sizes) -> None:
        self.add(self.random.choice(["nn.relu({})", "tanh({})", "clip({}, a_min=-1f, a_max=2f)", "nn.leaky_relu({}, alpha=0.1f)", "multiply({}, 0.5f)",
                                     'cast(cast({}, dtype="float64"), dtype="float32")', "nn.dropout({}).0"]).format(x), sizes)

    def sum(self, x: str, sizes: Sizes) -> None:
        alike = [name for name, s in self.values if s == sizes and list(s) == list(sizes)]
        self.add(f"{self.random.choice(['add', 'subtract', 'maximum'])}({x}, {self.random.choice(alike)})", sizes)

    def beside(self, x: str, sizes: Sizes) -> None:
        """Something smaller that is stretched: along some axes, with as many axes or fewer."""
        letters = list(sizes)[self.random.randrange(4):]
        small = {letter: self.random.choice([1, sizes[letter]]) for letter in letters}
        other = self.param(small)
        self.add(f"{self.random.choice(['add', 'multiply'])}({', '.join(self.random.sample([x, other], 2))})", sizes)

    def bias(self, x: str, sizes: Sizes) -> None:
        letter = self.random.choice("CCH")
        name = self.random.choice(["nn.bias_add", "nn.prelu"])
        self.add(f"{name}({x}, {self.param({letter: sizes[letter]})}, axis={self.axis(letter, sizes) % 4})", sizes)

    def norm(self, x: str, sizes: Sizes) -> None:
        gamma, beta, mean, spread = (self.param({"C": sizes["C"]}) for _ in range(4))
        place = list(sizes).index("C")
        match self.random.choice(["batch", "layer", "instance"]):
            case "batch":
                variance = self.line(f"exp({spread})")
                self.add(f"nn.batch_norm({x}, {gamma}, {beta}, {mean}, {variance}, axis={place}, epsilon=0.1f)", sizes, ".0")
            case "layer":
                self.add(f"nn.layer_norm({x}, {gamma}, {beta}, axis={place}, epsilon=0.1f)", sizes)
            case _:
                self.add(f"nn.instance_norm({x}, {gamma}, {beta}, axis={place}, epsilon=0.1f)", sizes)

    def pool(self, x: str, sizes: Sizes) -> None:
        kind = self.random.choice(["max", "avg"])
        self.add(f'nn.{kind}_pool2d({x}, pool_size=[3, 3], padding=[1, 1, 1, 1], layout="{self.layout}")', sizes)

    def overall(self, x: str, sizes: Sizes) -> None:
        self.add(f'nn.global_{self.random.choice(["max", "avg"])}_pool2d({x}, layout="{self.layout}")', {**sizes, "H": 1, "W": 1})

    def concat(self, x: str, sizes: Sizes) -> None:
        letter = self.random.choice("CCHN")
        fitting = [(n, s) for n, s in self.values if list(s) == list(sizes) and all(s[c] == sizes[c] for c in sizes if c != letter)]
        other, more = self.random.choice(fitting)
        self.add(f"concatenate(({x}, {other}), axis={self.axis(letter, sizes)})", {**sizes, letter: sizes[letter] + more[letter]})

    def split(self, x: str, sizes: Sizes) -> None:
        letter = next((c for c in self.random.sample("CNHW", 4) if sizes[c] % 2 == 0), None)
        if letter is None:
            return
        cuts = self.random.choice(["2", f"[{sizes[letter] // 2}]"])
        whole = self.line(f"split({x}, indices_or_sections={cuts}, axis={self.axis(letter, sizes)})")
        half = {**sizes, letter: sizes[letter] // 2}
        self.values += [(f"{whole}.0", half), (f"{whole}.1", half)]

    def slice(self, x: str, sizes: Sizes) -> None:
        letter = self.random.choice("HW")
        n = sizes[letter]
        if n < 3:
            return
        if self.random.random() < 0.5:
            self.add(f"strided_slice({x}, begin=[1], end=[{n}], strides=[2], axes=[{self.axis(letter, sizes)}])", {**sizes, letter: n // 2})
            return
        begin = [1 if c == letter else 0 for c in sizes]
        end = [-1 if c == letter else s for c, s in sizes.items()]
        self.add(f"strided_slice({x}, begin={begin}, end={end}, strides=[1, 1, 1, 1])", {**sizes, letter: n - 2})

    def pad(self, x: str, sizes: Sizes) -> None:
        widths = {c: self.random.choice([0, 1]) if c in "HW" else 0 for c in sizes}
        self.add(f"nn.pad({x}, 0.5f, pad_width=[{', '.join(f'[{w}, 0]' for w in widths.values())}])", {c: s + widths[c] for c, s in sizes.items()})

    def back_and_forth(self, x: str, sizes: Sizes) -> None:
        order = self.random.sample(range(4), 4)
        turned = self.line(f"transpose({x}, axes={order})")
        inner = self.line(f"abs({turned})")
        self.add(f"transpose({inner}, axes={[order.index(i) for i in range(4)]})", sizes)

    def along(self, x: str, sizes: Sizes) -> None:
        letter = self.random.choice("CHW")
        self.add(self.random.choice([
            f"nn.softmax({x}, axis={self.axis(letter, sizes)})", f"cumsum({x}, axis={self.axis(letter, sizes)})",
            f"nn.l2_normalize({x}, eps=0.1f, axis=[{self.axis(letter, sizes)}, {list(sizes).index('N')}])",
            f"reverse({x}, axis={list(sizes).index(letter)})"]), sizes)

    def reduce(self, x: str, sizes: Sizes) -> None:
        letters = self.random.sample(list(sizes), self.random.choice([1, 2]))
        name, keep, exclude = self.random.choice(["sum", "max", "mean"]), self.random.random() < 0.5, self.random.random() < 0.3
        axes = [self.axis(c, sizes) for c in letters]
        gone = [c for c in sizes if (c in letters) != exclude]
        text = f"{name}({x}, axis={axes}, keepdims={keep}, exclude={exclude})"
        self.add(text, {c: 1 if c in gone else s for c, s in sizes.items()} if keep else {c: s for c, s in sizes.items() if c not in gone})

    def resize(self, x: str, sizes: Sizes) -> None:
        if sizes["H"] * sizes["W"] > 60:
            return
        self.add(f'nn.upsampling({x}, scale_h=2f, scale_w=2f, layout="{self.layout}")', {**sizes, "H": sizes["H"] * 2, "W": sizes["W"] * 2})

    def where(self, x: str, sizes: Sizes) -> None:
        condition = self.line(f"greater({x}, 0f)")
        self.add(f"where({condition}, {x}, {self.param({'C': sizes['C']} if self.layout == 'NHWC' else dict(sizes))})", sizes)

    def top(self, x: str, sizes: Sizes) -> None:
        """Places are whole numbers: one axis alone, so that they stay the same."""
        letter = self.random.choice("CH")
        place = self.line(f"argmax({x}, axis=[{self.axis(letter, sizes)}], keepdims=True)")
        self.add(f'cast({place}, dtype="float32")', {**sizes, letter: 1})
