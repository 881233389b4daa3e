// What the colours mean: classes of work, figures on a scale, or the categories of a fixed palette (irscope/render/categories.py).
const ALARM = { error: "#cf222e", warning: "#e36209" };
const MEANINGS = { class: "sort of work", cost: "cost", bytes: "traffic", dtype: "dtype", fusion: "kernel or fusion" };
const SCALES = { light: [[255, 255, 255], [215, 60, 45]], dark: [[22, 27, 34], [255, 123, 92]] };   // the ends of palette.heat
const FLOPS_PER_BYTE = 16, FAR = 0.25, NAMED = 12;

function ground() { return page.dark ? "dark" : "light"; }
function heatOf(share) {
  const [from, to] = SCALES[ground()], x = Math.sqrt(Math.min(1, Math.max(0, share))), mix = i => Math.round(from[i] + (to[i] - from[i]) * x);
  const fill = [mix(0), mix(1), mix(2)];
  return [`rgb(${fill})`, "#8c8c8c", legibleText(fill)];
}
// The text of enough contrast with a fill of red, green and blue, as palette.legible chooses it.
function legibleText(fill) {
  const linear = c => c <= 0.04045 * 255 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4, luminance = rgb => 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]);
  const ground = luminance(fill) + 0.05, white = 1.05 / ground, ink = ground / (luminance([0x1f, 0x23, 0x28]) + 0.05);
  return Math.max(white, ink) < 4.5 ? "#000000" : ink > white ? "#1f2328" : "#ffffff";
}

// The colours to choose from: those that this program has something for.
function colourChoices() {
  const select = $("colour"), { palettes, graphs, plans } = page.data, names = Object.keys(MEANINGS);
  for (const name in palettes) {
    if ((name === "layout" || name === "sharding" || name === "diff") && !graphs.some(g => g.categories[name]) && !(name === "diff" && page.allStages)) continue;
    names.push(name);
  }
  if (page.numbers) names.push("numbers");
  select.replaceChildren(...names.map(name => { const o = make("option", name === "fusion" && plans.length ? "kernel" : MEANINGS[name] || (palettes[name] ? palettes[name].title : name)); o.value = name; return o; }));
  if (!names.includes(page.colour)) page.colour = "class";
  select.value = page.colour;
}

function chooseColour(name) {
  page.colour = name; $("colour").value = name;
  if (name === "liveness") needMemory();
  legend(); draw();
}

// The number of the category of each node under a palette, as a function of the node; null where it is not known yet.
const CATEGORIES = {
  layout: g => v => Number(g.raw.categories.layout ? g.raw.categories.layout[v] : page.data.palettes.layout.names.length - 1),
  sharding: g => v => Number(g.raw.categories.sharding ? g.raw.categories.sharding[v] : page.data.palettes.sharding.names.length - 1),
  diff: g => page.allStages ? stageChanges(g) : v => Number(g.raw.categories.diff ? g.raw.categories.diff[v] : page.data.palettes.diff.names.length - 1),
  roofline: g => v => rooflineOf(g.flops(v), g.bytes(v), g.isOpen(v)),
  liveness: g => livenessOf(g),
};

function rooflineOf(flops, bytes, open) {
  const number = name => page.data.palettes.roofline.names.indexOf(name);
  if (open) return number("unknown");
  if (!flops) return number("no FLOPs");
  const share = bytes ? flops / (bytes * FLOPS_PER_BYTE) : Infinity;
  return number(share < FAR ? "far below the ridge" : share < 1 ? "below the ridge" : "above the ridge");
}

// The categories of the visible places; of a closed section, of all its nodes, the first of the palette's order or that of most bytes.
function placedCategories() {
  const key = page.colour + ":" + (page.colour === "liveness" ? `${instant()} ${Boolean(page.memory)}` : "") + (page.stage ?? "");
  if (page.view.categoriesOf === key) return page.view.categories;
  const g = page.graph, palette = page.data.palettes[page.colour], of = CATEGORIES[page.colour](g), hider = g.hiders(), counted = new Map(), found = new Map();
  page.view.categoriesOf = key;
  page.view.categories = found;
  if (!of) return found;
  for (let v = 0; v < g.n; v++) {
    const seen = g.raw.fold[v] === "b" ? g.first(v) : -1;
    if (seen < 0) continue;
    const place = hider[g.section[seen]] ?? seen, number = of(v);
    let sums = counted.get(place);
    if (!sums) counted.set(place, sums = new Map());
    sums.set(number, (sums.get(number) || 0) + 1 + g.size(v));
  }
  const first = palette.first.map(name => palette.names.indexOf(name));
  for (const [place, sums] of counted) {
    const info = place < 0 && page.colour === "roofline" ? g.sectionInfo(sectionOfPlace(place)) : null;
    found.set(place, info ? rooflineOf(info.flops, info.bytes, info.open) : first.find(n => sums.has(n)) ?? [...sums].reduce((a, b) => b[1] > a[1] ? b : a)[0]);
  }
  return found;
}

// The kernels of the policy, or the fusions of the text, numbered in the order of the text: a node's number and name, or null.
function groupNumber(g, v) {
  const plan = currentPlan();
  if (plan) {
    if (!plan.numbers) {
      plan.numbers = new Map();
      for (const name of plan.in) for (const kernel of Object.hasOwn(plan.graphs, name) ? plan.graphs[name].kernels : []) if (!plan.numbers.has(kernel)) plan.numbers.set(kernel, plan.numbers.size);
    }
    const mine = g.plan.kernelsOf(v);
    return mine.length === 1 ? [plan.numbers.get(g.plan.kernels[mine[0]]), g.plan.kernels[mine[0]]] : null;
  }
  if (!page.fusions) {
    page.fusions = new Map();
    for (const other of page.data.graphs) for (const at in other.bodies) {
      if (page.data.ops[other.op[at]][0] === "fusion" && !page.fusions.has(other.bodies[at][0])) page.fusions.set(other.bodies[at][0], [page.fusions.size, other.names[at]]);
    }
  }
  return page.fusions.get(g.op(v) === "fusion" ? g.bodies(v)[0] : g.number) ?? null;
}

function colours(place) {
  const theme = page.data.themes[ground()], g = page.graph, palette = page.data.palettes[page.colour], quiet = place < 0 ? theme.classes.section : theme.classes.free;
  if (hasUnknownFigure(place)) return unknownColours();
  if (page.colour === "cost") return heatOf(costOf(place) / page.most);
  if (page.colour === "bytes") return heatOf(bytesOf(place) / page.mostBytes);
  if (page.colour === "numbers" && page.numbers) return numberOf(place) === undefined ? quiet : heatOf(numberOf(place) / page.largest);
  if (page.colour === "findings") return palette[ground()][palette.names.indexOf(page.view.extras.worst.get(place) || "none")];
  if (palette) return palette[ground()][placedCategories().get(place)] || quiet;
  if (place < 0) return theme.classes.section;
  if (page.colour === "fusion") { const group = groupNumber(g, place); return group ? page.data.groups[group[0] % page.data.groups.length] : quiet; }
  if (page.colour === "dtype") return Object.hasOwn(page.data.dtypes, dtypeOf(place)) ? page.data.dtypes[dtypeOf(place)] : theme.classes.free;
  return theme.classes[g.klass(place)] || theme.classes.custom;
}
function bytesOf(place) { return place >= 0 ? page.graph.bytes(place) : page.graph.sectionInfo(sectionOfPlace(place)).bytes; }
function unknownColours() { const { roofline } = page.data.palettes; return roofline[ground()][roofline.names.indexOf("unknown")]; }
// Whether nothing of the figure is known that the colour of a box shows.
function hasUnknownFigure(place) {
  if (page.colour !== "cost" && page.colour !== "bytes") return false;
  const open = place >= 0 ? page.graph.isOpen(place) : page.graph.sectionInfo(sectionOfPlace(place)).open;
  return Boolean(open) && !(page.colour === "cost" ? costOf(place) : bytesOf(place));
}
function dtypeOf(place) { return page.graph.type(place).split("[")[0].replace(/^\(+/, ""); }

// The colours that occur in the drawing, with their names.
function meaning() {
  const theme = page.data.themes[ground()], all = [...page.view.items.keys()], places = all.filter(p => p >= 0), palette = page.data.palettes[page.colour];
  const unknown = all.some(hasUnknownFigure) ? [["unknown", unknownColours()]] : [];
  const scale = text => [...page.data.heat[ground()].map(([share, ...shown]) => [text(share), shown]), ...unknown];
  if (page.colour === "cost") return scale(share => Math.round(100 * share) + " %");
  if (page.colour === "bytes") return scale(share => bytesText(share * page.mostBytes));
  if (page.colour === "numbers" && page.numbers) return scale(share => numberText(share * page.largest));
  if (page.colour === "dtype") {
    const used = new Set(places.map(dtypeOf));
    return Object.entries(page.data.dtypes).filter(([name]) => used.has(name));
  }
  if (page.colour === "fusion") {
    const used = new Map(places.map(p => groupNumber(page.graph, p)).filter(Boolean).map(([n, name]) => [n, name])), rows = [...used].sort((a, b) => a[0] - b[0]);
    return [...rows.slice(0, NAMED).map(([n, name]) => ["%" + name, page.data.groups[n % page.data.groups.length]]),
      ...(rows.length > NAMED ? [[`+${rows.length - NAMED} more, colours repeat`, theme.classes.free]] : [])];
  }
  if (palette) {
    const used = page.colour === "findings" ? new Set(all.map(p => palette.names.indexOf(page.view.extras.worst.get(p) || "none"))) : new Set(all.map(p => placedCategories().get(p)));
    return palette.names.map((name, i) => [page.colour === "liveness" ? liveName(name) : name, palette[ground()][i], i]).filter(row => used.has(row[2]));
  }
  const used = new Set(all.map(p => p < 0 ? "section" : page.graph.klass(p)));
  return [...page.data.classes.filter(name => used.has(name)), ...(used.has("section") ? ["section"] : [])].map(name => [name, theme.classes[name] || []]);
}

function legend() {
  const element = $("legend");
  element.replaceChildren();
  for (const [name, [fill, border, text]] of meaning()) {
    const span = make("span", name);
    span.style.cssText = `background:${fill};border-color:${border};color:${text}`;
    element.append(span);
  }
}
