// Numbers of the user on the nodes: a table of names and numbers (JSON or CSV), or a trace of a profiler, matched by instruction name.

// Reads a file: {label, unit, rows: Map of name -> number, n: the names in it}. Raises an Error that says what is expected.
function readNumbers(text, file) {
  const label = file.replace(/^.*[\\/]/, "");
  if (!/^\s*[[{]/.test(text)) return { label, unit: "", rows: readTable(text) };
  const json = JSON.parse(text), events = Array.isArray(json.traceEvents) ? json.traceEvents : Array.isArray(json) && json.some(e => e && e.ph) ? json : null;
  if (events) return { label, unit: "us", rows: readTrace(events) };
  const pairs = Array.isArray(json) ? json.map(row => Array.isArray(row) ? row : [row && row.name, row && (row.value ?? row.number ?? row.time)]) : Object.entries(json);
  const rows = new Map();
  for (const [name, n] of pairs) if (typeof name === "string" && typeof n === "number" && isFinite(n)) rows.set(name, (rows.get(name) || 0) + n);
  if (!rows.size) throw new Error("no numbers: expected {\"name\": number, ...}, [[\"name\", number], ...] or a Chrome trace");
  return { label, unit: "", rows };
}

// Lines of a name and a number, divided by comma, semicolon or tab; other lines, as a head, are passed over. Equal names are summed.
function readTable(text) {
  const rows = new Map();
  for (const line of text.split(/\r?\n/)) {
    const cells = [...line.matchAll(/("(?:[^"]|"")*"|[^,;\t]*)(?:[,;\t]|$)/g)].map(m => m[1].trim().replace(/^"|"$/g, "").replaceAll('""', '"'));
    const n = cells[1] === undefined || cells[1] === "" ? NaN : Number(cells[1]);
    if (cells[0] && isFinite(n)) rows.set(cells[0], (rows.get(cells[0]) || 0) + n);
  }
  if (!rows.size) throw new Error("no numbers: expected lines of name,number");
  return rows;
}

// The microseconds of each instruction: complete events of the Chrome trace format. jax names the instruction in args.hlo_op; where events
// name their module, those of other modules are left out.
function readTrace(events) {
  const mine = page.data.name.toLowerCase(), module = e => String((e.args && e.args.hlo_module) || "").replace(/\(\d+\)$/, "").toLowerCase();
  const complete = events.filter(e => e && e.ph === "X" && typeof e.dur === "number" && isFinite(e.dur)), here = complete.some(e => module(e) === mine), rows = new Map();
  for (const e of complete) {
    if (here && module(e) && module(e) !== mine) continue;
    const name = String((e.args && (e.args.hlo_op || e.args.name)) || e.name || "");
    if (name) rows.set(name, (rows.get(name) || 0) + e.dur);
  }
  if (!rows.size) throw new Error("the trace holds no complete events (ph X) with a duration");
  return rows;
}

// Where each name is: "name" and "graph/name". Of several nodes of a name the first that does work, the entry before other graphs.
function placesByName() {
  const places = new Map(), idle = new Map();
  for (let i = 0; i < page.data.graphs.length; i++) {
    const g = graph(i);
    for (let v = 0; v < g.n; v++) {
      const table = g.works(v) ? places : idle;
      if (!table.has(g.names[v])) table.set(g.names[v], [i, v]);
      places.set(`${g.name}/${g.names[v]}`, [i, v]);
    }
  }
  for (const [name, place] of idle) if (!places.has(name)) places.set(name, place);
  return places;
}

// Puts numbers on the nodes of all graphs; what calls a graph and has no number has the sum of it.
function putNumbers({ label, unit, rows }) {
  const values = page.data.graphs.map(() => new Map()), left = [];
  const places = placesByName();
  for (const [name, n] of rows) {
    const found = places.get(name.replace(/^%/, ""));
    if (found) values[found[0]].set(found[1], (values[found[0]].get(found[1]) || 0) + n);
    else left.push([name, n]);
  }
  const matched = rows.size - left.length;
  if (!matched) throw new Error(`none of the ${count(rows.size)} names is in this program`);
  const total = values.reduce((sum, of) => sum + [...of.values()].reduce((a, b) => a + b, 0), 0);
  const own = values.map(of => new Set(of.keys()));
  for (let i = page.data.graphs.length - 1; i >= 0; i--) {
    const bodies = page.data.graphs[i].bodies;
    for (const v in bodies) {
      if (values[i].has(Number(v))) continue;
      const inside = [...new Set(bodies[v])].reduce((sum, b) => sum + [...values[b].values()].reduce((a, x) => a + x, 0), 0);
      if (inside) values[i].set(Number(v), inside);
    }
  }
  left.sort((a, b) => b[1] - a[1]);
  page.numbers = { label, unit, values, own, total, matched, left };
  page.colour = "numbers";
  colourChoices();
  page.tab = "costliest";
  announce(`${count(matched)} numbers of ${label} are shown`);
}

function numberText(n) { return page.numbers.unit === "us" ? timeText(n) : Math.abs(n) >= 1e5 ? count(n) : String(Number(n.toPrecision(4))); }

// The number of a place: of a node, or the sum inside a closed section; undefined where none is known.
function numberOf(place) { return page.view.extras.numbers.get(place); }

// The sums of the visible places of a graph; equal copies count together, as their figures do.
function placedNumbers(g, placeOf) {
  const sums = new Map();
  if (page.numbers) for (const [v, n] of page.numbers.values[g.number]) { const place = placeOf(v); if (place !== null) sums.set(place, (sums.get(place) || 0) + n); }
  return sums;
}

async function openNumbers(file) {
  try {
    const stream = /\.gz$/.test(file.name) ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
    putNumbers(readNumbers(await new Response(stream).text(), file.name));
    redo(); details();
  } catch (error) { page.tab = "costliest"; page.numberFault = `${file.name}: ${error.message}`; details(); page.numberFault = null; }
}

function numbersPart(panel) {
  if (page.numberFault) panel.append(make("p", page.numberFault, "fault"));
  const file = make("input");
  file.type = "file"; file.id = "numbers"; file.accept = ".json,.csv,.tsv,.txt,.gz";
  file.onchange = () => { if (file.files.length) openNumbers(file.files[0]); };
  const label = make("label", "numbers of your own, or a profile: ");
  label.append(file);
  panel.append(label, make("p", "JSON or CSV of names and numbers, or the Chrome trace (.json, .json.gz) of jax's or torch's profiler; it stays in this page", "faint"));
  if (!page.numbers) return;
  const { label: name, values, own, total, matched, left } = page.numbers, rows = [];
  values.forEach((of, number) => of.forEach((n, v) => { if (own[number].has(v)) rows.push([number, v, n]); }));
  rows.sort((a, b) => b[2] - a[2]);
  panel.append(make("h2", name), make("p", `${count(matched)} of ${count(matched + left.length)} names are in this program`
    + (left.length ? `; not in it: ${left.slice(0, 3).map(([n]) => n).join(", ")}${left.length > 3 ? " ..." : ""}` : ""), "faint"));
  panel.append(longList(rows, ([number, v, n]) => {
    const g = graph(number), row = button("", () => jump(g.name + "/" + g.names[v]), "item"), bar = make("span", "", "bar");
    bar.style.width = 100 * Math.max(0, n) / (rows[0][2] || 1) + "%";
    row.append(bar, make("b", numberText(n) + " "), make("span", g.label(v)), make("span", ` %${g.names[v]}${total > 0 ? "  " + percent(n / total) : ""}`, "faint"));
    return row;
  }));
}
