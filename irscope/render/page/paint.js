// The drawing: boxes, frames and edges on the canvas and what stands at a point.

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
  scene(c, { l: -page.x / scale, t: -page.y / scale, r: (width - page.x) / scale, b: (height - page.y) / scale }, scale);
  minimap();
}

const EVERYTHING = { l: -Infinity, t: -Infinity, r: Infinity, b: Infinity };

// Draws what lies in a part of the drawing, on a canvas or as SVG; text only where it can be read at the scale.
function scene(c, seen, scale) {
  const theme = page.data.themes[page.dark ? "dark" : "light"], { view } = page, critical = page.critical ? criticalPlaces() : null;
  for (const f of view.frames) {
    if (!f.section || f.x > seen.r || f.y > seen.b || f.x + f.w < seen.l || f.y + f.h < seen.t) continue;
    c.fillStyle = f.kernel ? theme.background : theme.cluster; c.strokeStyle = f.kernel ? theme.classes.fusion[1] : theme.border; c.lineWidth = f.kernel ? 1.5 : 1;
    c.beginPath(); c.roundRect(f.x, f.y, f.w, f.h, 8); c.fill(); c.stroke();
    if (scale > 0.25) { c.fillStyle = theme.text; c.font = "12px sans-serif"; c.textAlign = "left"; c.fillText((f.kernel ? "" : "\u25be ") + visible(page.graph.title(placeOfSection(f.section))), f.x + 8, f.y + 17); }
  }
  const focus = page.hover ?? page.shown ?? null;
  for (const link of view.links) {
    const a = view.items.get(link.a), b = view.items.get(link.b);
    if (Math.max(a.x, b.x, ...link.points.map(p => p[0])) < seen.l - 50 || Math.min(a.x, b.x, ...link.points.map(p => p[0])) > seen.r + 50) continue;
    if (Math.max(a.y, b.y) < seen.t || Math.min(a.y, b.y) > seen.b) continue;
    const chosen = page.edge !== null && page.edge.a === link.a && page.edge.b === link.b, stored = link.stored.length > 0;
    const lit = chosen || (focus !== null && (link.a === focus || link.b === focus));
    const onPath = critical !== null && critical.lines.has(link.a + ":" + link.b);
    c.strokeStyle = chosen ? "#0969da" : onPath ? "#d1242f" : stored ? theme.stored : lit ? (link.a === focus ? "#d1242f" : "#0969da") : theme.edge;
    c.globalAlpha = onPath || chosen ? 1 : (focus !== null && !lit) || critical ? 0.35 : 0.9; c.lineWidth = chosen || onPath ? 4 : lit ? 2.2 : Math.min(4, (stored ? 1.6 : 1) + Math.log2(link.n) * 0.4);
    c.setLineDash(stored ? [7, 4] : link.next ? [2, 4] : []);
    edge(c, a, b, link.points);
    if (stored && scale >= 0.45) storedLabel(c, a, b, link, theme);
  }
  c.setLineDash([]); c.globalAlpha = 1;
  const hits = hitPlaces();
  for (const item of page.sorted) {
    if (item.x + item.w / 2 < seen.l || item.x - item.w / 2 > seen.r || item.y + item.h / 2 < seen.t || item.y - item.h / 2 > seen.b) continue;
    c.globalAlpha = critical && !critical.places.has(item.place) ? 0.35 : 1;
    box(c, item, theme, scale);
    if (critical && critical.places.has(item.place)) ring(c, item, "#d1242f", 2);
    if (hits.has(item.place)) ring(c, item, "#bf8700", 6);
    c.globalAlpha = 1;
  }
  // The selected line also where it runs behind boxes.
  const link = page.edge && view.links.find(l => l.a === page.edge.a && l.b === page.edge.b);
  if (!link) return;
  c.strokeStyle = "#0969da"; c.lineWidth = 2; c.globalAlpha = 0.6;
  edge(c, view.items.get(link.a), view.items.get(link.b), link.points);
  c.globalAlpha = 1;
}

function ring(c, item, colour, gap) {
  c.strokeStyle = colour; c.lineWidth = 2.5;
  c.beginPath(); c.roundRect(item.x - item.w / 2 - gap, item.y - item.h / 2 - gap, item.w + 2 * gap, item.h + 2 * gap, 8); c.stroke();
}

// The places in which the search found something; of one drawing and one search they are computed once.
function hitPlaces() {
  if (page.view.hitsOf !== page.hits || !page.view.hits) { page.view.hits = findHits(); page.view.hitsOf = page.hits; }
  return page.view.hits;
}
function findHits() {
  const g = page.graph, found = page.hits && page.hits.get(g.number), places = new Set();
  if (!found) return places;
  const hider = g.hiders();
  for (const v of found) {
    const seen = g.raw.fold[v] === "b" ? g.first(v) : found.length < 1000 ? g.seen(v) : -1;
    if (seen >= 0) places.add(hider[g.section[seen]] ?? seen);
  }
  return places;
}

// The points of a line from box to box.
function route(a, b, points) {
  const down = a.y <= b.y;
  return [[a.x, a.y + (down ? 1 : -1) * a.h / 2], ...points, [b.x, b.y - (down ? 1 : -1) * b.h / 2]];
}

function edge(c, a, b, points) {
  const path = route(a, b, points);
  c.beginPath(); c.moveTo(path[0][0], path[0][1]);
  for (let i = 1; i < path.length; i++) {
    const [x0, y0] = path[i - 1], [x1, y1] = path[i], m = (y0 + y1) / 2;
    c.bezierCurveTo(x0, m, x1, m, x1, y1);
  }
  c.stroke();
  c.setLineDash([]);
  const [x, y] = path[path.length - 1], s = a.y <= b.y ? -6 : 6;
  c.fillStyle = c.strokeStyle; c.beginPath(); c.moveTo(x, y); c.lineTo(x - 3.5, y + s); c.lineTo(x + 3.5, y + s); c.fill();
}

function storedLabel(c, a, b, link, theme) {
  const path = route(a, b, link.points), [x0, y0] = path[path.length - 2], [x1, y1] = path[path.length - 1];
  const rows = currentPlan().edges, bytes = link.stored.reduce((n, i) => n + rows[i][6], 0), none = link.stored.some(i => !rows[i][4]);
  c.fillStyle = theme.stored; c.font = "10px sans-serif"; c.textAlign = "left";
  c.fillText((none ? "not fused" : "stored") + (bytes ? ", " + bytesText(bytes) : ""), (x0 + x1) / 2 + 4, (y0 + y1) / 2 + 3);
}

// The line within a few pixels of a point of the drawing, or null.
function lineAt(x, y) {
  let best = null, least = 7 / page.scale;
  for (const link of page.view.links) {
    const path = route(page.view.items.get(link.a), page.view.items.get(link.b), link.points);
    for (let i = 1; i < path.length; i++) {
      const [x0, y0] = path[i - 1], [x1, y1] = path[i];
      if (Math.min(x0, x1) - least > x || Math.max(x0, x1) + least < x || Math.min(y0, y1) - least > y || Math.max(y0, y1) + least < y) continue;
      for (let t = 0; t <= 1; t += 1 / 24) {
        // The curve that edge() draws: both control points are at half the height.
        const u = 1 - t, bx = x0 * (u * u * u + 3 * u * u * t) + x1 * (t * t * t + 3 * u * t * t), by = y0 * u * u * u + (y0 + y1) / 2 * 3 * u * t + y1 * t * t * t;
        const distance = Math.hypot(bx - x, by - y);
        if (distance < least) { least = distance; best = link; }
      }
    }
  }
  return best;
}

function box(c, item, theme, scale) {
  const [fill, border, text] = colours(item.place), left = item.x - item.w / 2, top = item.y - item.h / 2, on = item.place === page.shown;
  const worst = page.view.extras.worst.get(item.place), outstanding = worst in ALARM || page.view.extras.outstanding.has(item.place);
  c.fillStyle = fill; c.strokeStyle = ALARM[worst] || border; c.lineWidth = outstanding ? 3 : item.place === page.graph.root ? 2.5 : 1;
  c.beginPath(); c.roundRect(left, top, item.w, item.h, 6); c.fill(); c.stroke();
  if (on) { c.strokeStyle = "#0969da"; c.lineWidth = 3; c.beginPath(); c.roundRect(left - 4, top - 4, item.w + 8, item.h + 8, 9); c.stroke(); c.strokeStyle = border; c.lineWidth = 1; }
  if (item.place < 0 && page.graph.sectionInfo(sectionOfPlace(item.place)).times > 1) { c.beginPath(); c.roundRect(left + 4, top - 4, item.w, item.h, 6); c.stroke(); }
  if (scale < 0.3) return;
  c.fillStyle = text; c.textAlign = "center"; c.font = "bold 12px sans-serif";
  c.fillText((item.place < 0 ? "\u25b8 " : "") + visible(page.graph.title(item.place)), item.x, top + 16);
  if (scale < 0.45) return;
  c.font = "10.5px sans-serif";
  item.lines.forEach((line, i) => c.fillText(visible(line), item.x, top + 29 + i * 13));
}

// Shows all, however small.
function fit() {
  const canvas = $("canvas"), { width, height } = page.view;
  page.scale = Math.min(1.2, Math.max(0.01, Math.min(canvas.clientWidth / (width + 20), canvas.clientHeight / (height + 20))));
  page.x = (canvas.clientWidth - width * page.scale) / 2;
  page.y = (canvas.clientHeight - height * page.scale) / 2;
  draw();
}

function at(event) {
  const r = $("canvas").getBoundingClientRect(), x = (event.clientX - r.left - page.x) / page.scale, y = (event.clientY - r.top - page.y) / page.scale;
  for (let i = page.sorted.length - 1; i >= 0; i--) {
    const b = page.sorted[i];
    if (Math.abs(x - b.x) <= b.w / 2 && Math.abs(y - b.y) <= b.h / 2) return { place: b.place };
  }
  let inner = null;
  for (const f of page.view.frames) if (x >= f.x && x <= f.x + f.w && y >= f.y && y <= f.y + 24 && f.section && !f.kernel) inner = f;
  if (inner) return { frame: inner.section };
  const link = lineAt(x, y);
  return link ? { link } : null;
}
