// The text of the dump, linked both ways: a click on a line selects its node, and the line of the selected node is marked.
const ROW = 17;   // pixels of a line

// The node that each line defines.
function nodesByLine() {
  if (page.byLine) return page.byLine;
  page.byLine = new Map();
  eachGraph(g => { for (let v = 0; v < g.n; v++) if (g.lines[v] && !page.byLine.has(g.lines[v])) page.byLine.set(g.lines[v], [g.number, v]); }, true);
  return page.byLine;
}

function textTab(panel) {
  if (!page.text) {
    panel.append(make("p", page.data.hasText ? "the text is being unpacked ..." : "the page holds no text: the dump is too large", "faint"));
    return;
  }
  const { starts } = textLines(), box = make("div", "", "code"), here = page.selected !== null && page.selected >= 0 ? page.graph.lines[page.selected] : 0;
  box.style.height = starts.length * ROW + "px";
  panel.append(box);
  const rows = () => {
    if (!box.isConnected) { panel.removeEventListener("scroll", rows); return; }
    const first = Math.max(0, Math.floor(panel.scrollTop / ROW) - 10), last = Math.min(starts.length, first + Math.ceil(panel.clientHeight / ROW) + 25);
    const made = [], nodes = nodesByLine(), focused = box.contains(document.activeElement) ? document.activeElement.dataset.line : null;
    for (let i = first; i < last; i++) {
      const text = page.text.slice(starts[i], Math.min((starts[i + 1] ?? page.text.length + 1) - 1, starts[i] + 1000)).replace(/\r$/, ""), node = nodes.get(i + 1);
      const row = node ? button(text || " ", () => selectLine(i + 1), "") : make("span", text || " ");
      row.className = i + 1 === here ? "here" : "";
      row.style.top = i * ROW + "px";
      row.dataset.line = String(i + 1);
      row.prepend(make("i", String(i + 1).padStart(String(starts.length).length) + "  "));
      made.push(row);
    }
    box.replaceChildren(...made);
    if (focused) { const again = made.find(row => row.dataset.line === focused); if (again) again.focus({ preventScroll: true }); }
  };
  panel.addEventListener("scroll", rows);
  if (here) panel.scrollTop = Math.max(0, here * ROW - panel.clientHeight / 2);
  rows();
}

function selectLine(number) {
  const [at, v] = nodesByLine().get(number), top = $("panel").scrollTop;
  if (at !== page.graph.number) go(at, true);
  select(v, true);
  $("panel").scrollTop = top;
}
