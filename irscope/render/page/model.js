// The graph behind the page. A "place" is what can be drawn: a node (its index, from 0) or a closed section (-1 - its number).
const CROWD = 16;   // a value with more users than this is written into their boxes
const SEVERITIES = ["info", "warning", "error"];
const placeOfSection = s => -1 - s, sectionOfPlace = p => -1 - p;

class GraphModel {
  constructor(data, number) {
    const g = data.graphs[number];
    Object.assign(this, { data, number, name: g.name, raw: g, n: g.title.length, root: g.root });
    this.names = g.names;
    this.section = g.section.slice();
    this.parent = g.sections.map(s => s[1]);
    this.depth = [];
    this.parent.forEach((p, i) => { this.depth[i] = p < 0 ? 0 : this.depth[p] + 1; });
    this.children = g.sections.map(() => []);
    this.parent.forEach((p, i) => { if (p >= 0) this.children[p].push(i); });
    this.same = new Int32Array(this.n).fill(-2);
    for (const key in g.same) this.same[key] = g.same[key];
    this.drawn = g.sections.map(() => []);
    for (let v = 0; v < this.n; v++) if (g.fold[v] === "b" && this.same[v] === -2) this.drawn[this.section[v]].push(v);
    // A section that holds a single node is drawn as that node, under the section's name.
    this.caption = new Map();
    for (let s = this.parent.length - 1; s > 0; s--) {
      if (this.drawn[s].length !== 1 || g.sections[s][2] > 1 || this.children[s].some(c => this.drawn[c].length || this.busy(c))) continue;
      const [v] = this.drawn[s], p = this.parent[s];
      this.drawn[s] = []; this.drawn[p].push(v); this.section[v] = p;
      if (!this.caption.has(v)) this.caption.set(v, g.sections[s][0]);
    }
    for (const own of this.drawn) own.sort((a, b) => a - b);
    this.lines = [];
    let line = 0;
    g.line.forEach((d, i) => { line += d; this.lines[i] = line; });
    this.open = new Set([0]);
    this.unknown = new Set(g.open);
    this.plan = null;
  }
  // The policy whose kernels are framed, or null.
  setPlan(plan) { this.plan = plan ? new GraphPlan(plan, this) : null; this._edges = null; }
  busy(s) { const stack = [s]; while (stack.length) { const t = stack.pop(); if (this.drawn[t].length) return true; stack.push(...this.children[t]); } return false; }
  label(v) { return this.data.titles[this.raw.title[v]]; }
  type(v) { return this.data.types[this.raw.type[v]]; }
  scope(v) { return this.data.scopes[this.raw.scope[v]]; }
  source(v) { return this.data.sources[this.raw.source[v]]; }
  klass(v) { return this.data.classes[this.raw.class[v]]; }
  flops(v) { return this.raw.flops.length ? this.raw.flops[v] : 0; }
  bytes(v) { return this.raw.bytes.length ? this.raw.bytes[v] : 0; }
  get lowNames() { return this._low ??= this.names.map(name => name.toLowerCase()); }
  op(v) { return this.data.ops[this.raw.op[v]][0]; }
  work(v) { return this.data.ops[this.raw.op[v]][1]; }
  isKnown(v) { return this.data.ops[this.raw.op[v]][2] === 1; }
  works(v) { return this.data.ops[this.raw.op[v]][3] === 1; }
  size(v) { return this.data.sizes[this.raw.type[v]]; }
  // Of the first tensor in the type.
  dtype(v) { const found = /([a-z]\w*)\[/.exec(this.type(v)); return found ? found[1] : this.type(v); }
  shape(v) { const found = /\w\[([^\]]*)\]/.exec(this.type(v)); return found ? found[1] : ""; }
  elements(v) { let n = 0; for (const [, dims] of this.type(v).matchAll(/\w\[([^\]]*)\]/g)) n += dims === "" ? 1 : dims.split(",").reduce((m, d) => m * Number(d), 1); return n; }
  // The length of the longest chain of working nodes that ends here.
  level(v) {
    if (!this._level) {
      this._level = new Int32Array(this.n);
      for (let u = 0; u < this.n; u++) { let above = 0; for (const o of this.operands(u)) above = Math.max(above, this._level[o]); this._level[u] = above + (this.works(u) ? 1 : 0); }
    }
    return this._level[v];
  }
  isOpen(v) { return !this.raw.flops.length || this.unknown.has(v); }
  costText(v) { return `${flopsText(this.flops(v), this.isOpen(v))}, ${bytesText(this.bytes(v), this.isOpen(v))}`; }
  cost(v) { return Math.max(this.flops(v) / 16, this.bytes(v)); }
  operands(v) { return this.raw.operands[v].map(d => v - d); }
  bodies(v) { return this.raw.bodies[v] || []; }
  inputs(v) { return (this.raw.inputs[v] || []).map(i => this.data.texts[i]); }
  sectionInfo(s) { const [title, parent, times, nodes, flops, bytes, ops, open] = this.raw.sections[s]; return { title, parent, times, nodes, flops, bytes, ops, open }; }

  users(v) {
    if (!this._users) {
      this._users = Array.from({ length: this.n }, () => []);
      for (let u = 0; u < this.n; u++) for (const o of new Set(this.operands(u))) this._users[o].push(u);
    }
    return this._users[v];
  }
  // The drawn node that shows a node: itself, or the nearest user of what is written into other boxes; -1 where none does.
  seen(v) {
    const known = new Set([v]);
    for (let ring = [v]; ring.length;) {
      const box = ring.find(u => this.raw.fold[u] === "b");
      if (box !== undefined) return this.first(box);
      ring = ring.flatMap(u => this.users(u)).filter(u => !known.has(u) && known.add(u));
    }
    return -1;
  }
  // The drawn node that stands for a node of a folded copy; -1 where none does.
  first(v) { while (v >= 0 && this.same[v] !== -2) v = this.same[v]; return v; }

  // Edges between drawn nodes, what is looked through left out: arrays of both ends, of the set of unfused edges on the way, and of whether it
  // leads to the next copy.
  edges() {
    if (this._edges) return this._edges;
    const from = [], to = [], next = [], stored = [], known = new Map(), later = [];
    const add = (source, target, key, isNext, edges) => {
      const i = known.get(key);
      if (i === undefined) { known.set(key, from.length); from.push(source); to.push(target); next.push(isNext); stored.push(edges && new Set(edges)); }
      else if (edges) { stored[i] ??= new Set(); for (const e of edges) stored[i].add(e); }
    };
    for (let v = 0; v < this.n; v++) {
      if (this.raw.fold[v] !== "b") continue;
      const target = this.first(v), stack = [], looked = new Map();
      // Tuples that nest may hold the same one often: each is looked through once for each unfused edge that leads to it.
      const push = (user, before) => {
        for (const o of new Set(this.operands(user).reverse())) {
          const edges = before || (this.plan && this.plan.stored(o, user)) || null;
          if (!looked.has(o)) looked.set(o, new Set());
          else if (looked.get(o).has(edges)) continue;
          looked.get(o).add(edges);
          stack.push([o, edges]);
        }
      };
      push(v, null);
      while (stack.length) {
        const [o, edges] = stack.pop(), fold = this.raw.fold[o];
        if (fold === "v") { push(o, edges); continue; }
        if (fold !== "b") continue;
        const source = this.first(o);
        if (source < 0 || target < 0 || source === target) continue;
        const key = source * this.n + target;
        if (source === o && target === v) add(source, target, key, false, edges);
        else later.push([source, target, key, edges]);
      }
    }
    for (const [source, target, key, edges] of later) add(source, target, key, this.folded(source) >= 0 && this.folded(source) === this.folded(target), edges);
    return this._edges = { from, to, next, stored };
  }
  // The nearest section around a node that stands for several copies, or -1.
  folded(v) { let s = this.section[v]; while (s >= 0 && this.raw.sections[s][2] < 2) s = this.parent[s]; return s; }

  // What is visible while the sections in this.open are open: for each section the place that hides it, or null.
  hiders() {
    const hider = new Array(this.parent.length).fill(null);
    for (let s = 0; s < hider.length; s++) {
      const p = this.parent[s];
      hider[s] = p >= 0 && hider[p] !== null ? hider[p] : this.open.has(s) ? null : placeOfSection(s);
    }
    return hider;
  }
  // Links between visible places, each once, with how many values it stands for; crowds are taken out and told apart.
  links(hider) {
    const { from, to, next, stored } = this.edges(), found = new Map(), targets = new Map();
    for (let i = 0; i < from.length; i++) {
      const a = hider[this.section[from[i]]] ?? from[i], b = hider[this.section[to[i]]] ?? to[i];
      if (a === b) continue;
      const key = a + ":" + b, link = found.get(key);
      if (link) {
        link.n++; link.pairs.push([from[i], to[i]]);
        if (!next[i]) link.next = false;
        for (const e of stored[i] || []) link.stored.add(e);
        continue;
      }
      found.set(key, { a, b, n: 1, next: next[i], stored: new Set(stored[i]), pairs: [[from[i], to[i]]] });
      targets.set(a, (targets.get(a) || 0) + 1);
    }
    const links = [], stubs = new Map();
    for (const link of found.values()) {
      link.stored = [...link.stored];
      if (targets.get(link.a) > CROWD) { if (!stubs.has(link.b)) stubs.set(link.b, []); stubs.get(link.b).push(link.a); }
      else links.push(link);
    }
    return { links, stubs };
  }
  // The open sections with the frames of kernels in them: containers, of which those from this.parent.length on are kernels. A kernel of
  // which a section draws one node has no frame.
  containers(opened) {
    const n = this.parent.length, tree = { parent: this.parent, depth: this.depth, children: this.children, drawn: this.drawn, around: new Map(), kernels: [] };
    if (!this.plan) return tree;
    Object.assign(tree, { parent: this.parent.slice(), depth: this.depth.slice(), children: this.children.slice(), drawn: this.drawn.slice() });
    for (const s of opened) {
      const groups = new Map();
      for (const v of this.drawn[s]) {
        const mine = this.plan.kernelsOf(v);
        if (mine.length !== 1) continue;
        if (groups.has(mine[0])) groups.get(mine[0]).push(v); else groups.set(mine[0], [v]);
      }
      for (const [kernel, nodes] of groups) {
        if (nodes.length < 2) continue;
        const number = tree.parent.length;
        tree.kernels[number] = kernel;
        tree.parent.push(s); tree.depth.push(this.depth[s] + 1); tree.children.push([]); tree.drawn.push(nodes);
        if (tree.children[s] === this.children[s]) { tree.children[s] = this.children[s].slice(); tree.drawn[s] = this.drawn[s].slice(); }
        tree.children[s].push(number);
        for (const v of nodes) tree.around.set(v, number);
      }
      if (tree.drawn[s] !== this.drawn[s]) tree.drawn[s] = tree.drawn[s].filter(v => !tree.around.has(v));
    }
    this._tree = tree;
    return tree;
  }
  title(place) {
    if (place >= 0) return this.label(place);
    if (sectionOfPlace(place) >= this.parent.length) return "kernel of %" + this.plan.kernels[this._tree.kernels[sectionOfPlace(place)]];
    const info = this.sectionInfo(sectionOfPlace(place));
    return info.title + (info.times > 1 ? " \u00d7" + info.times : "");
  }
  // What stands out in each visible place: badges, leaks of precision, and the numbers of the findings about what it shows.
  extras(hider) {
    const lines = new Map(), leaks = new Map(), found = new Map(), worst = new Map(), outstanding = new Set();
    const placeOf = v => { const seen = this.first(v); return seen < 0 ? null : hider[this.section[seen]] ?? seen; };
    const add = (table, place, value) => { if (table.has(place)) table.get(place).push(value); else table.set(place, [value]); };
    for (const [v, text] of this.raw.badges) { const p = placeOf(v); if (p !== null) { add(lines, p, "\u2605 " + text); outstanding.add(p); } }
    for (const [v, label, n] of this.raw.leaks) {
      const p = placeOf(v);
      if (p === null) continue;
      if (!leaks.has(p)) leaks.set(p, new Map());
      leaks.get(p).set(label, (leaks.get(p).get(label) || 0) + n);
    }
    for (const [v, number] of this.raw.found) { const p = placeOf(v); if (p !== null) add(found, p, number); }
    for (const [p, counted] of leaks) add(lines, p, [...counted].map(([label, n]) => `${n} ${label}`).join(", "));
    for (const [p, numbers] of found) {
      const most = SEVERITIES.findLast(s => numbers.some(i => this.data.findings[i].severity === s));
      worst.set(p, most);
      add(lines, p, `${numbers.length} finding${numbers.length > 1 ? "s" : ""}, worst: ${most}`);
    }
    const numbers = placedNumbers(this, placeOf);
    for (const [p, n] of numbers) add(lines, p, numberText(n));
    if (this.plan) this.countKernels(hider, (place, text) => add(lines, place, text));
    return { lines, worst, outstanding, found, numbers };
  }
  // How many kernels compute a closed section (of a copy, if what is around it repeats), and a node that several kernels compute.
  countKernels(hider, add) {
    const inside = new Map();
    for (const key in this.plan.of) {
      const seen = this.first(Number(key)), mine = this.plan.of[key];
      if (seen < 0 || this.raw.fold[key] !== "b") continue;
      const place = hider[this.section[seen]];
      if (place === null) { if (seen === Number(key) && mine.length > 1) add(seen, `in ${mine.length} kernels`); continue; }
      if (mine.length > 1) continue;
      if (!inside.has(place)) inside.set(place, new Set());
      inside.get(place).add(mine[0]);
    }
    for (const [place, kernels] of inside) {
      let copies = 1;
      for (let s = this.parent[sectionOfPlace(place)]; s >= 0; s = this.parent[s]) copies *= this.raw.sections[s][2];
      const n = Math.max(1, Math.round(kernels.size / copies));
      add(place, `${count(n)} kernel${n > 1 ? "s" : ""}`);
    }
  }
  // The findings about a node and about what it stands for: what is folded into it, and what it calls.
  findingsOf(v) { return this.raw.found.filter(row => row[0] === v).map(row => row[1]); }
  linesOf(place, stubs, extras) {
    let lines;
    if (place >= 0) lines = [...(this.caption.has(place) ? [this.caption.get(place)] : []), this.type(place), "%" + this.names[place], ...this.inputs(place).slice(0, 3).map(t => "\u2190 " + t)];
    else {
      const info = this.sectionInfo(sectionOfPlace(place));
      lines = [`${count(info.nodes)} nodes, ${flopsText(info.flops, info.open)}`, `${bytesText(info.bytes, info.open)} traffic`];
    }
    lines.push(...(extras.lines.get(place) || []));
    for (const a of (stubs.get(place) || []).slice(0, 3)) lines.push("\u2196 " + (a >= 0 ? "%" + this.names[a] : this.title(a)));
    return lines.map(t => t.length > 46 ? t.slice(0, 22) + ".." + t.slice(-22) : t);
  }

  // Places and frames with coordinates. Every open section is laid out by itself, inner ones first; to the outer one it is a box.
  // ``collects``: a layout of several stages that receives the boxes and is not solved yet.
  layout(collects) {
    const shared = collects ? null : sharedLayout(this), hider = this.hiders(), { links, stubs } = this.links(hider), extras = this.extras(hider), items = new Map(), levels = new Map();
    const visible = s => s === 0 || hider[this.parent[s]] === null;
    const opened = [];
    for (let s = 0; s < this.parent.length; s++) if (hider[s] === null && visible(s)) opened.push(s);
    const tree = this.containers(opened), around = place => place >= 0 ? tree.around.get(place) ?? this.section[place] : tree.parent[sectionOfPlace(place)];
    for (let c = this.parent.length; c < tree.parent.length; c++) opened.push(c);
    for (const s of opened) levels.set(s, { edges: new Map() });
    for (const link of links) {
      // The section that holds both ends, and the items of it in which the ends lie.
      let a = link.a, b = link.b, sa = around(a), sb = around(b);
      while (sa !== sb) {
        if (tree.depth[sa] >= tree.depth[sb]) { a = placeOfSection(sa); sa = tree.parent[sa]; }
        else { b = placeOfSection(sb); sb = tree.parent[sb]; }
      }
      link.level = sa;
      if (a === b) continue;
      const edges = levels.get(sa).edges, key = a + ":" + b;
      if (!edges.has(key)) edges.set(key, { a, b });
      link.edge = edges.get(key);
    }
    for (const s of opened.reverse()) {
      const level = levels.get(s);
      const places = [...tree.children[s].map(placeOfSection).filter(p => levels.has(sectionOfPlace(p)) || !this.isEmpty(p)), ...tree.drawn[s]];
      const index = new Map(places.map((p, i) => [p, i]));
      const sizes = places.map(p => {
        const inner = p < 0 ? levels.get(sectionOfPlace(p)) : undefined;
        if (inner) return [inner.width, inner.height];
        const lines = this.linesOf(p, stubs, extras), wide = lines.reduce((m, t) => Math.max(m, t.length * 6.1), this.title(p).length * 7.4);
        items.set(p, { place: p, lines, w: wide + 20, h: 22 + lines.length * 13 });
        return [wide + 20, 22 + lines.length * 13];
      });
      const edges = [...level.edges.values()].filter(e => index.has(e.a) && index.has(e.b));
      if (collects) { collects.add(this, s, places, places.map((p, i) => p < 0 && levels.has(sectionOfPlace(p)) ? null : sizes[i]), edges); Object.assign(level, { width: 0, height: 0 }); continue; }
      const placed = shared ? shared.place(this, s, places, edges) : layered(sizes.map(z => z[0]), sizes.map(z => z[1]), edges.map(e => [index.get(e.a), index.get(e.b)]));
      edges.forEach((e, i) => { e.bends = placed.bends[i]; });
      Object.assign(level, { places, placed, sizes, edges, width: Math.max(placed.width, this.title(placeOfSection(s)).length * 7) + 28, height: placed.height + 44 });
    }
    if (collects) return null;
    const frames = [], stack = [[0, 0, 0]];
    while (stack.length) {
      const [s, left, top] = stack.pop(), level = levels.get(s), x0 = left + 14, y0 = top + 30;
      frames.push({ section: s, kernel: s >= this.parent.length, x: left, y: top, w: level.width, h: level.height });
      for (const e of level.edges) e.points = e.bends.map(([x, y]) => [x + x0, y + y0]);
      level.places.forEach((p, i) => {
        const cx = level.placed.x[i] + x0, cy = level.placed.y[i] + y0, [w, h] = level.sizes[i];
        if (p < 0 && levels.has(sectionOfPlace(p))) stack.push([sectionOfPlace(p), cx - w / 2, cy - h / 2]);
        else Object.assign(items.get(p), { x: cx, y: cy });
      });
    }
    const drawnLinks = bundled(links.filter(l => items.has(l.a) && items.has(l.b))).map(l => ({ ...l, points: (l.edge && l.edge.points) || [] }));
    return { items, frames, extras, links: drawnLinks, width: levels.get(0).width, height: levels.get(0).height };
  }
  isEmpty(place) {
    if (!this._filled) {
      this._filled = this.drawn.map(d => d.length > 0);
      for (let s = this.parent.length - 1; s > 0; s--) if (this._filled[s]) this._filled[this.parent[s]] = true;
    }
    return !this._filled[sectionOfPlace(place)];
  }
  // Open every section around a node; returns whether one was closed, and the drawing is to be laid out again.
  reveal(v) {
    const before = this.open.size;
    for (let s = this.section[this.first(v) < 0 ? v : this.first(v)]; s >= 0; s = this.parent[s]) this.open.add(s);
    return this.open.size > before;
  }
}

// The many links between two frames, or between a frame and a box, as the one of most values.
function bundled(links) {
  const groups = new Map(), kept = [];
  for (const link of links) {
    if (!link.edge) kept.push(link);
    else if (groups.has(link.edge)) groups.get(link.edge).push(link);
    else groups.set(link.edge, [link]);
  }
  for (const group of groups.values()) {
    if (group.length <= 2) kept.push(...group);
    else kept.push({ ...group.reduce((m, l) => l.n > m.n ? l : m), n: group.reduce((n, l) => n + l.n, 0),
      stored: [...new Set(group.flatMap(l => l.stored))], pairs: group.flatMap(l => l.pairs) });
  }
  return kept;
}

function count(n) { return n < 1e7 ? Math.round(n).toLocaleString("en") : scaled(n, 1000, " kMGTPE", ""); }
function scaled(n, base, units, unit) {
  let i = 0;
  while (n >= base * 0.9995 && i < units.length - 1) { n /= base; i++; }
  const text = i === 0 ? String(Math.round(n)) : n < 99.95 ? n.toPrecision(3) : String(Math.round(n));
  return `${text} ${units[i] === " " ? "" : units[i]}${unit}`.trim();
}
// Of what is not known, or only in part, "?" and "+" tell.
function opened(text, n, open) { return !open ? text : n ? text + "+" : "?"; }
function bytesText(n, open) { return opened(scaled(n, 1024, " KMGTPE", "B").replace(/([KMGTPE])B$/, "$1iB"), n, open); }
function flopsText(n, open) { return opened(scaled(n, 1000, " kMGTPE", "FLOP"), n, open); }
function timeText(us) { return us < 999.5 ? Number(us.toPrecision(3)) + " us" : us < 999500 ? Number((us / 1e3).toPrecision(3)) + " ms" : Number((us / 1e6).toPrecision(3)) + " s"; }
