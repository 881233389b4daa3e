// The right pane: tabs with what is selected or the module, with the findings, and with lists of places worth a look.

const TABS = { details: ["details", detailsTab], findings: ["findings", findingsTab], costliest: ["costliest", costliestTab], edges: ["not fused", edgesTab],
  text: ["text", textTab], memory: ["memory", memoryTab] };

// Redraws the pane. ``findings``: numbers of findings without a place, which are shown above the module.
function details(findings) {
  const tabs = $("tabs"), panel = $("panel"), focused = tabs.contains(document.activeElement);
  tabs.replaceChildren();
  for (const [name, [label]] of Object.entries(TABS)) {
    const n = counts(name), tab = button(label + (n ? ` ${count(n)}` : ""), () => openTab(name), "tab");
    tab.setAttribute("role", "tab");
    tab.id = "tab-" + name;
    tab.setAttribute("aria-controls", "panel");
    tab.setAttribute("aria-selected", String(name === page.tab));
    tab.tabIndex = name === page.tab ? 0 : -1;
    tabs.append(tab);
    if (name === page.tab && focused) tab.focus();
  }
  panel.setAttribute("aria-labelledby", "tab-" + page.tab);
  panel.replaceChildren();
  panel.scrollTop = 0;
  for (const i of findings || []) panel.append(findingCard(i));
  $("right").classList.toggle("wide", page.tab === "text");
  TABS[page.tab][1](panel);
}

function openTab(name) { page.tab = name; details(); }

function counts(name) { return name === "findings" ? page.data.findings.length : name === "edges" && currentPlan() ? currentPlan().edges.length : 0; }

// A description list; ``row`` adds a label and its values, which are texts or elements.
function facts(panel) {
  const list = make("dl");
  panel.append(list);
  return (label, ...values) => {
    if (!values.length || values[0] === "") return;
    const dd = make("dd");
    for (const value of values) { dd.append(value instanceof Node ? value : visible(value)); if (value instanceof Node) dd.append(make("br")); }
    list.append(make("dt", label), dd);
  };
}

function nodeLink(v) { return button(`%${page.graph.names[v]}  ${page.graph.label(v)}`, () => select(v, true), "link"); }

function detailsTab(panel) {
  if (page.edge) edgeDetails(panel);
  else if (page.selected === null && page.graph.number) graphDetails(panel);
  else if (page.selected === null) moduleDetails(panel);
  else if (page.selected < 0) sectionDetails(panel, page.selected);
  else nodeDetails(panel, page.selected);
}

function moduleDetails(panel) {
  panel.append(make("h2", page.data.file));
  for (const [text, at] of page.data.highlights) panel.append(button(text, () => jump(at), "highlight"));
  const row = facts(panel);
  for (const [label, text] of page.data.summary) row(label, text);
  if (page.data.note) row("changes", page.data.note);
  const others = page.data.graphs.map((_, i) => i).filter(i => i !== page.graph.number && !page.data.graphs[i].scalar);
  if (!others.length) return;
  panel.append(make("h2", "other graphs"));
  panel.append(longList(others, i => button(page.data.graphs[i].name, () => go(i, true), "link")));
}

// A computation that is not the entry: what it costs in one run, and what calls it.
function graphDetails(panel) {
  const g = page.graph, info = g.sectionInfo(0), row = (panel.append(make("h2", g.name)), facts(panel)), ops = new Map();
  for (let v = 0; v < g.n; v++) ops.set(g.op(v), (ops.get(g.op(v)) || 0) + 1);
  row("nodes", count(g.n)); row("runs", g.raw.times ? count(g.raw.times) : "");
  if (!g.raw.fused) { row("work", flopsText(info.flops, info.open)); row("traffic", bytesText(info.bytes, info.open)); }
  row("operators", [...ops].sort((a, b) => b[1] - a[1]).slice(0, 10).map(([op, n]) => `${op} ${n}`).join(" \u00b7 "));
  const callers = [];
  page.data.graphs.forEach((other, i) => { for (const v in other.bodies) if (other.bodies[v].includes(g.number)) callers.push([i, Number(v)]); });
  if (!callers.length) return;
  panel.append(make("h2", "called by"));
  panel.append(longList(callers, ([i, v]) => button(`%${graph(i).names[v]}  ${page.data.graphs[i].name}`, () => jump(`${page.data.graphs[i].name}/${graph(i).names[v]}`), "link")));
}

function sectionDetails(panel, place) {
  const g = page.graph, s = sectionOfPlace(place), info = g.sectionInfo(s);
  panel.append(make("h2", g.title(place)));
  const row = facts(panel);
  row("nodes", count(info.nodes)); row("work", flopsText(info.flops, info.open)); row("traffic", bytesText(info.bytes, info.open)); row("mostly", info.ops);
  if (page.numbers && numberOf(place) !== undefined) row(page.numbers.label, numberText(numberOf(place)));
  panel.append(button(g.open.has(s) ? "close" : "open (double click)", () => toggle(s)));
  const found = page.view.extras.found.get(place) || [];
  if (found.length) panel.append(make("h2", `${count(found.length)} finding${found.length > 1 ? "s" : ""} inside`), longList(sortedNumbers(found), findingCard));
}

function nodeDetails(panel, v) {
  const g = page.graph;
  panel.append(make("h2", g.label(v)));
  const row = facts(panel);
  row("name", "%" + g.names[v]); row("type", g.type(v)); row("scope", g.scope(v)); row("source", g.source(v));
  row("cost", g.costText(v)); row("memory", livesText(g, v)); row("graph", g.name);
  if (page.numbers && page.numbers.values[g.number].has(v)) row(page.numbers.label, numberText(page.numbers.values[g.number].get(v)));
  if (g.plan) row("kernel", g.plan.kernelsOf(v).map(k => "%" + g.plan.kernels[k]).join(", "));
  if (v !== page.shown) row("drawn as", page.shown !== null ? nodeLink(page.shown) : "not drawn");
  const operands = g.operands(v), users = g.users(v);
  row("operands", ...operands.slice(0, 30).map(nodeLink)); row("users", ...users.slice(0, 30).map(nodeLink));
  if (users.length > 30) row("", `${count(users.length - 30)} more`);
  for (const [i, body] of g.bodies(v).entries()) row(bodyRole(g, v, i), button(page.data.graphs[body].name, () => go(body, true), "link"));
  storedRows(panel, v);
  const found = sortedNumbers(page.view.extras.found.get(page.shown) || g.findingsOf(page.shown ?? v));
  const own = found.filter(i => page.data.findings[i].node === g.names[v]);
  const order = [...own, ...found.filter(i => !own.includes(i))];
  if (order.length) panel.append(longList(order, findingCard));
  if (page.text && g.lines[v]) panel.append(make("pre", textLine(g.lines[v])));
}

// What a body is to the node that runs it; as body_role in irscope/analysis/calls.py.
function bodyRole(g, v, i) {
  const op = g.op(v);
  return op === "conditional" ? `branch ${i}` : op === "while" ? (i < g.bodies(v).length - 1 ? "condition" : "body") : "calls";
}

// The edges of a node that are not fused; a click selects the edge.
function storedRows(panel, v) {
  const g = page.graph;
  if (!g.plan) return;
  const pairs = [...new Set(g.operands(v))].map(o => [o, v]).concat(g.users(v).map(u => [v, u]));
  const edges = pairs.flatMap(([a, b]) => g.plan.stored(a, b) || []).map(i => edgeInfo(currentPlan(), i));
  if (!edges.length) return;
  panel.append(make("h2", "not fused"), longList(edges, e => button(`${edgeTitle(e)}  ${e.rule}${edgeCost(e) ? ", " + edgeCost(e) : ""}`, () => showEdge(e), "link")));
}

function sortedNumbers(numbers) { return [...new Set(numbers)].sort((a, b) => a - b); }

// A line of the text without the blanks around it; textLine shortens what is longer than a line.
function wholeLine(number) {
  const { starts } = textLines(), from = starts[number - 1], to = starts[number] ?? page.text.length + 1;
  return page.text.slice(from, to - 1).trim();
}
function textLine(number) {
  const text = wholeLine(number);
  return text.length > 6000 ? text.slice(0, 6000) + " ..." : text;
}
