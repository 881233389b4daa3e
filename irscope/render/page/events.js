// Mouse and keys.
function listen() {
  const canvas = $("canvas");
  let drag = null, moved = false, timer = null;
  canvas.addEventListener("pointerdown", e => { drag = [e.clientX - page.x, e.clientY - page.y]; moved = false; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", e => {
    if (drag) { const x = e.clientX - drag[0], y = e.clientY - drag[1]; if (Math.abs(x - page.x) + Math.abs(y - page.y) > 3) moved = true; page.x = x; page.y = y; canvas.classList.add("drag"); draw(); return; }
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
  $("policy").addEventListener("change", e => choosePlan(e.target.value === "" ? null : Number(e.target.value)));
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
