// The panes around the drawing: the switch between policies, crumbs, and the outline.
// The switch between fusion policies.
function policies() {
  const select = $("policy"), none = make("option", "none");
  none.value = "";
  select.replaceChildren(none, ...page.data.plans.map((plan, i) => { const o = make("option", plan.name); o.value = String(i); return o; }));
  select.value = page.plan === null ? "" : String(page.plan);
  $("policies").hidden = !page.data.plans.length;
}

function crumbs() {
  const element = $("crumbs");
  element.replaceChildren();
  const list = [0, ...page.back.map(b => b[0]), page.graph.number].filter((v, i, all) => all.indexOf(v) === i);
  list.forEach((number, i) => {
    if (i) element.append(" \u203a ");
    const name = page.data.graphs[number].name;
    if (i === list.length - 1) { const here = make("span", name); here.setAttribute("aria-current", "page"); element.append(here); }
    else element.append(button(name, () => { page.back = page.back.slice(0, i); go(number); }, "link"));
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
  const here = rows.findIndex(row => page.shown !== null && page.shown !== undefined && (row.node === page.shown || (row.node === undefined && placeOfSection(row.section) === page.shown)));
  if (here >= 0) {
    page.row = here;
    const area = $("outline"), top = here * 20;
    if (top < area.scrollTop || top + 20 > area.scrollTop + area.clientHeight) area.scrollTop = Math.max(0, top - area.clientHeight / 2);
  }
  $("rows").style.height = rows.length * 20 + "px";
  outlineRows();
}
function outlineRows() {
  const g = page.graph, area = $("outline"), first = Math.max(0, Math.floor(area.scrollTop / 20) - 5), last = Math.min(page.rows.length, first + Math.ceil(area.clientHeight / 20) + 12);
  const made = [];
  for (let i = first; i < last; i++) {
    const row = page.rows[i], div = document.createElement("div");
    div.id = "row-" + i; div.setAttribute("aria-level", String(row.depth + 1)); div.setAttribute("aria-selected", String(i === page.row));
    div.setAttribute("aria-setsize", String(page.rows.length)); div.setAttribute("aria-posinset", String(i + 1));
    div.className = "row" + (i === page.row ? " at" : ""); div.style.top = i * 20 + "px"; div.style.paddingLeft = 8 + row.depth * 14 + "px"; div.setAttribute("role", "treeitem");
    const strong = document.createElement("b"), info = document.createElement("i");
    if (row.node === undefined) {
      const s = g.sectionInfo(row.section);
      strong.textContent = (g.open.has(row.section) ? "\u25be " : "\u25b8 ") + visible(g.title(placeOfSection(row.section)));
      info.textContent = `  ${count(s.nodes)}  ${s.flops || s.open ? flopsText(s.flops, s.open) : ""}`;
      div.onclick = () => toggle(row.section);
      div.setAttribute("aria-expanded", String(g.open.has(row.section)));
    } else {
      strong.textContent = visible(g.label(row.node)); strong.style.fontWeight = "400";
      info.textContent = "  " + visible(g.caption.get(row.node) || "%" + g.names[row.node]);
      div.onclick = () => select(row.node, true);
    }
    if (row.node !== undefined && row.node === page.shown) div.classList.add("on");
    div.append(strong, info);
    made.push(div);
  }
  $("rows").replaceChildren(...made);
}
// Scrolls to the row that the keys are at, and names it to screen readers.
function showRow() {
  const area = $("outline"), top = (page.row ?? 0) * 20;
  if (top < area.scrollTop) area.scrollTop = top;
  else if (top + 20 > area.scrollTop + area.clientHeight) area.scrollTop = top + 20 - area.clientHeight;
  outlineRows();
  area.setAttribute("aria-activedescendant", "row-" + (page.row ?? 0));
}
