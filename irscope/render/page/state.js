// The page: outline, drawing, details; what is shown stands in the URL, so that a view can be sent to somebody.
const $ = id => document.getElementById(id);
const page = { data: null, graphs: [], graph: null, view: null, selected: null, hover: null, scale: 1, x: 0, y: 0, colour: "class", dark: false, back: [],
  tab: "details", without: new Set(), plan: null, edge: null,
  critical: false, memory: null, instant: null, mapped: true, numbers: null, hits: null };

// Control and invisible characters, as the reader of a file sees them everywhere else; the pattern comes from source/visible.py.
function visible(text) {
  page.unprintable ??= new RegExp(page.data.unprintable, "g");
  return text.replace(page.unprintable, c => { const code = c.charCodeAt(0); return code < 32 ? String.fromCharCode(0x2400 + code) : code === 127 ? "\u2421" : "\ufffd"; });
}

// An element with a class and a text, which never becomes markup and hides no control characters.
function make(tag, text, css) { const e = document.createElement(tag); if (text) e.textContent = visible(text); if (css) e.className = css; return e; }
function button(text, act, css) { const e = make("button", text, css); e.type = "button"; e.onclick = act; return e; }

async function inflate(id) {
  const packed = atob($(id).textContent.trim()), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).text();
}

async function start() {
  try { page.data = JSON.parse(await inflate("data")); }
  catch (error) { $("wait").textContent = "this browser cannot unpack the graph (" + error.message + "); any browser of 2023 or later can"; return; }
  page.dark = page.data.dark || typeof matchMedia === "function" && matchMedia("(prefers-color-scheme: dark)").matches;
  page.colour = page.data.colour;
  $("name").textContent = visible(page.data.name);
  listen();
  if (page.data.plans.length) page.plan = 0;
  policies();
  stagesSlider();
  colourChoices();
  for (const [file, text] of page.data.numbers) try { putNumbers(readNumbers(text, file)); page.tab = "details"; } catch (error) { $("wait").textContent = `${file}: ${error.message}`; page.fault = true; }
  go(0);
  fromAddress();
  $("wait").hidden = !page.fault;
  globalThis.irscopeReady = { nodes: page.data.graphs.reduce((n, g) => n + g.title.length, 0), boxes: page.view.items.size };
  if (page.data.hasText) setTimeout(async () => { page.baseText = await inflate("text"); if (!page.base || page.data === page.base) page.text = page.baseText; if (page.tab === "text" || (page.selected !== null && page.tab === "details")) details(); }, 50);
}

function graph(number) {
  if (!page.graphs[number]) { page.graphs[number] = new GraphModel(page.data, number); page.graphs[number].setPlan(currentPlan()); }
  return page.graphs[number];
}

function go(number, keep) {
  $("tip").hidden = true;
  if (page.graph && keep) page.back.push([page.graph.number, page.selected]);
  page.graph = graph(number);
  page.selected = page.shown = page.edge = page.instant = null;
  if (page.graph.open.size === 1) openWhatFits(page.graph);
  redo();
  begin();
  details();
}

// At first, text is readable: where that does not show all, what stands out most is in the middle.
function begin() {
  fit();
  if (page.scale >= READABLE) return;
  const { width, height } = page.view, canvas = $("canvas"), item = page.view.items.get(page.view.extras.outstanding.values().next().value);
  page.scale = READABLE;
  const place = (at, size, room) => size * page.scale <= room ? (room - size * page.scale) / 2 : Math.min(10, Math.max(room - size * page.scale - 10, room / 2 - at * page.scale));
  page.x = place(item ? item.x : width / 2, width, canvas.clientWidth); page.y = place(item ? item.y : 0, height, canvas.clientHeight);
}

const READABLE = 0.7;
// At first, sections are opened from the outside in as long as the drawing stays readable.
function openWhatFits(g) {
  if (g.raw.opened.length) { for (const s of g.raw.opened) g.open.add(s); return; }
  let boxes = g.drawn[0].length + g.children[0].length, ring = [0];
  while (ring.length) {
    const inner = ring.flatMap(s => g.children[s]).sort((a, b) => g.sectionInfo(b).bytes - g.sectionInfo(a).bytes);
    ring = [];
    for (const s of inner) {
      const more = g.drawn[s].length + g.children[s].length;
      if (!more || boxes + more > 60) continue;
      boxes += more; g.open.add(s); ring.push(s);
    }
  }
}

function redo() { page.view = page.graph.layout(); sortItems(); outline(); crumbs(); legend(); draw(); }

function sortItems() { page.sorted = [...page.view.items.values()].sort((a, b) => a.y - b.y); page.most = page.sorted.reduce((m, i) => Math.max(m, costOf(i.place)), 0) || 1;
  page.mostBytes = page.sorted.reduce((m, { place }) => Math.max(m, bytesOf(place)), 0) || 1;
  page.largest = [...page.view.extras.numbers.values()].reduce((m, n) => Math.max(m, n), 0) || 1;
}
function costOf(place) {
  if (place >= 0) return page.graph.cost(place);
  const info = page.graph.sectionInfo(sectionOfPlace(place));
  return Math.max(info.flops / 16, info.bytes);
}

function toggle(s, deep) {
  const g = page.graph;
  if (g.open.has(s) && s) { g.open.delete(s); } else {
    g.open.add(s);
    if (deep) for (let t = s + 1; t < g.parent.length && g.open.size < 400; t++) if (g.open.has(g.parent[t])) g.open.add(t);
  }
  const before = anchor(s);
  page.view = g.layout();
  sortItems();
  const after = anchor(s);
  if (before && after) { page.x += (before[0] - after[0]) * page.scale; page.y += (before[1] - after[1]) * page.scale; }
  outline(); draw(); address();
}
// The place of a section in the drawing, so that opening it does not make the eye lose it.
function anchor(s) {
  const frame = page.view.frames.find(f => f.section === s), item = page.view.items.get(placeOfSection(s));
  return frame ? [frame.x + frame.w / 2, frame.y] : item && item.x !== undefined ? [item.x, item.y - item.h / 2] : null;
}

function select(place, centre) {
  $("tip").hidden = true;
  page.selected = place;
  page.edge = null;
  if (page.tab !== "text") page.tab = "details";
  page.shown = place;
  if (place !== null && place >= 0) { const seen = page.graph.seen(place); page.shown = seen >= 0 ? seen : null; }
  if (centre && page.shown !== null) {
    if (page.shown >= 0 && page.graph.reveal(page.shown)) { page.view = page.graph.layout(); sortItems(); }
    const item = page.view.items.get(page.shown);
    if (item) centreOn(item.x, item.y);
  }
  outline(); draw(); details(); address();
  announce(place === null ? "nothing selected" : nameOf(place) + sayMore(page.shown));
}
function centreOn(x, y) { page.scale = Math.max(page.scale, READABLE); const c = $("canvas"); page.x = c.clientWidth / 2 - x * page.scale; page.y = c.clientHeight / 2 - y * page.scale; }

// For screen readers: what a sighted reader sees at a box.
function announce(text) { $("said").textContent = text; }
function sayMore(place) { const lines = place === null || !page.view.extras ? [] : page.view.extras.lines.get(place) || []; return lines.length ? ": " + lines.join(", ") : ""; }

// The number of a graph and of its node by "graph/name", or those of the first node of a name. Both names may hold slashes.
function find(name) {
  const plain = name.replace(/^%/, "");
  for (let i = 0; i < page.data.graphs.length; i++) {
    const of = page.data.graphs[i].name + "/", v = name.startsWith(of) ? graph(i).names.indexOf(name.slice(of.length).replace(/^%/, "")) : -1;
    if (v >= 0) return [i, v];
  }
  for (let i = 0; i < page.data.graphs.length; i++) {
    const v = graph(i).names.indexOf(plain);
    if (v >= 0) return [i, v];
  }
  return null;
}

function address() {
  const g = page.graph, at = page.selected !== null && page.selected >= 0 ? g.name + "/" + g.names[page.selected] : "";
  const open = [...g.open].filter(s => s).join("."), pair = page.edge && page.edge.pairs && page.edge.pairs.length ? page.edge.pairs[0].map(v => g.names[v]).join(">") : "";
  const text = new URLSearchParams({ ...(g.number ? { graph: g.name } : {}), ...(at ? { node: at } : {}), ...(pair ? { edge: pair } : {}),
    ...(page.data.plans.length && page.plan !== 0 ? { policy: page.plan === null ? "" : currentPlan().name } : {}), ...(open.length < 600 ? { open } : {}) }).toString();
  if (typeof history !== "undefined") try { history.replaceState(null, "", "#" + text); } catch { /* some browsers refuse on file: */ }
}
function fromAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const number = page.data.graphs.findIndex(g => g.name === wanted.get("graph"));
  const plan = page.data.plans.findIndex(p => p.name === wanted.get("policy"));
  if (plan > 0) choosePlan(plan); else if (wanted.get("policy") === "" && page.data.plans.length) choosePlan(null);
  if (number > 0) go(number);
  if (wanted.get("open")) { page.graph.open = new Set([0, ...wanted.get("open").split(".").map(Number).filter(s => Number.isInteger(s) && s > 0 && s < page.graph.parent.length)]); redo(); begin(); }
  const node = wanted.get("node") && find(wanted.get("node"));
  if (node) { if (node[0] !== page.graph.number) go(node[0]); select(node[1], true); }
  const ends = (wanted.get("edge") || "").split(">").map(name => page.graph.names.indexOf(name));
  if (ends.length !== 2 || ends.some(v => v < 0)) return;
  for (const v of ends) page.graph.reveal(v);
  redo();
  const link = page.view.links.find(l => l.pairs.some(([a, b]) => a === page.graph.first(ends[0]) && b === page.graph.first(ends[1])));
  if (link) selectEdge(link, true);
}
// Selects a node by "graph/name"; tells whether there is one.
function jump(name) {
  const found = find(name) || find(name.slice(name.lastIndexOf("/") + 1));
  if (!found) return false;
  if (found[0] !== page.graph.number) go(found[0], true);
  select(found[1], true);
  return true;
}
