// Findings: the list of all of them, what fixing saves most first, and a card with path, cost and fix for each.
const SHOWN = 100;   // rows of a list before "more"

const MARKS = { error: "\u25cf", warning: "\u25b2", info: "\u25a0" };

// The list of a tab: rows of [element]; more of them at a click, so that ten thousand do not slow the page.
function longList(rows, row) {
  const list = make("ol", "", "list");
  let n = 0;
  const more = button("", () => add(), "more");
  const add = () => {
    for (const one of rows.slice(n, n + SHOWN)) { const item = make("li"); item.append(row(one)); list.append(item); }
    n = Math.min(rows.length, n + SHOWN);
    more.textContent = `show more (${count(rows.length - n)} left)`;
    more.hidden = n === rows.length;
  };
  add();
  const box = make("div");
  box.append(list, more);
  return box;
}

// What a fix saves, with its range, or what kernels cost now: "about 3.2 us, 1.6 us to 6.4 us (2 % of all), 12 KiB of traffic, 1 kernel".
function savings(s) {
  if (!s) return "";
  const parts = [];
  const range = s.us_most === undefined ? "" : `, ${timeText(s.us_least)} to ${timeText(s.us_most)}`;
  if (s.us) parts.push("about " + timeText(s.us) + range + (s.share ? ` (${Number((100 * s.share).toPrecision(2))} % of all)` : ""));
  if (s.bytes) parts.push(bytesText(s.bytes) + " of traffic");
  if (s.kernels) parts.push(`${Math.round(s.kernels)} kernel${Math.round(s.kernels) === 1 ? "" : "s"}`);
  return parts.join(", ");
}

function severityWord(severity) {
  const word = make("b", `${MARKS[severity]} ${severity}`, severity);
  return word;
}

// The numbers of findings of the given severities; the data holds them sorted by what they save.
function findingNumbers() { return page.data.findings.map((_, i) => i).filter(i => !page.without.has(page.data.findings[i].severity)); }

function findingsTab(panel) {
  const all = page.data.findings, chips = make("p", "", "chips");
  for (const severity of SEVERITIES.slice().reverse()) {
    const n = all.filter(f => f.severity === severity).length;
    if (!n) continue;
    const chip = button(`${MARKS[severity]} ${n} ${severity}`, () => {
      if (!page.without.delete(severity)) page.without.add(severity);
      details();
    }, severity);
    chip.setAttribute("aria-pressed", String(!page.without.has(severity)));
    chip.title = `show or hide findings of severity ${severity}`;
    chips.append(chip);
  }
  panel.append(chips);
  if (!all.length) { panel.append(make("p", "no findings; irscope show FILE -o page.html --lint looks for them", "faint")); return; }
  panel.append(make("p", "what fixing saves most stands first", "faint"), longList(findingNumbers(), i => {
    const f = all[i], row = button("", () => openFinding(i), "item");
    row.append(severityWord(f.severity), make("span", ` ${f.code} ${f.name}`), make("span", f.node ? ` %${f.node}` : "", "faint"),
      make("span", f.message, "line"), ...(savings(f.saves) ? [make("span", "saves " + savings(f.saves), "line gain")] : []));
    return row;
  }));
}

function openFinding(i) {
  const f = page.data.findings[i];
  if (!f.node || !jump(f.graph + "/" + f.node)) { page.selected = page.shown = null; page.tab = "details"; details([i]); }
}

// Everything that is known of a finding; its operators lead to their boxes.
function findingCard(i) {
  const f = page.data.findings[i], card = make("article", "", "finding " + f.severity), head = make("h3");
  head.append(severityWord(f.severity), make("span", ` ${f.code} ${f.name}`));
  card.append(head);
  if (f.at) card.append(make("p", f.at, "faint"));
  card.append(make("p", f.message));
  for (const note of f.notes) card.append(make("p", "note: " + note, "faint"));
  if (f.path.length) {
    const path = make("ol", "", "path");
    path.setAttribute("aria-label", "operators");
    for (const [name, op, type, source, here] of f.path) {
      const step = make("li", "", here ? "here" : "");
      step.append(button(`%${name}`, () => jump(f.graph + "/" + name), "link"), make("span", ` ${type} ${op}`), ...(source ? [make("span", " " + source, "faint")] : []));
      path.append(step);
    }
    card.append(path);
  }
  const figures = make("dl"), row = (label, text, css) => { if (text) figures.append(make("dt", label), make("dd", text, css)); };
  row("from", f.path.length ? "" : f.from); row("costs", savings(f.costs)); row("saves", savings(f.saves), "gain"); row("fix", f.help);
  card.append(figures);
  return card;
}
