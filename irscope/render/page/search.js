// Search over all graphs: a word, a /pattern/, or a query of docs/query.md. What is found is listed and ringed in the drawing.
const LISTED = 200;

// Whether a text is a query, rather than a word to look for.
function isQuery(text) { return /[=<>~!&|]|^(near|deps|uses|path|between|dominators|postdominators)\(|(^|\s|\()(and|or|not)\s/.test(text); }

function search(text) {
  page.hits = null;
  page.picked = -1;
  const element = $("found");
  element.replaceChildren();
  element.hidden = !text;
  $("search").setAttribute("aria-expanded", String(Boolean(text)));
  $("search").removeAttribute("aria-activedescendant");
  if (!text) { draw(); return; }
  let found;
  try { found = isQuery(text) && !/^\/.+\/$/.test(text) ? byQuery(text) : byWord(text); }
  catch (error) { element.append(make("div", error.message, "fault")); draw(); return; }
  page.hits = found.hits;
  element.append(make("div", found.total > LISTED ? `${count(found.total)} found, the first ${LISTED}:` : `${count(found.total)} found`, "head"));
  found.first.forEach(([number, v, where], i) => {
    const g = graph(number), row = make("div", `%${g.names[v]}  `);
    row.id = "hit-" + i;
    row.setAttribute("role", "option");
    row.append(make("i", `${g.label(v)}  ${g.type(v)}  ${where || g.scope(v)}`));
    row.onclick = () => jump(g.name + "/" + g.names[v]);
    element.append(row);
  });
  announce(`${count(found.total)} found`);
  draw();
}

// What was found: the nodes of each graph, how many, and the first of them with the words that say where.
class Found {
  constructor() { this.hits = new Map(); this.total = 0; this.first = []; }
  add(number, v, where) {
    if (!this.hits.has(number)) this.hits.set(number, []);
    this.hits.get(number).push(v);
    if (this.total++ < LISTED) this.first.push([number, v, where]);
  }
}

// Moves the mark in the list of what was found; Enter goes there.
function pick(step) {
  const rows = [...$("found").querySelectorAll("[role=option]")];
  if (!rows.length) return;
  page.picked = Math.max(0, Math.min(rows.length - 1, page.picked + step));
  rows.forEach((row, i) => { row.classList.toggle("on", i === page.picked); row.setAttribute("aria-selected", String(i === page.picked)); });
  rows[page.picked].scrollIntoView({ block: "nearest" });
  $("search").setAttribute("aria-activedescendant", rows[page.picked].id);
}

function byQuery(text) {
  if (/\btext\b/.test(text) && !page.text) throw new QueryError(page.data.hasText ? "the text is still being unpacked" : "the page holds no text: the dump is too large");
  const test = parseQuery(text), found = new Found();
  eachGraph(g => { for (let v = 0; v < g.n; v++) if (test(g, v)) found.add(g.number, v); }, true);
  return found;
}

// Names, operators, scopes, types and lines of the user's program; where these are few, then what is written in the text, attributes above all.
function byWord(text) {
  const regex = /^\/(.+)\/$/.exec(text), low = text.toLowerCase().replace(/^%/, ""), pattern = regex && new RegExp(regex[1], "i");
  const test = pattern ? t => pattern.test(t) : t => t.toLowerCase().includes(low), found = new Found(), { data } = page;
  const [titles, ops, types, scopes, sources] = [data.titles, data.ops.map(op => op[0]), data.types, data.scopes, data.sources].map(words => words.map(test));
  eachGraph(g => {
    const { title, op, scope, type, source } = g.raw, names = pattern ? g.names : g.lowNames;
    for (let v = 0; v < g.n; v++) {
      if (titles[title[v]] || ops[op[v]] || scopes[scope[v]] || (pattern ? pattern.test(names[v]) : names[v].includes(low))) found.add(g.number, v);
      else if (types[type[v]]) found.add(g.number, v, g.type(v));
      else if (sources[source[v]]) found.add(g.number, v, g.source(v));
    }
  });
  if (found.total >= LISTED) return found;
  const lines = linesWith(pattern, low), known = new Map([...found.hits].map(([number, nodes]) => [number, new Set(nodes)]));
  if (lines.size) eachGraph(g => {
    const before = known.get(g.number);
    for (let v = 0; v < g.n; v++) if (lines.has(g.lines[v]) && !(before && before.has(v))) found.add(g.number, v, "in its text");
  });
  return found;
}

// The lines of the text whose attributes, which follow the operands, hold a word.
function linesWith(pattern, low) {
  const lines = new Set();
  if (!page.text || (!pattern && low.length < 3)) return lines;
  const { starts, attributes } = textLines(), end = page.text.length;
  if (pattern) {
    for (let i = 0; i < starts.length; i++) if (attributes[i] >= 0 && pattern.test(page.text.slice(attributes[i], starts[i + 1] ?? end))) lines.add(i + 1);
    return lines;
  }
  page.low ??= page.text.toLowerCase();
  for (let at = page.low.indexOf(low), i = 0; at >= 0; at = page.low.indexOf(low, at)) {
    while (i + 1 < starts.length && starts[i + 1] <= at) i++;
    if (attributes[i] >= 0 && at < attributes[i]) { at = attributes[i]; continue; }
    if (attributes[i] >= 0) lines.add(i + 1);
    at = starts[i + 1] ?? end;
  }
  return lines;
}
// Where each line begins, and where its attributes do (-1: it has none).
function textLines() {
  if (page.lines) return page.lines;
  const text = page.text, starts = [0];
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) starts.push(i + 1);
  const attributes = new Int32Array(starts.length).fill(-1);
  for (let i = text.indexOf("), "), line = 0; i >= 0; i = starts[line + 1] === undefined ? -1 : text.indexOf("), ", starts[line + 1])) {
    while (line + 1 < starts.length && starts[line + 1] <= i) line++;
    attributes[line] = i;
  }
  return page.lines = { starts, attributes };
}

function eachGraph(visit, scalar) {
  for (let i = 0; i < page.data.graphs.length; i++) if (scalar || !page.data.graphs[i].scalar) visit(graph(i));
}
