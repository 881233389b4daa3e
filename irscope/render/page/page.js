// The page: outline, drawing, details; what is shown stands in the URL, so that a view can be sent to somebody.
const $ = id => document.getElementById(id);
const page = { data: null, graphs: [], graph: null, view: null, selected: null, hover: null, scale: 1, x: 0, y: 0, colour: "class", dark: false, back: [] };

async function inflate(id) {
  const packed = atob($(id).textContent.trim()), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).text();
}

async function start() {
  try { page.data = JSON.parse(await inflate("data")); }
  catch (error) { $("wait").textContent = "this browser cannot unpack the graph (" + error.message + "); any browser of 2023 or later can"; return; }
  page.dark = typeof matchMedia === "function" && matchMedia("(prefers-color-scheme: dark)").matches;
  $("name").textContent = page.data.name;
  page.findings = new Map();
  for (const f of page.data.findings) if (f.node) { const at = f.graph + "/" + f.node; page.findings.set(at, [...(page.findings.get(at) || []), f]); }
  listen();
  go(0);
  fromAddress();
  $("wait").hidden = true;
  globalThis.irscopeReady = { nodes: page.data.graphs.reduce((n, g) => n + g.title.length, 0), boxes: page.view.items.size };
  if (page.data.hasText) setTimeout(async () => { page.text = await inflate("text"); if (page.selected !== null) details(); }, 50);
}

function graph(number) { return page.graphs[number] || (page.graphs[number] = new GraphModel(page.data, number)); }

function go(number, keep) {
  if (page.graph && keep) page.back.push([page.graph.number, page.selected]);
  page.graph = graph(number);
  page.selected = null;
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

function sortItems() { page.sorted = [...page.view.items.values()].sort((a, b) => a.y - b.y); page.most = page.sorted.reduce((m, i) => Math.max(m, costOf(i.place)), 0) || 1; }
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
  page.selected = place;
  if (place !== null && place >= 0) { const seen = page.graph.first(place); if (seen >= 0 && seen !== place) page.shown = seen; else page.shown = place; }
  else page.shown = place;
  if (centre && page.shown !== null) {
    if (page.shown >= 0) page.graph.reveal(page.shown);
    page.view = page.graph.layout(); sortItems();
    const item = page.view.items.get(page.shown);
    if (item) { page.scale = Math.max(page.scale, 0.7); const c = $("canvas"); page.x = c.clientWidth / 2 - item.x * page.scale; page.y = c.clientHeight / 2 - item.y * page.scale; }
  }
  outline(); draw(); details(); address();
}

function find(name) {
  const slash = name.lastIndexOf("/"), of = slash > 0 ? name.slice(0, slash) : null, plain = (slash > 0 ? name.slice(slash + 1) : name).replace(/^%/, "");
  for (let i = 0; i < page.data.graphs.length; i++) {
    if (of !== null && page.data.graphs[i].name !== of) continue;
    const v = graph(i).names.indexOf(plain);
    if (v >= 0) return [i, v];
  }
  return null;
}

function address() {
  const g = page.graph, at = page.selected !== null && page.selected >= 0 ? g.name + "/" + g.names[page.selected] : "";
  const open = [...g.open].filter(s => s).join(".");
  const text = new URLSearchParams({ ...(g.number ? { graph: g.name } : {}), ...(at ? { node: at } : {}), ...(open.length < 600 ? { open } : {}) }).toString();
  if (typeof history !== "undefined") try { history.replaceState(null, "", "#" + text); } catch { /* some browsers refuse on file: */ }
}
function fromAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const number = page.data.graphs.findIndex(g => g.name === wanted.get("graph"));
  if (number > 0) go(number);
  if (wanted.get("open")) { page.graph.open = new Set([0, ...wanted.get("open").split(".").map(Number).filter(s => s < page.graph.parent.length)]); redo(); fit(); }
  const node = wanted.get("node") && find(wanted.get("node"));
  if (node) { if (node[0] !== page.graph.number) go(node[0]); select(node[1], true); }
}

// ---- drawing

const SEVERITY = { error: ["#ffb3ad", "#9a6700", "#1f2328"], warning: ["#ffe08a", "#9a6700", "#1f2328"], info: ["#cfe3ff", "#9a6700", "#1f2328"] };
const ALARM = { error: "#cf222e", warning: "#e36209" };
function colours(place) {
  const theme = page.data.themes[page.dark ? "dark" : "light"], g = page.graph;
  if (page.colour === "cost") {
    const x = Math.sqrt(Math.min(1, costOf(place) / page.most)), mix = e => Math.round(255 + (e - 255) * x);
    return [`rgb(${mix(215)},${mix(60)},${mix(45)})`, "#8c8c8c", x > 0.75 ? "#fff" : "#1f2328"];
  }
  if (page.colour === "findings") return SEVERITY[page.view.extras.worst.get(place)] || theme.classes.constant;
  if (place < 0) return theme.classes.section;
  if (page.colour === "dtype") return page.data.dtypes[dtypeOf(place)] || theme.classes.free;
  return theme.classes[g.klass(place)] || theme.classes.custom;
}

function draw() {
  if (page.pending) return;
  page.pending = true;
  requestAnimationFrame(() => { page.pending = false; paint(); });
}

function paint() {
  const canvas = $("canvas"), ratio = globalThis.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) { canvas.width = width * ratio; canvas.height = height * ratio; }
  const c = canvas.getContext("2d"), theme = page.data.themes[page.dark ? "dark" : "light"], { view, scale } = page;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.fillStyle = theme.background; c.fillRect(0, 0, width, height);
  c.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * page.x, ratio * page.y);
  const seen = { l: -page.x / scale, t: -page.y / scale, r: (width - page.x) / scale, b: (height - page.y) / scale };
  for (const f of view.frames) {
    if (!f.section || f.x > seen.r || f.y > seen.b || f.x + f.w < seen.l || f.y + f.h < seen.t) continue;
    c.fillStyle = theme.cluster; c.strokeStyle = theme.border; c.lineWidth = 1;
    c.beginPath(); c.roundRect(f.x, f.y, f.w, f.h, 8); c.fill(); c.stroke();
    if (scale > 0.25) { c.fillStyle = theme.text; c.font = "12px sans-serif"; c.textAlign = "left"; c.fillText("\u25be " + page.graph.title(placeOfSection(f.section)), f.x + 8, f.y + 17); }
  }
  const focus = page.hover ?? page.shown ?? null;
  for (const link of view.links) {
    const a = view.items.get(link.a), b = view.items.get(link.b);
    if (Math.max(a.x, b.x, ...link.points.map(p => p[0])) < seen.l - 50 || Math.min(a.x, b.x, ...link.points.map(p => p[0])) > seen.r + 50) continue;
    if (Math.max(a.y, b.y) < seen.t || Math.min(a.y, b.y) > seen.b) continue;
    const lit = focus !== null && (link.a === focus || link.b === focus);
    c.strokeStyle = lit ? (link.a === focus ? "#d1242f" : "#0969da") : theme.edge;
    c.globalAlpha = focus !== null && !lit ? 0.35 : 0.8; c.lineWidth = lit ? 2.2 : Math.min(4, 1 + Math.log2(link.n) * 0.4);
    c.setLineDash(link.next ? [5, 4] : []);
    edge(c, a, b, link.points);
  }
  c.setLineDash([]); c.globalAlpha = 1;
  for (const item of page.sorted) {
    if (item.x + item.w / 2 < seen.l || item.x - item.w / 2 > seen.r || item.y + item.h / 2 < seen.t || item.y - item.h / 2 > seen.b) continue;
    box(c, item, theme, scale);
  }
}

function edge(c, a, b, points) {
  const down = a.y <= b.y, path = [[a.x, a.y + (down ? 1 : -1) * a.h / 2], ...points, [b.x, b.y - (down ? 1 : -1) * b.h / 2]];
  c.beginPath(); c.moveTo(path[0][0], path[0][1]);
  for (let i = 1; i < path.length; i++) {
    const [x0, y0] = path[i - 1], [x1, y1] = path[i], m = (y0 + y1) / 2;
    c.bezierCurveTo(x0, m, x1, m, x1, y1);
  }
  c.stroke();
  const [x, y] = path[path.length - 1], s = down ? -6 : 6;
  c.fillStyle = c.strokeStyle; c.beginPath(); c.moveTo(x, y); c.lineTo(x - 3.5, y + s); c.lineTo(x + 3.5, y + s); c.fill();
}

function box(c, item, theme, scale) {
  const [fill, border, text] = colours(item.place), left = item.x - item.w / 2, top = item.y - item.h / 2, on = item.place === page.shown;
  const worst = page.view.extras.worst.get(item.place), outstanding = worst in ALARM || page.view.extras.outstanding.has(item.place);
  c.fillStyle = fill; c.strokeStyle = on ? "#0969da" : ALARM[worst] || border; c.lineWidth = on || outstanding ? 3 : item.place === page.graph.root ? 2.5 : 1;
  c.beginPath(); c.roundRect(left, top, item.w, item.h, 6); c.fill(); c.stroke();
  if (item.place < 0 && page.graph.sectionInfo(sectionOfPlace(item.place)).times > 1) { c.beginPath(); c.roundRect(left + 4, top - 4, item.w, item.h, 6); c.stroke(); }
  if (scale < 0.3) return;
  c.fillStyle = text; c.textAlign = "center"; c.font = "bold 12px sans-serif";
  c.fillText((item.place < 0 ? "\u25b8 " : "") + page.graph.title(item.place), item.x, top + 16);
  if (scale < 0.45) return;
  c.font = "10.5px sans-serif";
  item.lines.forEach((line, i) => c.fillText(line, item.x, top + 29 + i * 13));
}

function fit() {
  const canvas = $("canvas"), { width, height } = page.view;
  page.scale = Math.min(1.2, Math.max(0.02, Math.min(canvas.clientWidth / (width + 20), canvas.clientHeight / (height + 20))));
  // A long chain would shrink to a thread: begin at its top instead, at a size that can be read.
  if (page.scale < 0.35) { page.scale = Math.min(0.6, Math.max(0.35, canvas.clientWidth / (width + 20))); page.y = 10; }
  else page.y = (canvas.clientHeight - height * page.scale) / 2;
  page.x = (canvas.clientWidth - width * page.scale) / 2;
  draw();
}

function at(event) {
  const r = $("canvas").getBoundingClientRect(), x = (event.clientX - r.left - page.x) / page.scale, y = (event.clientY - r.top - page.y) / page.scale;
  for (let i = page.sorted.length - 1; i >= 0; i--) {
    const b = page.sorted[i];
    if (Math.abs(x - b.x) <= b.w / 2 && Math.abs(y - b.y) <= b.h / 2) return { place: b.place };
  }
  let inner = null;
  for (const f of page.view.frames) if (x >= f.x && x <= f.x + f.w && y >= f.y && y <= f.y + 24 && f.section) inner = f;
  return inner ? { frame: inner.section } : null;
}

// ---- panes

function dtypeOf(place) { return page.graph.type(place).split("[")[0].replace(/^\(+/, ""); }

function meaning() {
  const theme = page.data.themes[page.dark ? "dark" : "light"], places = [...page.view.items.keys()].filter(p => p >= 0);
  if (page.colour === "cost") return page.data.heat.map(([share, ...colours]) => [Math.round(100 * share) + " %", colours]);
  if (page.colour === "dtype") {
    const used = new Set(places.map(dtypeOf));
    return Object.entries(page.data.dtypes).filter(([name]) => used.has(name));
  }
  if (page.colour === "findings") return Object.entries(SEVERITY);
  const used = new Set(places.map(p => page.graph.klass(p)));
  return page.data.classes.filter(name => used.has(name)).map(name => [name, theme.classes[name] || []]);
}

function legend() {
  const element = $("legend");
  element.replaceChildren();
  for (const [name, [fill, border, text]] of meaning()) {
    const span = document.createElement("span");
    span.textContent = name; span.style.cssText = `background:${fill};border-color:${border};color:${text}`;
    element.append(span);
  }
}

function crumbs() {
  const element = $("crumbs");
  element.replaceChildren();
  const list = [0, ...page.back.map(b => b[0]), page.graph.number].filter((v, i, all) => all.indexOf(v) === i);
  list.forEach((number, i) => {
    const a = document.createElement(i === list.length - 1 ? "span" : "a");
    a.textContent = (i ? " \u203a " : "") + page.data.graphs[number].name;
    if (a.tagName === "A") a.onclick = () => { page.back = page.back.slice(0, i); go(number); };
    element.append(a);
  });
}

// The rows of the outline that can be seen are the only ones that exist.
function outline() {
  const g = page.graph, rows = [];
  const stack = [0];
  while (stack.length) {
    const s = stack.pop();
    if (typeof s === "object") { rows.push(s); continue; }
    rows.push({ section: s, depth: g.depth[s] });
    if (!g.open.has(s)) continue;
    for (const v of g.drawn[s].slice().reverse()) stack.push({ node: v, depth: g.depth[s] + 1 });
    for (const c of g.children[s].slice().reverse()) if (!g.isEmpty(placeOfSection(c))) stack.push(c);
  }
  page.rows = rows;
  $("rows").style.height = rows.length * 20 + "px";
  outlineRows();
}
function outlineRows() {
  const g = page.graph, area = $("outline"), first = Math.max(0, Math.floor(area.scrollTop / 20) - 5), last = Math.min(page.rows.length, first + Math.ceil(area.clientHeight / 20) + 12);
  const made = [];
  for (let i = first; i < last; i++) {
    const row = page.rows[i], div = document.createElement("div");
    div.className = "row"; div.style.top = i * 20 + "px"; div.style.paddingLeft = 8 + row.depth * 14 + "px"; div.setAttribute("role", "treeitem");
    const strong = document.createElement("b"), info = document.createElement("i");
    if (row.node === undefined) {
      const s = g.sectionInfo(row.section);
      strong.textContent = (g.open.has(row.section) ? "\u25be " : "\u25b8 ") + g.title(placeOfSection(row.section));
      info.textContent = `  ${count(s.nodes)}  ${s.flops || s.open ? flopsText(s.flops, s.open) : ""}`;
      div.onclick = () => toggle(row.section);
      div.setAttribute("aria-expanded", String(g.open.has(row.section)));
    } else {
      strong.textContent = g.label(row.node); strong.style.fontWeight = "400";
      info.textContent = "  " + (g.caption.get(row.node) || "%" + g.names[row.node]);
      div.onclick = () => select(row.node, true);
    }
    if (row.node !== undefined && row.node === page.shown) div.classList.add("on");
    div.append(strong, info);
    made.push(div);
  }
  $("rows").replaceChildren(...made);
}

function details() {
  const element = $("right"), g = page.graph, place = page.selected;
  element.replaceChildren();
  const add = (tag, text, css) => { const e = document.createElement(tag); e.textContent = text; if (css) e.className = css; element.append(e); return e; };
  if (place === null) {
    add("h2", page.data.file);
    for (const [text, at] of page.data.highlights) { const p = add("p", text, "highlight"); p.onclick = () => jump(at); }
    const figures = document.createElement("dl");
    for (const [label, text] of page.data.summary) { const dt = document.createElement("dt"), dd = document.createElement("dd"); dt.textContent = label; dd.textContent = text; figures.append(dt, dd); }
    element.append(figures);
    for (const f of page.data.findings.slice(0, 50)) { const p = add("p", f.text, f.severity); if (f.node) { p.style.cursor = "pointer"; p.onclick = () => jump(f.graph + "/" + f.node); } }
    const others = page.data.graphs.map((x, i) => i).filter(i => i !== g.number && !page.data.graphs[i].scalar);
    if (others.length) { add("h2", "other graphs"); for (const i of others.slice(0, 200)) { const a = add("a", page.data.graphs[i].name); a.onclick = () => go(i, true); add("br", ""); } }
    return;
  }
  const list = document.createElement("dl");
  const row = (label, ...values) => {
    if (!values.length || values[0] === "") return;
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = label;
    values.forEach(v => { dd.append(v instanceof Node ? v : document.createTextNode(v)); if (v instanceof Node) dd.append(document.createElement("br")); });
    list.append(dt, dd);
  };
  const link = v => { const a = document.createElement("a"); a.textContent = `%${g.names[v]}  ${g.label(v)}`; a.onclick = () => select(v, true); return a; };
  if (place < 0) {
    const info = g.sectionInfo(sectionOfPlace(place));
    add("h2", g.title(place)); element.append(list);
    row("nodes", count(info.nodes)); row("work", flopsText(info.flops, info.open)); row("traffic", bytesText(info.bytes, info.open)); row("mostly", info.ops);
    const b = add("button", g.open.has(sectionOfPlace(place)) ? "close" : "open (double click)"); b.onclick = () => toggle(sectionOfPlace(place));
    return;
  }
  add("h2", g.label(place)); element.append(list);
  row("name", "%" + g.names[place]); row("type", g.type(place)); row("scope", g.scope(place)); row("source", g.source(place));
  row("cost", g.costText(place)); row("graph", g.name);
  if (place !== page.shown) row("drawn as", page.shown >= 0 ? link(page.shown) : "not drawn");
  const operands = g.operands(place), users = g.users(place);
  row("operands", ...operands.slice(0, 30).map(link)); row("users", ...users.slice(0, 30).map(link));
  if (users.length > 30) row("", `${count(users.length - 30)} more`);
  for (const body of g.bodies(place)) { const a = document.createElement("a"); a.textContent = page.data.graphs[body].name; a.onclick = () => go(body, true); row("calls", a); }
  for (const finding of page.findings.get(g.name + "/" + g.names[place]) || []) add("p", finding.text + (finding.help ? "\nhelp: " + finding.help : ""), finding.severity);
  if (page.text && g.lines[place]) add("pre", textLine(g.lines[place]));
}

function textLine(number) {
  if (!page.starts) { page.starts = [0]; for (let i = page.text.indexOf("\n"); i >= 0; i = page.text.indexOf("\n", i + 1)) page.starts.push(i + 1); }
  const from = page.starts[number - 1], to = page.starts[number] ?? page.text.length + 1;
  const text = page.text.slice(from, to - 1).trim();
  return text.length > 6000 ? text.slice(0, 6000) + " ..." : text;
}

function search(text) {
  const element = $("found");
  element.replaceChildren();
  element.hidden = !text;
  if (!text) return;
  let test;
  const regex = /^\/(.+)\/$/.exec(text);
  try { const r = regex ? new RegExp(regex[1], "i") : null, low = text.toLowerCase().replace(/^%/, ""); test = r ? t => r.test(t) : t => t.toLowerCase().includes(low); }
  catch (error) { element.textContent = error.message; return; }
  let n = 0;
  const scopes = page.data.scopes.map(test), titles = page.data.titles.map(test);
  for (let i = 0; i < page.data.graphs.length; i++) {
    const g = graph(i);
    if (g.raw.scalar) continue;
    for (let v = 0; v < g.n; v++) {
      if (!(titles[g.raw.title[v]] || scopes[g.raw.scope[v]] || test(g.names[v]))) continue;
      if (++n > 200) continue;
      const div = document.createElement("div"), info = document.createElement("i");
      div.textContent = `%${g.names[v]}  `; info.textContent = `${g.label(v)}  ${g.scope(v)}`;
      div.append(info); div.onclick = () => jump(g.name + "/" + g.names[v]);
      element.append(div);
    }
  }
  const head = document.createElement("div"), info = document.createElement("i");
  info.textContent = n > 200 ? `${count(n)} found, the first 200:` : `${count(n)} found`;
  head.append(info); element.prepend(head);
}

function jump(name) { const found = find(name); if (found) { if (found[0] !== page.graph.number) go(found[0], true); select(found[1], true); } }

// ---- events

function listen() {
  const canvas = $("canvas");
  let drag = null, moved = false, timer = null;
  canvas.addEventListener("pointerdown", e => { drag = [e.clientX - page.x, e.clientY - page.y]; moved = false; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", e => {
    if (drag) { const x = e.clientX - drag[0], y = e.clientY - drag[1]; if (Math.abs(x - page.x) + Math.abs(y - page.y) > 3) moved = true; page.x = x; page.y = y; canvas.classList.add("drag"); draw(); return; }
    const hit = at(e), place = hit && hit.place !== undefined ? hit.place : null;
    if (place !== page.hover) { page.hover = place; draw(); }
    tip(place, e);
  });
  canvas.addEventListener("pointerup", e => {
    canvas.classList.remove("drag"); drag = null;
    if (moved) return;
    const hit = at(e);
    if (hit && hit.frame !== undefined) toggle(hit.frame);
    else select(hit ? hit.place : null);
  });
  canvas.addEventListener("pointerleave", () => { page.hover = null; $("tip").hidden = true; draw(); });
  canvas.addEventListener("dblclick", e => {
    const hit = at(e);
    if (!hit || hit.place === undefined) return;
    if (hit.place < 0) toggle(sectionOfPlace(hit.place));
    else if (page.graph.bodies(hit.place).length) go(page.graph.bodies(hit.place).at(-1), true);
  });
  canvas.addEventListener("wheel", e => {
    e.preventDefault();
    const r = canvas.getBoundingClientRect(), k = Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0015));
    zoom(k, e.clientX - r.left, e.clientY - r.top);
  }, { passive: false });
  $("outline").addEventListener("scroll", outlineRows);
  $("search").addEventListener("input", e => { clearTimeout(timer); timer = setTimeout(() => search(e.target.value.trim()), 120); });
  $("search").addEventListener("keydown", e => {
    if (e.key === "Escape") { e.target.value = ""; search(""); canvas.focus(); }
    if (e.key === "Enter") { search(e.target.value.trim()); const first = $("found").children[1]; if (first) first.onclick(); }
  });
  $("colour").addEventListener("change", e => { page.colour = e.target.value; legend(); draw(); });
  $("fit").addEventListener("click", fit);
  $("dark").addEventListener("click", () => dark(!page.dark));
  $("help").addEventListener("click", keys);
  addEventListener("resize", () => { draw(); outlineRows(); });
  addEventListener("keydown", onKey);
  dark(page.dark);
}

function zoom(k, cx, cy) {
  const scale = Math.min(4, Math.max(0.01, page.scale * k));
  page.x = cx - (cx - page.x) * scale / page.scale; page.y = cy - (cy - page.y) * scale / page.scale; page.scale = scale;
  draw();
}

function dark(on) {
  page.dark = on;
  document.documentElement.classList.toggle("dark", on);
  $("dark").textContent = on ? "light" : "dark";
  if (page.view) { legend(); draw(); }
}

function tip(place, e) {
  const element = $("tip");
  element.hidden = place === null;
  if (place === null) return;
  const g = page.graph;
  element.textContent = place >= 0
    ? [`%${g.names[place]} = ${g.type(place)} ${g.label(place)}`, g.scope(place), g.source(place), g.costText(place)].filter(Boolean).join("\n")
    : `${g.title(place)}\n${g.sectionInfo(sectionOfPlace(place)).ops}\ndouble click opens it`;
  const r = $("middle").getBoundingClientRect();
  element.style.left = Math.min(e.clientX - r.left + 14, r.width - 200) + "px"; element.style.top = e.clientY - r.top + 14 + "px";
}

const KEYS = { "/": "search", f: "show all", d: "light or dark", "+ -": "zoom", "arrows": "move", "i o": "to an operand, to a user", "Enter": "open or close the section, or the body of the node",
  c: "close the section around the node", u: "back to the caller", "Escape": "select nothing", "?": "these keys" };
function keys() {
  const table = document.createElement("table");
  for (const key in KEYS) { const tr = document.createElement("tr"); for (const t of [key, KEYS[key]]) { const td = document.createElement("td"); td.textContent = t; tr.append(td); } table.append(tr); }
  $("keys").replaceChildren(table);
  $("keys").showModal();
}

function onKey(e) {
  if (e.target.tagName === "INPUT" || e.ctrlKey || e.metaKey || e.altKey) return;
  const canvas = $("canvas"), g = page.graph, p = page.shown ?? null, cx = canvas.clientWidth / 2, cy = canvas.clientHeight / 2;
  const move = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[e.key];
  if (move) { page.x += move[0]; page.y += move[1]; draw(); }
  else if (e.key === "/") { e.preventDefault(); $("search").focus(); }
  else if (e.key === "f") fit();
  else if (e.key === "d") dark(!page.dark);
  else if (e.key === "+" || e.key === "=") zoom(1.25, cx, cy);
  else if (e.key === "-") zoom(0.8, cx, cy);
  else if (e.key === "?") keys();
  else if (e.key === "Escape") select(null);
  else if (e.key === "u" && page.back.length) { const [number, selected] = page.back.pop(); go(number); if (selected !== null) select(selected, true); }
  else if (p !== null && p >= 0 && e.key === "i" && g.operands(p).length) select(g.operands(p)[0], true);
  else if (p !== null && p >= 0 && e.key === "o" && g.users(p).length) select(g.users(p)[0], true);
  else if (p !== null && p >= 0 && e.key === "c" && g.section[p]) toggle(g.section[p]);
  else if (p !== null && e.key === "Enter") { if (p < 0) toggle(sectionOfPlace(p)); else if (g.bodies(p).length) go(g.bodies(p).at(-1), true); }
}
