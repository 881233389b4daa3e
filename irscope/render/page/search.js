// Searches all graphs.
function search(text) {
  const element = $("found");
  element.replaceChildren();
  element.hidden = !text;
  if (!text) return;
  let test;
  const regex = /^\/(.+)\/$/.exec(text);
  try { const r = regex ? new RegExp(regex[1], "i") : null, low = text.toLowerCase().replace(/^%/, ""); test = r ? t => r.test(t) : t => t.toLowerCase().includes(low); }
  catch (error) { element.textContent = error.message; return; }
  let n = 0;
  const scopes = page.data.scopes.map(test), titles = page.data.titles.map(test);
  for (let i = 0; i < page.data.graphs.length; i++) {
    const g = graph(i);
    if (g.raw.scalar) continue;
    for (let v = 0; v < g.n; v++) {
      if (!(titles[g.raw.title[v]] || scopes[g.raw.scope[v]] || test(g.names[v]))) continue;
      if (++n > 200) continue;
      const div = document.createElement("div"), info = document.createElement("i");
      div.textContent = `%${g.names[v]}  `; info.textContent = `${g.label(v)}  ${g.scope(v)}`;
      div.append(info); div.onclick = () => jump(g.name + "/" + g.names[v]);
      element.append(div);
    }
  }
  const head = document.createElement("div"), info = document.createElement("i");
  info.textContent = n > 200 ? `${count(n)} found, the first 200:` : `${count(n)} found`;
  head.append(info); element.prepend(head);
}
