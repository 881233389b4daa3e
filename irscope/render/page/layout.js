// A layered layout: the same as irscope/render/layout.py, in which each step is explained. layered(widths, heights, [[a, b], ...])
// gives {x, y, bends, width, height}; x and y are centres, bends the points that an edge passes on its way.
const GAP_X = 24, GAP_Y = 38, SWEEPS = 6, DUMMY = 8, MAX_DUMMIES = 6000;

function layered(widths, heights, edges) {
  const n = widths.length;
  if (!n) return { x: [], y: [], bends: [], width: 0, height: 0 };
  const forward = turned(n, edges), rank = ranks(n, forward);
  const w = widths.slice(), up = [], down = [];
  for (let i = 0; i < n; i++) { up.push([]); down.push([]); }
  let dummies = 0;
  const chains = forward.map(([a, b]) => {
    const chain = [];
    if (a === b) return chain;
    let before = a;
    const steps = rank[b] - rank[a] - 1;
    if (dummies + steps <= MAX_DUMMIES) for (let r = rank[a] + 1; r < rank[b]; r++) {
      const d = w.length;
      w.push(DUMMY); rank.push(r); up.push([before]); down.push([]);
      down[before].push(d); chain.push(d); before = d; dummies++;
    }
    down[before].push(b); up[b].push(before);
    return chain;
  });
  let most = 0;
  for (const r of rank) if (r > most) most = r;
  const rows = Array.from({ length: most + 1 }, () => []);
  rank.forEach((r, i) => rows[r].push(i));
  const place = new Float64Array(w.length);
  for (const row of rows) row.forEach((v, i) => { place[v] = i; });
  const mean = (near, at, v) => { if (!near.length) return at[v]; let s = 0; for (const o of near) s += at[o]; return s / near.length; };
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const near = sweep % 2 ? down : up;
    for (const row of sweep % 2 ? rows.slice().reverse() : rows) {
      const want = new Map(row.map(v => [v, mean(near[v], place, v)]));
      row.sort((a, b) => want.get(a) - want.get(b));
      row.forEach((v, i) => { place[v] = i; });
    }
  }
  const x = new Float64Array(w.length);
  for (const row of rows) { let at = 0; for (const v of row) { x[v] = at + w[v] / 2; at += w[v] + GAP_X; } }
  for (let sweep = 0; sweep < 2 * SWEEPS; sweep++) {
    const near = sweep % 2 ? down : up;
    for (const row of sweep % 2 ? rows.slice().reverse() : rows) settle(row, v => mean(near[v], x, v), w, x);
  }
  const tops = [0], tall = rows.map(row => row.reduce((m, v) => v < n ? Math.max(m, heights[v]) : m, 0));
  tall.forEach(h => tops.push(tops[tops.length - 1] + h + GAP_Y));
  let left = Infinity, right = -Infinity;
  for (let i = 0; i < w.length; i++) { left = Math.min(left, x[i] - w[i] / 2); right = Math.max(right, x[i] + w[i] / 2); }
  const y = rank.map(r => tops[r] + tall[r] / 2), xs = Array.from(x, v => v - left);
  const bends = edges.map(([a, b], i) => {
    const points = chains[i].map(v => [xs[v], y[v]]);
    return a === forward[i][0] || a === b ? points : points.reverse();
  });
  return { x: xs.slice(0, n), y: y.slice(0, n), bends, width: right - left, height: tops[tops.length - 1] - GAP_Y };
}

function turned(n, edges) {
  const out = Array.from({ length: n }, () => []), state = new Uint8Array(n), result = edges.map(e => e.slice());
  edges.forEach(([a], i) => out[a].push(i));
  for (let s = 0; s < n; s++) {
    if (state[s]) continue;
    state[s] = 1;
    const stack = [[s, 0]];
    while (stack.length) {
      const top = stack[stack.length - 1], v = top[0];
      if (top[1] === out[v].length) { state[v] = 2; stack.pop(); continue; }
      const e = out[v][top[1]++], t = edges[e][1];
      if (state[t] === 1) result[e] = [t, v];
      else if (!state[t]) { state[t] = 1; stack.push([t, 0]); }
    }
  }
  return result;
}

function ranks(n, edges) {
  const out = Array.from({ length: n }, () => []), degree = new Int32Array(n), rank = new Array(n).fill(0);
  for (const [a, b] of edges) if (a !== b) { out[a].push(b); degree[b]++; }
  const sources = [];
  for (let i = 0; i < n; i++) if (!degree[i]) sources.push(i);
  const ready = sources.slice();
  while (ready.length) {
    const v = ready.pop();
    for (const t of out[v]) { rank[t] = Math.max(rank[t], rank[v] + 1); if (!--degree[t]) ready.push(t); }
  }
  for (const v of sources) if (out[v].length) rank[v] = out[v].reduce((m, t) => Math.min(m, rank[t]), Infinity) - 1;
  return rank;
}

function settle(row, wanted, w, x) {
  const blocks = [];
  for (const v of row) {
    let block = { total: wanted(v) - w[v] / 2, width: w[v], members: [v] };
    while (blocks.length) {
      const last = blocks[blocks.length - 1];
      if (last.total / last.members.length + last.width + GAP_X <= block.total / block.members.length) break;
      blocks.pop();
      const shift = last.width + GAP_X;
      block = { total: last.total + block.total - shift * block.members.length, width: shift + block.width, members: last.members.concat(block.members) };
    }
    blocks.push(block);
  }
  for (const { total, members } of blocks) {
    let at = total / members.length;
    for (const v of members) { x[v] = at + w[v] / 2; at += w[v] + GAP_X; }
  }
}
