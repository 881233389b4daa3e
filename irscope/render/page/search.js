// Search over all graphs: a word, a /pattern/, or a query of docs/query.md. What is found is listed and ringed in the drawing.
const LISTED = 200;

// Whether a text is a query, rather than a word to look for.
function isQuery(text) { return /[=<>~!&|]|^(near|deps|uses|path)\(|(^|\s|\()(and|or|not)\s/.test(text); }

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
  page.hits = new Map();
  for (const [number, v] of found) { if (!page.hits.has(number)) page.hits.set(number, new Set()); page.hits.get(number).add(v); }
  element.append(make("div", found.length > LISTED ? `${count(found.length)} found, the first ${LISTED}:` : `${count(found.length)} found`, "head"));
  found.slice(0, LISTED).forEach(([number, v, where], i) => {
    const g = graph(number), row = make("div", `%${g.names[v]}  `);
    row.id = "hit-" + i;
    row.setAttribute("role", "option");
    row.append(make("i", `${g.label(v)}  ${g.type(v)}  ${where || g.scope(v)}`));
    row.onclick = () => jump(g.name + "/" + g.names[v]);
    element.append(row);
  });
  announce(`${count(found.length)} found`);
  draw();
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
  const test = parseQuery(text), found = [];
  eachNode((g, v) => { if (test(g, v)) found.push([g.number, v]); }, true);
  return found;
}

// Names, operators, scopes, types and lines of the user's program first; then what is written in the text, attributes above all.
function byWord(text) {
  const regex = /^\/(.+)\/$/.exec(text), low = text.toLowerCase().replace(/^%/, ""), pattern = regex && new RegExp(regex[1], "i");
  const test = pattern ? t => pattern.test(t) : t => t.toLowerCase().includes(low), found = [], later = [], { data } = page;
  const [titles, ops, types, scopes, sources] = [data.titles, data.ops.map(op => op[0]), data.types, data.scopes, data.sources].map(words => words.map(test));
  const lines = linesWith(pattern, low);
  eachNode((g, v) => {
    const raw = g.raw;
    if (test(g.names[v]) || titles[raw.title[v]] || ops[raw.op[v]] || scopes[raw.scope[v]]) found.push([g.number, v]);
    else if (types[raw.type[v]]) found.push([g.number, v, g.type(v)]);
    else if (sources[raw.source[v]]) found.push([g.number, v, g.source(v)]);
    else if (lines.has(g.lines[v])) later.push([g.number, v, "in its text"]);
  });
  return [...found, ...later];
}

// The lines of the text whose attributes hold a word: what follows the operands.
function linesWith(pattern, low) {
  const lines = new Set();
  if (!page.text || (!pattern && low.length < 3)) return lines;
  const text = page.text;
  page.low ??= text.toLowerCase();
  for (let i = 0, number = 1; i < text.length; number++) {
    let end = text.indexOf("\n", i);
    if (end < 0) end = text.length;
    const attributes = text.indexOf("), ", i);
    if (attributes >= 0 && attributes < end) {
      if (pattern ? pattern.test(text.slice(attributes, end)) : within(page.low, low, attributes, end)) lines.add(number);
    }
    i = end + 1;
  }
  return lines;
}
function within(text, word, from, to) { return text.slice(from, to).includes(word); }

function eachNode(visit, scalar) {
  for (let i = 0; i < page.data.graphs.length; i++) {
    const g = graph(i);
    if (g.raw.scalar && !scalar) continue;
    for (let v = 0; v < g.n; v++) visit(g, v);
  }
}
