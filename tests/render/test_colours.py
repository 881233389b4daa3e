"""Palettes: all pairs of categories differ, also with red-green colour blindness, on light and dark ground; what each category means."""
from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from irscope.render.categories import COLOUR_MODES, FINDINGS, GROUPS, PALETTES, ROOFLINE
from irscope.render.classify import layout_of, roofline_of, sharding_of
from irscope.render.detail import detail_view
from irscope.render.dot import dot_text
from irscope.render.kernel_plan import KernelPlan
from irscope.render.overview import overview
from irscope.render.palette import OF_CHANGE, OF_DTYPE, STOPS, contrast, heat
from irscope.render.svg import svg_text
from irscope.render.theme import DARK, LIGHT, box_colours, legend, most_of
from irscope.render.view import BoxOptions
from irscope.source.visible import markup
from tests.analysis.texts import FUSED, layers, survey

# Machado, Oliveira and Fernandes (2009), "A Physiologically-based Model for Simulation of Color Vision Deficiency", table 1, severity 1.
VISION = {
    "usual": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}
LEAST = 12.0
"""The least distance of two categories in CIELAB (CIE 1976); 2.3 is what an eye just notices."""
LEAST_OF_CLASSES = 8.0
"""There are twelve classes, whose boxes name the operator as well."""


def lab(fill: str, vision: str) -> tuple[float, float, float]:
    """CIELAB (D65) of an sRGB colour as it is seen; IEC 61966-2-1 and CIE 15."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (byte / 255 for byte in bytes.fromhex(fill[1:]))]
    r, g, b = (min(1.0, max(0.0, sum(k * c for k, c in zip(row, linear, strict=True)))) for row in VISION[vision])
    x = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047
    y = 0.2126729 * r + 0.7151522 * g + 0.0721750 * b
    z = (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def distance(first: str, second: str, vision: str) -> float:
    pairs = zip(lab(first, vision), lab(second, vision), strict=True)
    return float(sum((a - b) ** 2 for a, b in pairs) ** 0.5)


def nearest(fills: dict[str, str], vision: str) -> tuple[float, str, str]:
    return min((distance(fills[a], fills[b], vision), a, b) for a, b in combinations(fills, 2))


def test_the_distances_are_those_of_known_colours() -> None:
    assert distance("#000000", "#ffffff", "usual") == pytest.approx(100, abs=0.01)
    assert distance("#ff0000", "#00ff00", "usual") > 150
    assert distance("#b00000", "#5c6b00", "deuteranopia") < 20 < distance("#b00000", "#5c6b00", "usual")


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", PALETTES)
def test_categories_differ_for_every_eye(name: str, dark: bool, vision: str) -> None:
    palette = PALETTES[name]
    assert nearest({c: palette.colours(c, dark).fill for c in palette.fills}, vision)[0] >= LEAST
    assert set(palette.first) <= set(palette.fills)


@pytest.mark.parametrize("vision", VISION)
def test_classes_groups_scales_and_common_dtypes_differ(vision: str) -> None:
    for theme in (LIGHT, DARK):
        classes = {name: c.fill for name, c in theme.classes.items() if name != "constant"}  # drawn as what costs nothing
        assert nearest(classes, vision)[0] >= LEAST_OF_CLASSES
    assert nearest({str(i): c.fill for i, c in enumerate(GROUPS)}, vision)[0] >= LEAST
    for dark in (False, True):
        stops = [heat(share, dark).fill for share in STOPS]
        assert min(distance(a, b, vision) for a, b in pairwise(stops)) >= LEAST
        unknown = ROOFLINE.colours("unknown", dark).fill
        assert min(distance(heat(i / 100, dark).fill, unknown, vision) for i in range(101)) >= LEAST
    common = {name: OF_DTYPE[name].fill for name in ("f64", "f32", "bf16", "f16", "pred", "s32", "s8", "u8")}
    assert nearest(common, vision)[0] >= LEAST_OF_CLASSES


def test_texts_are_legible_on_their_fills() -> None:
    """A contrast ratio of 4.5 or more, the least of WCAG 2.1 AA, for every palette, class, dtype, kernel and place on a scale."""
    def luminance(fill: str) -> float:  # IEC 61966-2-1
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (byte / 255 for byte in bytes.fromhex(fill[1:])))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    palettes = [palette.colours(name, dark) for palette in PALETTES.values() for name in palette.fills for dark in (False, True)]
    scales = [heat(i / 200, dark) for i in range(201) for dark in (False, True)]
    for colours in (*palettes, *scales, *GROUPS, *OF_DTYPE.values(), *OF_CHANGE.values(), *LIGHT.classes.values(), *DARK.classes.values()):
        low, high = sorted((luminance(colours.fill), luminance(colours.text)))
        ratio = (high + 0.05) / (low + 0.05)
        assert ratio >= 4.5, (colours, ratio)
        assert contrast(colours.fill, colours.text) == pytest.approx(ratio)


@pytest.mark.parametrize(("type", "category"), [
    ("f32[4,8]{1,0}", "row-major"), ("f32[4,8]{0,1}", "column-major"), ("f32[4,8,2]{1,2,0}", "permuted"), ("f32[4]{0}", "row-major"),
    ("f32[]", "row-major"), ("bf16[8,128]{1,0:T(8,128)(2,1)}", "tiled"), ("f32[8,128]{1,0:T(8,128)S(1)}", "other memory space"),
])
def test_layouts(type: str, category: str) -> None:
    facts = survey(f"HloModule m\nENTRY e {{ ROOT p = {type} parameter(0) }}")
    found = layout_of(facts.module.main().nodes[0].type)
    assert found == category or (type == "f32[]" and found == "no layout")


def test_a_text_without_layouts_has_none() -> None:
    assert layout_of(survey("HloModule m\nENTRY e { ROOT p = f32[4,8] parameter(0) }").module.main().nodes[0].type) == "no layout"


@pytest.mark.parametrize(("text", "category"), [
    ("{replicated}", "replicated"), ("{devices=[4,2]<=[8]}", "split"), ("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "split and replicated"),
    ("{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}", "split and replicated"), ("{maximal device=3}", "one device"),
    ("{manual}", "manual"), ("{{devices=[2,1]<=[2]}, {replicated}}", "split"), ("{{replicated}, {devices=[2,1]<=[2]}}", "replicated"),
    ("{{devices=[2,1]<=[2]}, {devices=[1,2]<=[2] last_tile_dim_replicate}}", "split"), ("", "not stated"),
])
def test_shardings(text: str, category: str) -> None:
    assert sharding_of(text) == category


@pytest.mark.parametrize(("flops", "bytes", "category"), [
    (0, 10, "no FLOPs"), (10, 10, "far below the ridge"), (80, 10, "below the ridge"), (160, 10, "above the ridge"), (1, 0, "above the ridge"),
])
def test_rooflines(flops: float, bytes: float, category: str) -> None:
    assert roofline_of(flops, bytes) == category
    assert roofline_of(flops, bytes, is_open=True) == "unknown"


SHARDED = """HloModule m
ENTRY e {
 x = f32[8,4]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}
 y = f32[8,4]{0,1} copy(x), sharding={replicated}
 z = f32[8,4]{0,1} copy(y)
 big = f32[64,8,4]{2,1,0} broadcast(z), dimensions={1,2}
 n = f32[64,8,4]{2,1,0} negate(big)
 s = f32[64,8,4]{2,1,0} exponential(n)
 ROOT r = f32[1,8,4]{2,1,0} slice(s), slice={[0:1], [0:8], [0:4]}
}"""


@pytest.mark.parametrize(("color_by", "legends"), [
    ("layout", ["row-major", "column-major"]), ("sharding", ["replicated", "split", "not stated"]),
    ("roofline", ["far below the ridge", "no FLOPs"]),
    ("liveness", ["runs at the peak", "alive at the peak", "of the caller", "freed before", "computed later"]),
    ("diff", ["added", "same"]), ("findings", ["none"]),
])
def test_boxes_have_their_categories_and_the_legend_names_them(color_by: str, legends: list[str]) -> None:
    facts = survey(SHARDED)
    nodes = facts.module.main().nodes
    view = detail_view(facts, facts.module.main(), BoxOptions(color_by=color_by, changes={nodes[4]: "added"}))
    assert [name for name, _ in legend(view.boxes, color_by, LIGHT)] == legends
    for dark in (False, True):
        for text in (svg_text(view, color_by, dark), dot_text(view, color_by, dark)):
            for name in legends:
                assert f">{name}</" in text and PALETTES[color_by].colours(name, dark).fill in text


def test_every_meaning_has_a_legend_in_every_drawing() -> None:
    facts = survey(FUSED)
    graph = facts.module.main()
    numbers = dict.fromkeys(graph.nodes, 1.0)
    for color_by in COLOUR_MODES:
        for view in (detail_view(facts, graph, BoxOptions(color_by=color_by, numbers=numbers)),
                     overview(facts, graph, BoxOptions(color_by=color_by, numbers=numbers))):
            named = [markup(name) for name, _ in legend(view.boxes, color_by, LIGHT)]
            assert named
            for text in (svg_text(view, color_by), dot_text(view, color_by)):
                assert all(f">{name}</" in text for name in named)


def test_what_lives_at_the_peak_is_said_in_boxes_and_sections() -> None:
    facts = survey(layers(3))
    graph = facts.module.main()
    life = facts.memory.graphs[graph]
    view = detail_view(facts, graph, BoxOptions(max_boxes=500, color_by="liveness"))
    alive = {node.name for node in facts.memory.live_at(graph, life.peak_at)}
    said = {box.node.name for box in view.boxes if box.node is not None and any("alive at the peak" in line for line in box.lines)}
    assert said == alive
    assert {box.node.name for box in view.boxes if box.category == "runs at the peak" and box.node} == {graph.nodes[life.peak_at].name}


def test_kernels_of_a_plan_have_the_colours_of_their_order() -> None:
    facts = survey(SHARDED)
    _, y, _, big, n, s, _ = facts.module.main().nodes
    plan = KernelPlan("p", {y: ("y",), big: ("n",), n: ("n",), s: ("s", "n")})
    view = detail_view(facts, facts.module.main(), BoxOptions(color_by="fusion", plan=plan))
    groups = {box.node.name: box.group for box in view.boxes if box.node is not None}
    assert groups == {"x": None, "y": (0, "y"), "z": None, "big": (1, "n"), "n": (1, "n"), "s": None, "r": None}
    assert legend(view.boxes, "fusion", LIGHT) == [("%y", GROUPS[0]), ("%n", GROUPS[1])]


def test_a_box_shows_the_worst_finding() -> None:
    assert list(FINDINGS.fills)[:3] == ["error", "warning", "info"]


UNREACHED = """HloModule m
other {
 p = f32[4] parameter(0)
 ROOT n = f32[4] negate(p)
}
ENTRY e { ROOT x = f32[4] parameter(0) }"""


@pytest.mark.parametrize("color_by", ["cost", "bytes"])
def test_what_is_not_known_has_no_colour_of_the_scale(color_by: str) -> None:
    """What the entry does not reach has no figures: its boxes are not those of a cost of 0."""
    facts = survey(UNREACHED)
    view = detail_view(facts, facts.module.graphs["other"], BoxOptions(color_by=color_by))
    box = next(box for box in view.boxes if box.node is not None and box.node.name == "n")
    for theme in (LIGHT, DARK):
        assert box_colours(box, color_by, most_of(view.boxes, color_by), theme) == ROOFLINE.colours("unknown", theme.dark)
        assert legend(view.boxes, color_by, theme)[-1] == ("unknown", ROOFLINE.colours("unknown", theme.dark))
    facts = survey(SHARDED)
    known = detail_view(facts, facts.module.main(), BoxOptions(color_by=color_by))
    assert len(legend(known.boxes, color_by, LIGHT)) == len(STOPS)
