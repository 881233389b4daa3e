// The small picture of the whole drawing, with a frame around what can be seen; a click or drag moves the view.

function minimap() {
  const canvas = $("map"), { view } = page;
  // Where all of it can be seen, the map would only cover a part.
  const main = $("canvas"), whole = page.x >= 0 && page.y >= 0 && page.x + view.width * page.scale <= main.clientWidth && page.y + view.height * page.scale <= main.clientHeight;
  canvas.hidden = !page.mapped || whole;
  if (canvas.hidden) return;
  const ratio = globalThis.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight, theme = page.data.themes[page.dark ? "dark" : "light"];
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) { canvas.width = width * ratio; canvas.height = height * ratio; }
  const c = canvas.getContext("2d"), k = Math.min((width - 8) / view.width, (height - 8) / view.height);
  page.map = { k, x: (width - view.width * k) / 2, y: (height - view.height * k) / 2 };
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  c.translate(page.map.x, page.map.y);
  c.strokeStyle = theme.border; c.lineWidth = 1;
  for (const f of view.frames) if (f.section) c.strokeRect(f.x * k, f.y * k, f.w * k, f.h * k);
  for (const item of page.sorted) {
    c.fillStyle = item.place === page.shown ? "#0969da" : colours(item.place)[1];
    c.fillRect((item.x - item.w / 2) * k, (item.y - item.h / 2) * k, Math.max(1.5, item.w * k), Math.max(1.5, item.h * k));
  }
  c.strokeStyle = "#0969da"; c.lineWidth = 1.5;
  c.strokeRect(-page.x / page.scale * k, -page.y / page.scale * k, main.clientWidth / page.scale * k, main.clientHeight / page.scale * k);
}

function listenToMap() {
  const canvas = $("map");
  const move = e => {
    const r = canvas.getBoundingClientRect(), main = $("canvas"), x = (e.clientX - r.left - page.map.x) / page.map.k, y = (e.clientY - r.top - page.map.y) / page.map.k;
    page.x = main.clientWidth / 2 - x * page.scale; page.y = main.clientHeight / 2 - y * page.scale;
    draw();
  };
  canvas.addEventListener("pointerdown", e => { canvas.setPointerCapture(e.pointerId); move(e); });
  canvas.addEventListener("pointermove", e => { if (e.buttons) move(e); });
}
