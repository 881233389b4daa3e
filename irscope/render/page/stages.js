// The stages of a compilation: a slider shows the module after each pass. What stays has one place in all of them.
const UNION_NODES = 60000;   // of all stages together; with more, each stage is laid out by itself

// The slider, where the page has stages.
function stagesSlider() {
  const { stages } = page.data;
  if (stages.length < 2) return;
  page.base = page.data;
  page.stage = stages.length - 1;
  page.stageData = new Map();
  $("stages").hidden = false;
  $("stage").max = String(stages.length - 1);
  $("stage").value = String(page.stage);
  stageWords();
}
function stageWords() {
  const { stages, stagesLeftOut } = page.base, name = `${page.stage + 1} of ${stages.length}: ${stages[page.stage][0]}`, counts = stageCounts();
  $("stage-name").textContent = visible(name + counts) + (stagesLeftOut ? ` (${stagesLeftOut} more are not on the page)` : "");
  $("stage").setAttribute("aria-valuetext", visible(name));
}

// The data of a stage, unpacked once; what does not depend on the stage is that of the page.
function stageOf(k) {
  const block = page.base.stages[k][1];
  if (block < 0) return page.base;
  if (!page.stageData.has(block)) page.stageData.set(block, inflate("stage-" + block).then(text => {
    const { themes, dtypes, heat, groups, palettes, unprintable, stages } = page.base;
    return { ...JSON.parse(text), themes, dtypes, heat, groups, palettes, unprintable, stages, plans: [], costliest: [], numbers: [], summary: [], note: "", hasText: false };
  }));
  return page.stageData.get(block);
}
function modelOf(data, number) { data.models ??= []; return data.models[number] ??= new GraphModel(data, number); }

// Shows a stage: the graph of the same name, with the sections of the same titles open; the view does not move.
async function chooseStage(k) {
  const { stages } = page.base;
  k = Math.max(0, Math.min(stages.length - 1, k));
  $("stage").value = String(k);
  page.wanted = k;
  page.stagesRead ??= Promise.all(stages.map((_, i) => stageOf(i))).then(all => { page.allStages = all; });
  await page.stagesRead;
  if (page.wanted !== k) return;   // the slider has moved on
  const first = page.colour === "class" && !page.slid, before = page.graph, selected = page.selected !== null && page.selected >= 0 ? before.names[page.selected] : null, data = page.allStages[k];
  page.slid = true;
  const open = openPaths(before), shared = page.shared;
  page.stage = k;
  page.data = data;
  data.models ??= [];
  if (data === page.base && !data.models.length) page.graphs.forEach((g, i) => { if (g) data.models[i] = g; });
  page.graphs = data.models;
  page.numberByName = null; page.fusions = null;
  if (data !== page.base) page.plan = null; else if (data.plans.length) page.plan = 0;
  const number = data.graphs.findIndex(g => g.name === before.name), entry = number < 0 || before.raw.entry ? 0 : number;
  page.graph = graph(entry);
  page.back = []; page.hits = page.edge = page.instant = null; page.hover = null;
  page.graph.open = sectionsOf(page.graph, open);
  if (page.graph.open.size === 1 && open.size > 1) openWhatFits(page.graph);
  page.selected = page.shown = null;
  page.text = data === page.base ? page.baseText : undefined;
  policies();
  if (first) page.colour = "diff";
  colourChoices();
  redo();
  if (page.shared !== shared && page.slid !== "placed") { page.slid = "placed"; begin(); }
  const again = selected === null ? -1 : page.graph.names.indexOf(selected);
  if (again >= 0) { page.selected = again; page.shown = page.graph.seen(again) >= 0 ? page.graph.seen(again) : null; outline(); draw(); }
  details(); stageWords();
  announce(`${stages[k][0]}${stageCounts()}`);
}

// A section by the titles around it, which stages have in common; siblings of one title are counted.
function pathOf(g, s) {
  if (!g.paths) {
    const seen = new Map();
    g.paths = [];
    for (let t = 0; t < g.parent.length; t++) {
      const path = g.parent[t] < 0 ? "" : g.paths[g.parent[t]] + "\n" + g.sectionInfo(t).title, n = seen.get(path) || 0;
      seen.set(path, n + 1);
      g.paths[t] = n ? `${path}\r${n}` : path;
    }
  }
  return g.paths[s];
}
function openPaths(g) { return new Set([...g.open].map(s => pathOf(g, s))); }
function sectionsOf(g, paths) { return new Set([0, ...g.parent.keys()].filter(s => s === 0 || paths.has(pathOf(g, s)))); }

// A node is the same in two stages if name and operator are.
function keyOf(g, v) { return g.names[v] + "\n" + g.op(v); }
function keysOf(g) { return g.keys ??= new Map(g.names.map((_, v) => [keyOf(g, v), v])); }
function neighbour(step) {
  const data = page.allStages && page.allStages[page.stage + step], number = data ? data.graphs.findIndex((other, i) => page.graph.raw.entry ? i === 0 : other.name === page.graph.name) : -1;
  return number < 0 ? null : modelOf(data, number);
}

// What the pass before did, and the next one will: the number of the category of each node.
function stageChanges(g) {
  const names = page.data.palettes.diff.names, [added, changed, removed, same] = ["added", "changed", "removed", "same"].map(name => names.indexOf(name)), before = neighbour(-1), after = neighbour(1);
  const differs = (v, u) => g.type(v) !== before.type(u) || g.label(v) !== before.label(u) || g.operands(v).length !== before.operands(u).length
    || g.operands(v).some((o, i) => keyOf(g, o) !== keyOf(before, before.operands(u)[i]));
  return v => {
    const key = keyOf(g, v), u = before ? keysOf(before).get(key) : v;
    if (u === undefined) return added;
    if (after && !keysOf(after).has(key)) return removed;
    return before && before !== g && differs(v, u) ? changed : same;
  };
}
function stageCounts() {
  const before = page.allStages && page.graph ? neighbour(-1) : null;
  if (!before || before === page.graph) return before ? "; no change" : "";
  const mine = keysOf(page.graph), theirs = keysOf(before), came = [...mine.keys()].filter(key => !theirs.has(key)).length, went = [...theirs.keys()].filter(key => !mine.has(key)).length;
  return came || went ? `; ${count(came)} came, ${count(went)} went` : "; no node came or went";
}

// One layout for all stages: of each section, all boxes that any of them has there, with all their lines. A stage shows its own at their places.
class SharedLayout {
  constructor(g) {
    this.levels = new Map();
    this.open = [...openPaths(g)].sort().join("\n\n");
    this.name = g.name;
    const paths = openPaths(g), models = new Set(page.allStages.map(data => data.graphs.findIndex((other, i) => g.raw.entry ? i === 0 : other.name === g.name)).map((number, k) => number < 0 ? null : modelOf(page.allStages[k], number)));
    for (const model of models) {
      if (!model) continue;
      const kept = model.open;
      model.open = sectionsOf(model, paths);
      model.layout(this);
      model.open = kept;
    }
    for (const path of [...this.levels.keys()].sort((a, b) => b.split("\n").length - a.split("\n").length)) this.solve(this.levels.get(path));
  }
  key(g, place) { return place >= 0 ? "n" + keyOf(g, place) : "s" + pathOf(g, sectionOfPlace(place)); }
  // Notes the boxes of a section of one stage; ``sizes`` has null for open sections inside.
  add(g, s, places, sizes, edges) {
    const path = pathOf(g, s), keys = places.map(p => this.key(g, p));
    if (!this.levels.has(path)) this.levels.set(path, { at: new Map(), sizes: [], inner: [], lines: new Map() });
    const level = this.levels.get(path);
    level.title = Math.max(level.title || 0, g.title(placeOfSection(s)).length * 7);
    keys.forEach((key, i) => {
      if (!level.at.has(key)) { level.at.set(key, level.at.size); level.sizes.push([0, 0]); level.inner.push(null); }
      const n = level.at.get(key);
      if (sizes[i] === null) level.inner[n] = pathOf(g, sectionOfPlace(places[i]));
      else level.sizes[n] = [Math.max(level.sizes[n][0], sizes[i][0]), Math.max(level.sizes[n][1], sizes[i][1])];
    });
    for (const e of edges) { const a = this.key(g, e.a), b = this.key(g, e.b); level.lines.set(a + "\r" + b, [level.at.get(a), level.at.get(b)]); }
  }
  solve(level) {
    const sizes = level.sizes.map((own, n) => { const inner = level.inner[n] === null ? null : this.levels.get(level.inner[n]); return inner ? [Math.max(own[0], inner.width), Math.max(own[1], inner.height)] : own; });
    level.placed = layered(sizes.map(z => z[0]), sizes.map(z => z[1]), [...level.lines.values()]);
    level.bends = new Map([...level.lines.keys()].map((key, i) => [key, level.placed.bends[i]]));
    level.width = Math.max(level.placed.width, level.title) + 28; level.height = level.placed.height + 44;
  }
  // The places of the boxes of one stage: as layered() gives them.
  place(g, s, places, edges) {
    const level = this.levels.get(pathOf(g, s)), at = places.map(p => level.at.get(this.key(g, p)));
    return { x: at.map(n => level.placed.x[n]), y: at.map(n => level.placed.y[n]), width: Math.max(level.placed.width, level.title), height: level.placed.height,
      bends: edges.map(e => level.bends.get(this.key(g, e.a) + "\r" + this.key(g, e.b))) };
  }
}

// The shared layout for what is open now; null where the page has no stages, or where they are not read yet, or too large.
function sharedLayout(g) {
  if (!page.allStages || g.plan) return null;
  if (page.allStages.reduce((n, data) => n + data.graphs.reduce((m, other) => m + other.names.length, 0), 0) > UNION_NODES) return null;
  const open = [...openPaths(g)].sort().join("\n\n");
  if (!page.shared || page.shared.open !== open || page.shared.name !== g.name) page.shared = new SharedLayout(g);
  return page.shared;
}
