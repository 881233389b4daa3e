// What costs most: the costliest operations of the program, and the critical path of the graph that is shown.

// The chain with the largest sum of costs, from a leaf to the result or to the costliest node; as irscope/analysis/levels.py.
function criticalPath(g) {
  if (g._critical) return g._critical;
  const best = new Float64Array(g.n), before = new Int32Array(g.n).fill(-1);
  let end = -1, whole = 0;
  for (let v = 0; v < g.n; v++) {
    let most = 0, via = -1;
    for (const o of g.operands(v)) if (best[o] > most || via < 0) { most = best[o]; via = o; }
    best[v] = most + g.cost(v); before[v] = via; whole += g.cost(v);
    if (end < 0 || best[v] > best[end]) end = v;
  }
  const nodes = [];
  for (let v = end; v >= 0; v = before[v]) nodes.push(v);
  nodes.reverse();
  return g._critical = { nodes, share: whole ? nodes.reduce((n, v) => n + g.cost(v), 0) / whole : 0, whole };
}

// The places and lines of the drawing that the critical path runs through.
function criticalPlaces() { return page.view.critical ??= findCritical(); }
function findCritical() {
  const g = page.graph, hider = g.hiders(), places = [], lines = new Set();
  for (const v of criticalPath(g).nodes) {
    const seen = g.raw.fold[v] === "b" ? g.first(v) : -1;
    if (seen < 0) continue;
    const place = hider[g.section[seen]] ?? seen;
    if (places[places.length - 1] !== place) places.push(place);
  }
  for (let i = 1; i < places.length; i++) lines.add(places[i - 1] + ":" + places[i]);
  return { places: new Set(places), lines };
}

function showCritical(on) {
  page.critical = on;
  $("critical").setAttribute("aria-pressed", String(on));
  redo();
}

function percent(share) { return share >= 0.0995 ? Math.round(100 * share) + " %" : Number((100 * share).toPrecision(1)) + " %"; }

function costliestTab(panel) {
  if (page.numbers || page.numberFault) numbersPart(panel);
  panel.append(make("h2", "costliest"), make("p", "share of the estimated time; equal operations count together, over all runs", "faint"));
  panel.append(longList(page.data.costliest, ([at, title, share, flops, bytes, times, source]) => {
    const row = button("", () => jump(at), "item"), bar = make("span", "", "bar"), found = find(at);
    bar.style.width = 100 * share / (page.data.costliest[0][2] || 1) + "%";
    row.append(bar, make("b", percent(share) + " "), make("span", title), make("span", ` %${found ? graph(found[0]).names[found[1]] : at}`, "faint"),
      make("span", [times === 1 ? "" : `\u00d7${count(times)}`, flopsText(flops), bytesText(bytes), source].filter(Boolean).join("  "), "line"));
    return row;
  }));
  const g = page.graph, { nodes, share, whole } = criticalPath(g), working = nodes.filter(v => g.works(v));
  panel.append(make("h2", `critical path of ${g.name}`), make("p", `${count(working.length)} steps, ${percent(share)} of the time`, "faint"),
    button(page.critical ? "leave out of the drawing (p)" : "draw it (p)", () => { showCritical(!page.critical); details(); }));
  panel.append(longList(working, v => {
    const row = button("", () => select(v, true), "item");
    row.append(make("b", (g.isOpen(v) && !g.cost(v) ? "?" : percent(whole ? g.cost(v) / whole : 0)) + " "), make("span", g.label(v)), make("span", ` %${g.names[v]}  ${g.type(v)}`, "faint"));
    return row;
  }));
  if (!page.numbers && !page.numberFault) { panel.append(make("h2", "your numbers")); numbersPart(panel); }
}
