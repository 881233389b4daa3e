// Memory: live bytes along the schedule, what lives at a place of it, and what would lower the peak. Its data is unpacked when it is wanted.
const CHART = { width: 340, height: 120, left: 2, top: 14, bottom: 14 };

// Unpacks the data; what waits for it is drawn again.
function needMemory() {
  if (page.memory || page.memoryComes) return;
  page.memoryComes = inflate("memory").then(text => {
    page.memory = JSON.parse(text);
    if (page.tab === "memory" || page.tab === "details") details();
    if (page.colour === "liveness") { legend(); draw(); }
  });
}

// The record of a graph with the live range of each buffer: born at its node, last used at ends[v]; null where there are no temporaries.
function memoryOf(g) {
  if (!page.memory || (page.base && page.data !== page.base) || !Object.hasOwn(page.memory.graphs, g.name)) return null;
  const record = page.memory.graphs[g.name];
  if (!record.ends) {
    record.ends = new Int32Array(g.n).fill(-1);
    let k = 0;
    for (let v = 0; v < g.n; v++) if (record.own[v] === "1") { const d = record.last[k++]; record.ends[v] = d < 0 ? g.n : v + d; }
  }
  return record;
}

// The number of the node at which liveness is shown: the chosen one, or the one at the peak.
function instant() { const record = memoryOf(page.graph); return page.instant ?? (record ? record.at : -1); }

function livenessOf(g) {
  const record = memoryOf(g), names = page.data.palettes.liveness.names, number = name => names.indexOf(name);
  if (!page.memory) { needMemory(); return null; }
  const at = record ? instant() : -1, none = number("no buffer");
  if (at < 0) return () => none;
  const [runs, alive, caller, freed, later] = ["runs at the peak", "alive at the peak", "of the caller", "freed before", "computed later"].map(number);
  return v => v === at ? runs : g.op(v) === "parameter" ? caller : record.ends[v] < 0 ? none : v > at ? later : record.ends[v] >= at ? alive : freed;
}

// The name of a category, where another place than the peak is chosen.
function liveName(name) {
  const record = memoryOf(page.graph);
  return record && instant() !== record.at ? name.replace("the peak", "%" + page.graph.names[instant()]) : name;
}

// The nodes whose buffers live while a node runs, the largest first.
function aliveAt(g, at) {
  const record = memoryOf(g), found = [];
  for (let v = 0; v <= at; v++) if (record.ends[v] >= at) found.push(v);
  return found.sort((a, b) => g.size(b) - g.size(a));
}

function memoryTab(panel) {
  if (!page.memory) { needMemory(); panel.append(make("p", "unpacking ...", "faint")); return; }
  const g = page.graph, record = memoryOf(g), { parameters, scheduled, oom } = page.memory;
  panel.append(make("h2", "memory"));
  if (page.base && page.data !== page.base) panel.append(make("p", "the memory of the last stage is on the page; those before have none", "faint"));
  else if (!record) panel.append(make("p", `${g.name} has no temporaries of its own`, "faint"));
  else {
    const least = record.unsized ? "at least " : "", held = g.raw.entry ? `; parameters hold ${bytesText(parameters)} besides` : "";
    panel.append(make("p", `${least}${bytesText(record.peak)} live at the peak, %${g.names[record.at]}${held}`, "verdict"));
    panel.append(memoryChart(g, record), make("p", "live bytes along the schedule; a click, or the arrow keys, choose a place", "faint"));
    if (record.unsized) panel.append(make("p", `the size of %${record.unsized} is not known, and counts as 0 bytes`, "fault"));
    if (!scheduled) panel.append(make("p", "the order is that of the text: the compiler may choose a better one", "faint"));
    savingsPart(panel, g, record);
    alivePart(panel, g, record);
  }
  if (oom) outOfMemoryPart(panel, oom);
}

function svg(tag, attributes, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (text) e.textContent = visible(text);
  return e;
}

// The chart: an area under the points, the peak, and the chosen place. It is a slider for the keys and for screen readers.
function memoryChart(g, record) {
  const { width, height, left, top, bottom } = CHART, n = record.places.length, floor = height - bottom;
  const x = i => left + (i + 0.5) * (width - 2 * left) / n, y = bytes => floor - bytes / (record.peak || 1) * (floor - top);
  const half = (width - 2 * left) / n / 2, at = instant(), chosen = nearestPoint(record, at), peak = nearestPoint(record, record.at);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "slider", tabindex: "0", "aria-label": "place in the schedule", "aria-valuemin": "0", "aria-valuemax": String(n - 1),
    "aria-valuenow": String(chosen), "aria-valuetext": `${bytesText(record.live[chosen])} at %${g.names[at]}` });
  root.append(svg("path", { class: "area", d: `M${x(0) - half} ${floor}` + record.live.map((b, i) => `L${(x(i) - half).toFixed(1)} ${y(b).toFixed(1)}H${(x(i) + half).toFixed(1)}`).join("") + `V${floor}Z` }));
  root.append(svg("line", { class: "axis", x1: left, x2: width - left, y1: floor, y2: floor }));
  root.append(svg("line", { class: "peak", x1: x(peak), x2: x(peak), y1: top, y2: floor }), svg("circle", { class: "peak", cx: x(peak), cy: y(record.peak), r: 3 }));
  root.append(svg("line", { class: "chosen", x1: x(chosen), x2: x(chosen), y1: top, y2: floor }));
  const side = x(peak) > width / 2 ? "end" : "start";
  root.append(svg("text", { x: x(peak), y: 10, "text-anchor": side }, `peak ${bytesText(record.peak)}`));
  root.append(svg("text", { x: left, y: height - 2 }, "0"), svg("text", { x: width - left, y: height - 2, "text-anchor": "end" }, count(record.steps - 1)));
  root.onclick = e => { const r = root.getBoundingClientRect(); choosePoint(Math.floor(((e.clientX - r.left) / r.width * width - left) / (width - 2 * left) * n)); };
  root.onkeydown = e => {
    const to = { ArrowLeft: chosen - 1, ArrowDown: chosen - 1, ArrowRight: chosen + 1, ArrowUp: chosen + 1, Home: 0, End: n - 1, PageDown: chosen - 10, PageUp: chosen + 10, p: peak }[e.key];
    if (to === undefined) return;
    e.preventDefault(); e.stopPropagation();
    choosePoint(to);
    document.querySelector("#panel .chart").focus();
  };
  return root;
}

// The point of the timeline whose part of the schedule holds a node.
function nearestPoint(record, at) { const n = record.places.length; return Math.min(n - 1, Math.max(0, Math.ceil((at + 1) * n / record.steps) - 1)); }

// Shows what lives at a point: colours, rings and the list.
function choosePoint(i) {
  const record = memoryOf(page.graph), n = record.places.length;
  chooseInstant(record.places[Math.min(n - 1, Math.max(0, i))]);
}
function chooseInstant(at) {
  page.instant = at;
  const g = page.graph, alive = aliveAt(g, at);
  page.hits = new Map([[g.number, alive]]);
  chooseColour("liveness");
  details();
  announce(`${count(alive.length)} values live at %${g.names[at]}`);
}

function alivePart(panel, g, record) {
  const at = instant(), alive = aliveAt(g, at), total = alive.reduce((n, v) => n + g.size(v), 0), i = nearestPoint(record, at), live = record.places[i] === at ? record.live[i] : null;
  panel.append(make("h2", `alive at %${g.names[at]}`));
  const chips = make("p", "", "chips");
  chips.append(button("mark in the drawing", () => chooseInstant(at)), ...(at === record.at ? [] : [button("go to the peak", () => chooseInstant(record.at))]));
  panel.append(chips, make("p", `${count(alive.length)} values, ${bytesText(live ?? total)}`, "faint"));
  if (live !== null && live > total) panel.append(make("p", `${bytesText(live - total)} live inside what %${g.names[at]} calls`, "faint"));
  else if (live !== null && live < total) panel.append(make("p", `%${g.names[at]} writes over an operand: ${bytesText(total - live)} of these are one and the same`, "faint"));
  panel.append(longList(alive, v => {
    const row = button("", () => select(v, true), "item"), bar = make("span", "", "bar");
    bar.style.width = 100 * g.size(v) / (g.size(alive[0]) || 1) + "%";
    row.append(bar, make("b", bytesText(g.size(v)) + " "), make("span", g.label(v)), make("span", ` %${g.names[v]}  ${g.type(v)}`, "faint"),
      make("span", [livesText(g, v), g.scope(v), g.source(v)].filter(Boolean).join("  "), "line faint"));
    return row;
  }));
}

// "lives 52..62": from the node that computes a value to its last use.
function livesText(g, v) {
  const record = memoryOf(g);
  return !record || record.ends[v] < 0 ? "" : `lives ${v}..${record.ends[v] >= g.n ? "end" : record.ends[v]}`;
}

function savingsPart(panel, g, record) {
  if (!record.savings.length) return;
  panel.append(make("h2", "what lowers the peak"));
  panel.append(longList(record.savings, ([kind, nodes, user, peak, flops, source]) => {
    const row = button("", () => select(nodes[0], true), "item"), names = nodes.slice(0, 4).map(v => "%" + g.names[v]).join(" ") + (nodes.length > 4 ? ` and ${nodes.length - 4} more` : "");
    const what = { recompute: `compute ${names} again for %${user < 0 ? "" : g.names[user]}`, later: `compute ${names} later, for %${user < 0 ? "" : g.names[user]}`, donate: `donate ${names} (donate_argnums in jax)` }[kind];
    row.append(make("b", what), make("span", `peak ${bytesText(peak)}, ${percent(1 - peak / record.peak)} less${kind === "recompute" ? `, for ${flopsText(flops)} more` : ""}`, "line gain"),
      ...(source ? [make("span", source, "line faint")] : []));
    return row;
  }));
}

function outOfMemoryPart(panel, oom) {
  panel.append(make("h2", "out of memory"), make("p", oom.title, "fault"));
  for (const note of oom.notes) panel.append(make("p", note, "faint"));
  panel.append(longList(oom.rows, ([size, value, type, way, scope, source]) => {
    const name = /^%(\S+)/.exec(value), row = button("", () => { if (name) jump(name[1]); }, "item");
    row.append(make("b", size + " "), make("span", value), make("span", ` ${type}`, "faint"), make("span", [way ? `found by ${way}` : "", scope, source].filter(Boolean).join("  "), "line faint"));
    return row;
  }));
}
