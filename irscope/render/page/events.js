// Mouse and keys.

function listen() {
  const canvas = $("canvas");
  let drag = null, moved = false, timer = null;
  canvas.addEventListener("pointerdown", e => { drag = [e.clientX - page.x, e.clientY - page.y]; moved = false; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", e => {
    if (drag) {
      const x = e.clientX - drag[0], y = e.clientY - drag[1];
      if (Math.abs(x - page.x) + Math.abs(y - page.y) > 3) moved = true;
      page.x = x; page.y = y; canvas.classList.add("drag"); draw();
      return;
    }
    const hit = at(e), place = hit && hit.place !== undefined ? hit.place : null;
    if (place !== page.hover) { page.hover = place; draw(); }
    canvas.classList.toggle("point", Boolean(hit));
    tip(place, e);
  });
  canvas.addEventListener("pointerup", e => {
    canvas.classList.remove("drag"); drag = null;
    if (moved) return;
    const hit = at(e);
    if (hit && hit.frame !== undefined) toggle(hit.frame);
    else if (hit && hit.link) selectEdge(hit.link);
    else select(hit ? hit.place : null);
  });
  canvas.addEventListener("pointercancel", () => { canvas.classList.remove("drag"); drag = null; });
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
  $("outline").addEventListener("keydown", outlineKey);
  $("search").addEventListener("input", e => { clearTimeout(timer); timer = setTimeout(() => search(e.target.value.trim()), 120); });
  $("search").addEventListener("keydown", e => {
    if (e.key === "Escape") { e.target.value = ""; search(""); canvas.focus(); }
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); pick(e.key === "ArrowDown" ? 1 : -1); }
    if (e.key !== "Enter") return;
    const chosen = $("found").querySelector(".on");
    if (!chosen) search(e.target.value.trim());
    const first = chosen || $("found").querySelector("[role=option]");
    if (first) first.onclick();
  });
  $("tabs").addEventListener("keydown", e => {
    const names = Object.keys(TABS), step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (step) openTab(names[(names.indexOf(page.tab) + step + names.length) % names.length]);
  });
  $("colour").addEventListener("change", e => chooseColour(e.target.value));
  $("policy").addEventListener("change", e => choosePlan(e.target.value === "" ? null : Number(e.target.value)));
  $("critical").addEventListener("click", () => showCritical(!page.critical));
  $("fit").addEventListener("click", fit);
  $("stage").addEventListener("input", e => chooseStage(Number(e.target.value)));
  $("save").addEventListener("change", e => { if (e.target.value) save(e.target.value); e.target.value = ""; });
  $("dark").addEventListener("click", () => dark(!page.dark));
  $("help").addEventListener("click", keys);
  addEventListener("dragover", e => e.preventDefault());
  addEventListener("drop", e => { e.preventDefault(); if (e.dataTransfer.files.length) openNumbers(e.dataTransfer.files[0]); });
  addEventListener("resize", outlineRows);
  let wide = canvas.clientWidth;
  // What is in the middle stays there.
  new ResizeObserver(() => { page.x += (canvas.clientWidth - wide) / 2; wide = canvas.clientWidth; if (page.view) draw(); }).observe(canvas);
  addEventListener("keydown", onKey);
  listenToMap();
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
  element.textContent = visible(place >= 0
    ? [`%${g.names[place]} = ${g.type(place)} ${g.label(place)}`, g.scope(place), g.source(place), g.costText(place)].filter(Boolean).join("\n")
    : `${g.title(place)}\n${g.sectionInfo(sectionOfPlace(place)).ops}\ndouble click opens it`);
  const r = $("middle").getBoundingClientRect();
  element.style.left = Math.min(e.clientX - r.left + 14, r.width - 200) + "px"; element.style.top = e.clientY - r.top + 14 + "px";
}

const KEYS = { "/": "search; down and up choose, Enter goes there", "Tab": "from part to part of the page", "arrows": "move; in the outline from row to row, left and right close and open",
  "+ -": "zoom", f: "show all", "n N": "to the next box, to the one before", "i o": "to an operand, to a user", e: "to the next line of the selected box, or of those that are not fused",
  "Enter": "open or close the section, or the body of the node", c: "close the section around the node", u: "back to the caller", p: "critical path", m: "small map",
  "1 2 3 4 5 6": "details, findings, costliest, not fused, text, memory", "< >": "the stage before, the next one", s: "save the drawing as SVG", S: "save it as PNG", d: "light or dark", "Escape": "select nothing", "?": "these keys" };
function keys() {
  const table = make("table");
  for (const key in KEYS) { const row = make("tr"); row.append(make("td", key), make("td", KEYS[key])); table.append(row); }
  const close = button("close", () => $("keys").close());
  $("keys").replaceChildren(table, close);
  $("keys").showModal();
}

const ACTS = {
  "/": () => $("search").focus(), f: fit, d: () => dark(!page.dark), m: () => { page.mapped = !page.mapped; draw(); }, p: () => showCritical(!page.critical), "?": keys,
  Escape: () => select(null), n: () => nextBox(1), N: () => nextBox(-1), e: nextEdge, u: back, s: () => save("svg"), S: () => save("png"),
  "<": () => { if (page.base) chooseStage((page.wanted ?? page.stage) - 1); }, ">": () => { if (page.base) chooseStage((page.wanted ?? page.stage) + 1); },
  "+": () => zoomHere(1.25), "=": () => zoomHere(1.25), "-": () => zoomHere(0.8),
  i: () => along((g, v) => g.operands(v)), o: () => along((g, v) => g.users(v)),
  c: () => { const p = page.shown, g = page.graph; if (p !== null && p >= 0 && g.section[p]) toggle(g.section[p]); },
  Enter: () => {
    const p = page.shown, g = page.graph;
    if (p === null) return;
    if (p < 0) toggle(sectionOfPlace(p)); else if (g.bodies(p).length) go(g.bodies(p).at(-1), true);
  },
};
const MOVES = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };

function onKey(e) {
  const inside = e.target.closest ? e.target.closest("button, a, select, dialog, #outline, #panel, #tabs") : null;
  if (e.target.tagName === "INPUT" || e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
  const move = MOVES[e.key], tab = Object.keys(TABS)[Number(e.key) - 1];
  // What a control does with a key of its own is left to it.
  if (inside && (move || e.key === "Enter" || e.key === " " || (inside.tagName === "SELECT"))) return;
  if (move) { page.x += move[0]; page.y += move[1]; draw(); }
  else if (tab) openTab(tab);
  else if (Object.hasOwn(ACTS, e.key)) { e.preventDefault(); ACTS[e.key](); }
}

function zoomHere(k) { const canvas = $("canvas"); zoom(k, canvas.clientWidth / 2, canvas.clientHeight / 2); }
function back() { if (!page.back.length) return; const [number, selected] = page.back.pop(); go(number); if (selected !== null) select(selected, true); }
function along(near) { const p = page.selected; if (p !== null && p >= 0 && near(page.graph, p).length) select(near(page.graph, p)[0], true); }

// The boxes in reading order: from top to bottom, then from left to right.
function nextBox(step) {
  const places = [...page.view.items.values()].sort((a, b) => a.y - b.y || a.x - b.x).map(item => item.place), now = places.indexOf(page.shown);
  if (places.length) goTo(places[(now < 0 ? (step > 0 ? 0 : places.length - 1) : now + step + places.length) % places.length]);
}
function goTo(place) {
  select(place);
  const item = page.view.items.get(place);
  if (item) centreOn(item.x, item.y);
  draw();
}

// The lines at the box that was selected last, one after the other; else all that are not fused.
function nextEdge() {
  if (page.shown !== null) page.edgesOf = page.shown;
  const at_ = page.view.links.filter(l => l.a === page.edgesOf || l.b === page.edgesOf), lines = at_.length ? at_ : page.view.links.filter(l => l.stored.length);
  if (!lines.length) return;
  const now = page.edge ? lines.findIndex(l => l.a === page.edge.a && l.b === page.edge.b) : -1;
  selectEdge(lines[(now + 1) % lines.length], true);
}

// The outline is one stop of Tab; its keys are those of a tree.
function outlineKey(e) {
  const rows = page.rows, i = Math.min(page.row ?? 0, rows.length - 1), row = rows[i], g = page.graph;
  const to = n => { page.row = Math.max(0, Math.min(rows.length - 1, n)); showRow(); };
  if (e.key === "ArrowDown") to(i + 1);
  else if (e.key === "ArrowUp") to(i - 1);
  else if (e.key === "Home") to(0);
  else if (e.key === "End") to(rows.length - 1);
  else if (e.key === "ArrowRight" && row.node === undefined) { if (!g.open.has(row.section)) toggle(row.section); else to(i + 1); }
  else if (e.key === "ArrowLeft") {
    if (row.node === undefined && row.section && g.open.has(row.section)) toggle(row.section);
    else { let n = i; while (n > 0 && rows[n].depth >= row.depth) n--; to(n); }
  }
  else if (e.key === "Enter" || e.key === " ") { if (row.node !== undefined) select(row.node, true); else goTo(placeOfSection(row.section)); page.row = i; }
  else return;
  e.preventDefault();
  showRow();
}
