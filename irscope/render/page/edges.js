// Fusion policies: the kernels of a graph, the edges that go through memory, and what the policy says of them.

// Of one policy and one graph: the kernels of each node, and the numbers of the unfused edges by their ends.
class GraphPlan {
  constructor(plan, g) {
    const columns = Object.hasOwn(plan.graphs, g.name) ? plan.graphs[g.name] : { kernels: [], of: {} };
    this.plan = plan;
    this.kernels = columns.kernels;
    this.of = columns.of;
    this.n = g.n;
    this.byEnds = new Map();
    for (const i of edgesIn(plan, g.name)) {
      const key = plan.edges[i][1] * g.n + plan.edges[i][2];
      if (this.byEnds.has(key)) this.byEnds.get(key).push(i);
      else this.byEnds.set(key, [i]);
    }
  }
  kernelsOf(v) { return this.of[v] || []; }
  stored(producer, consumer) { return this.byEnds.get(producer * this.n + consumer); }
}

// The numbers of the edges whose ends are nodes of a graph.
function edgesIn(plan, name) {
  if (!plan.byGraph) {
    plan.byGraph = new Map();
    plan.edges.forEach(([at, producer], i) => {
      if (producer < 0) return;
      if (!plan.byGraph.has(plan.in[at])) plan.byGraph.set(plan.in[at], []);
      plan.byGraph.get(plan.in[at]).push(i);
    });
  }
  return plan.byGraph.get(name) || [];
}

// An unfused edge in words; the columns are those of page_plans.py.
function edgeInfo(plan, i) {
  const [home, producer, consumer, names, some, group, bytes, us, ...texts] = plan.edges[i];
  const [reason, rule, cause, fix, releases, about, carries] = texts.map(t => plan.texts[t]), name = home < 0 ? "" : plan.in[home];
  const number = numberOfGraph(name), g = number >= 0 && producer >= 0 ? graph(number) : null;
  return { i, graph: name, number, producer, consumer, names: g ? [g.names[producer], g.names[consumer]] : names, inner: g && names ? names : null, some: some === 1, group,
    bytes, us, reason, rule, cause, fix, releases, about, carries };
}
function numberOfGraph(name) {
  page.numberByName ??= new Map(page.data.graphs.map((g, i) => [g.name, i]));
  return page.numberByName.get(name) ?? -1;
}
function edgeTitle(e) { return `%${e.names[0]} \u2192 %${e.names[1]}`; }
function edgeCost(e) { return [e.us ? timeText(e.us) : "", e.bytes ? bytesText(e.bytes) : ""].filter(Boolean).join(", "); }

function currentPlan() { return page.plan === null ? null : page.data.plans[page.plan]; }

// Chooses the policy whose kernels are framed: its number, or null for none.
function choosePlan(number) {
  page.plan = number;
  $("policy").value = number === null ? "" : String(number);
  for (const g of page.graphs) if (g) g.setPlan(currentPlan());
  redo(); details(); address();
}

// The verdict, the rule with the numbers that it compared, the root cause and the fix, in the words of irscope lint --why-not-fused.
function edgeCard(e, others = []) {
  const plan = currentPlan(), card = make("article", "", "finding stored"), head = make("h3");
  if (e.number >= 0) head.append(button(`%${e.names[0]}`, () => jump(e.graph + "/" + e.names[0]), "link"), " \u2192 ", button(`%${e.names[1]}`, () => jump(e.graph + "/" + e.names[1]), "link"));
  else head.append(make("span", edgeTitle(e)));
  card.append(head, make("p", e.some ? "fused, and stored for other readers too" : "not fused: the value goes through memory", "verdict"));
  const row = facts(card);
  if (e.inner) row("between", `%${e.inner[0]} \u2192 %${e.inner[1]}`);
  row("operators", e.about); row("value", e.carries); row("costs", edgeCost(e) ? "at most " + edgeCost(e) : ""); row("rule", e.rule);
  row("says", e.reason); row("because", e.cause); row("fix", e.fix); row("releases", e.releases); row("policy", plan.name);
  if (others.length) row("alike", make("span", `${count(others.length + 1)} edges`), ...others.slice(0, 3).map(o => button(edgeTitle(o), () => showEdge(o), "link")));
  return card;
}

// The numbers of the edges of each group of equal ones.
function groupsOf(plan) {
  if (!plan.groups) {
    plan.groups = new Map();
    plan.edges.forEach((row, i) => { if (plan.groups.has(row[5])) plan.groups.get(row[5]).push(i); else plan.groups.set(row[5], [i]); });
  }
  return plan.groups;
}
function groupOf(plan, e) { return groupsOf(plan).get(e.group).filter(i => i !== e.i).map(i => edgeInfo(plan, i)); }

// The tab with all edges that are not fused, the costliest first; those that are alike are one row.
function edgesTab(panel) {
  const plan = currentPlan();
  if (!plan) { panel.append(make("p", page.data.plans.length ? "choose a policy above" : "irscope show FILE -o page.html --policy auto finds the edges that are not fused", "faint")); return; }
  panel.append(make("p", `not fused under ${plan.name}; what costs most stands first`, "faint"));
  for (const text of [plan.why, ...plan.remarks]) if (text) panel.append(make("p", text, "faint"));
  const groups = groupsOf(plan);
  if (!groups.size) { panel.append(make("p", "every edge is fused")); return; }
  panel.append(longList([...groups.values()], members => {
    const infos = members.map(i => edgeInfo(plan, i)), e = infos[0], row = button("", () => showEdge(e), "item");
    const sum = { us: infos.reduce((n, x) => n + x.us, 0), bytes: infos.reduce((n, x) => n + x.bytes, 0) };
    row.append(make("b", edgeTitle(e)), make("span", members.length > 1 ? ` \u00d7${members.length}` : ""), make("span", e.carries ? " " + e.carries : "", "faint"),
      make("span", [e.rule, edgeCost(sum) ? "at most " + edgeCost(sum) : ""].filter(Boolean).join(", "), "line"));
    return row;
  }));
}

// Selects the edge in the drawing, its sections opened, and shows the card.
function showEdge(e) {
  if (e.number >= 0) {
    if (e.number !== page.graph.number) go(e.number, true);
    const g = page.graph;
    if ([e.producer, e.consumer].filter(v => g.seen(v) >= 0 && g.reveal(g.seen(v))).length) { page.view = g.layout(); sortItems(); }
    const link = page.view.links.find(l => l.stored.includes(e.i));
    if (link) { selectEdge(link, true); return; }
  }
  // An end that is written into another box has no line of its own.
  page.selected = page.shown = null; page.edge = { edges: [e.i] }; page.tab = "details";
  outline(); draw(); details();
}

// Selects a line of the drawing: the edges that it stands for are shown in the pane.
function selectEdge(link, centre) {
  page.selected = page.shown = null;
  page.edge = { a: link.a, b: link.b, edges: link.stored, pairs: link.pairs || [], n: link.n };
  page.tab = "details";
  const a = page.view.items.get(link.a), b = page.view.items.get(link.b);
  if (centre && a && b) centreOn((a.x + b.x) / 2, (a.y + b.y) / 2);
  outline(); draw(); details(); address();
  announce(`edge from ${nameOf(link.a)} to ${nameOf(link.b)}${link.stored.length ? ", not fused" : ""}`);
}

function nameOf(place) { return place >= 0 ? `${page.graph.label(place)} %${page.graph.names[place]}` : `section ${page.graph.title(place)}`; }

// What is known of a selected line: the values, and a card for each that goes through memory.
function edgeDetails(panel) {
  const g = page.graph, { a, b, edges, pairs = [] } = page.edge, plan = currentPlan();
  panel.append(make("h2", "edge"));
  if (a !== undefined) {
    const row = facts(panel), end = place => button(nameOf(place), () => select(place, true), "link");
    row("from", end(a)); row("to", end(b));
    row(pairs.length > 1 ? `${pairs.length} values` : "value", ...pairs.slice(0, 20).map(([o]) => make("span", `%${g.names[o]} ${g.type(o)}`)));
  }
  const infos = edges.map(i => edgeInfo(plan, i)), byGroup = new Map();
  for (const e of infos) if (!byGroup.has(e.group)) byGroup.set(e.group, e);
  if (infos.length) panel.append(longList([...byGroup.values()], e => edgeCard(e, groupOf(plan, e))));
  if (edges.length || a === undefined) return;
  if (!plan) { panel.append(make("p", page.data.plans.length ? "choose a policy above: it says whether this edge is fused" : "irscope show FILE -o page.html --policy auto says whether this edge is fused", "faint")); return; }
  const shared = pairs.length === 1 ? g.plan.kernelsOf(pairs[0][0]).filter(k => g.plan.kernelsOf(pairs[0][1]).includes(k)) : [];
  panel.append(make("p", shared.length ? `fused under ${plan.name}: one kernel, of %${g.plan.kernels[shared[0]]}, computes both ends`
    : `${plan.name} stores no value of this line`, "verdict"));
}
