// The drawing as a file: SVG or PNG of everything that is open, drawn by the same function as the canvas.
const SVG = "http://www.w3.org/2000/svg";

// The few operations of a canvas that scene() uses, as elements of an SVG. Texts become text nodes, which the serialiser escapes.
class SvgPen {
  constructor(width, height, background) {
    this.root = document.createElementNS(SVG, "svg");
    for (const [key, value] of Object.entries({ xmlns: SVG, width: Math.ceil(width), height: Math.ceil(height), viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}` })) this.root.setAttribute(key, value);
    Object.assign(this, { path: "", dash: [], globalAlpha: 1, fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, font: "12px sans-serif", textAlign: "left" });
    this.fillStyle = background;
    this.add("rect", { width: "100%", height: "100%", fill: background });
  }
  add(tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (this.globalAlpha < 1) element.setAttribute("opacity", this.globalAlpha);
    if (text !== undefined) element.textContent = visible(text);
    this.root.append(element);
  }
  setLineDash(dash) { this.dash = dash; }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${x.toFixed(1)} ${y.toFixed(1)}`; }
  lineTo(x, y) { this.path += `L${x.toFixed(1)} ${y.toFixed(1)}`; }
  bezierCurveTo(a, b, c, d, e, f) { this.path += `C${[a, b, c, d, e, f].map(n => n.toFixed(1)).join(" ")}`; }
  roundRect(x, y, w, h, r) {
    this.path += `M${(x + r).toFixed(1)} ${y.toFixed(1)}h${(w - 2 * r).toFixed(1)}a${r} ${r} 0 0 1 ${r} ${r}v${(h - 2 * r).toFixed(1)}a${r} ${r} 0 0 1 ${-r} ${r}`
      + `h${(2 * r - w).toFixed(1)}a${r} ${r} 0 0 1 ${-r} ${-r}v${(2 * r - h).toFixed(1)}a${r} ${r} 0 0 1 ${r} ${-r}z`;
  }
  fill() { this.add("path", { d: this.path + "z", fill: this.fillStyle }); }
  stroke() { this.add("path", { d: this.path, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, ...(this.dash.length ? { "stroke-dasharray": this.dash.join(" ") } : {}) }); }
  fillText(text, x, y) {
    const [, bold, size] = /(bold )?([\d.]+)px/.exec(this.font);
    this.add("text", { x: x.toFixed(1), y: y.toFixed(1), fill: this.fillStyle, "font-size": size, "font-family": "sans-serif", ...(bold ? { "font-weight": "bold" } : {}),
      ...(this.textAlign === "center" ? { "text-anchor": "middle" } : {}) }, text);
  }
  toString() { return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(this.root) + "\n"; }
}

const MARGIN = 16, MAX_PIXELS = 12000;

function svgText() {
  const { view } = page, theme = page.data.themes[page.dark ? "dark" : "light"], pen = new SvgPen(view.width + 2 * MARGIN, view.height + 2 * MARGIN, theme.background);
  pen.root.append(Object.assign(document.createElementNS(SVG, "title"), { textContent: visible(`${page.data.name} / ${page.graph.name}`) }));
  const inner = document.createElementNS(SVG, "g"), outer = pen.root;
  inner.setAttribute("transform", `translate(${MARGIN} ${MARGIN})`);
  pen.root = inner;
  scene(pen, EVERYTHING, 1);
  outer.append(inner);
  pen.root = outer;
  return pen.toString();
}

function save(kind) {
  const name = `${page.data.name}-${page.graph.name}`.replace(/[^\w.-]+/g, "_").slice(0, 80) + "." + kind;
  if (kind === "svg") { offer(new Blob([svgText()], { type: "image/svg+xml" }), name); return; }
  const { view } = page, width = view.width + 2 * MARGIN, height = view.height + 2 * MARGIN, scale = Math.min(2, MAX_PIXELS / width, MAX_PIXELS / height);
  const canvas = document.createElement("canvas"), c = canvas.getContext("2d");
  canvas.width = Math.ceil(width * scale); canvas.height = Math.ceil(height * scale);
  c.fillStyle = page.data.themes[page.dark ? "dark" : "light"].background; c.fillRect(0, 0, canvas.width, canvas.height);
  c.setTransform(scale, 0, 0, scale, MARGIN * scale, MARGIN * scale);
  scene(c, EVERYTHING, 1);
  canvas.toBlob(blob => { if (blob) offer(blob, name); else announce("the drawing is too large for a PNG in this browser: save SVG"); }, "image/png");
}

function offer(blob, name) {
  const a = make("a");
  a.href = URL.createObjectURL(blob); a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}
