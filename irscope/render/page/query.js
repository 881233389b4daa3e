// The query language of docs/query.md: parses a query into a test (graph, node) => boolean. Each step is explained in query/language.py.

const LETTER = String.raw`(?:[^\s()&|!,=<>~"'\[{]|\[[^\]]*\]|\{[^}]*\})`;
const TOKEN = new RegExp(String.raw`(?<blank>\s+)|(?<regex>\/(?:\\.|[^/\\])+\/)|(?<text>"[^"]*"|'[^']*')|(?<compare>==|!=|<=|>=|!~|=|<|>|~)|(?<sign>&&|\|\||[()&|!,])`
  + String.raw`|(?<word>(?!(?:near|deps|uses|path|between|dominators|postdominators|not|and|or)\()${LETTER}+(?:\((?:[^()]|\([^()]*\))*\)${LETTER}*)*|${LETTER}+)`, "y");
const NUMBER = /^([0-9.]+(?:e[+-]?\d+)?)([kKmMgGtT]i?)?(?:B|bytes|FLOPs?|flops?)?$/;
const UNITS = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, ki: 2 ** 10, mi: 2 ** 20, gi: 2 ** 30, ti: 2 ** 40 };
const FUNCTIONS = { near: [1, 4], deps: [1, 1], uses: [1, 1], path: [2, 2], between: [2, 2], dominators: [1, 2], postdominators: [1, 1] }, THROUGH = ["tuples", "fan-out"], FAN_OUT = 16, MAX_DEPTH = 100;

const COLUMNS = {
  op: ["text", (g, v) => g.op(v)], name: ["text", (g, v) => g.names[v]], graph: ["text", g => g.name], scope: ["text", (g, v) => g.scope(v)],
  source: ["text", (g, v) => g.source(v)], class: ["text", (g, v) => g.work(v)], dtype: ["text", (g, v) => g.dtype(v)], shape: ["text", (g, v) => g.shape(v)],
  type: ["text", (g, v) => g.type(v)], text: ["text", (g, v) => g.lines[v] ? wholeLine(g.lines[v]) : ""],
  calls: ["text", (g, v) => g.bodies(v).map(b => page.data.graphs[b].name).join(",")],
  rank: ["number", (g, v) => g.shape(v) === "" ? 0 : g.shape(v).split(",").length], elements: ["number", (g, v) => g.elements(v)],
  bytes: ["number", (g, v) => g.size(v)], flops: ["number", (g, v) => g.flops(v)], traffic: ["number", (g, v) => g.bytes(v)],
  intensity: ["number", (g, v) => g.bytes(v) ? g.flops(v) / g.bytes(v) : 0], users: ["number", (g, v) => g.users(v).length],
  operands: ["number", (g, v) => g.operands(v).length], times: ["number", g => g.raw.times], level: ["number", (g, v) => g.level(v)], line: ["number", (g, v) => g.lines[v]],
  fused: ["flag", g => g.raw.fused], entry: ["flag", g => g.raw.entry], root: ["flag", (g, v) => v === g.root],
  scalar: ["flag", (g, v) => /^[^([]+\[\]/.test(g.type(v))], known: ["flag", (g, v) => g.isKnown(v)],
};

class QueryError extends Error {}

function parseQuery(text) {
  const tokens = tokenise(text);
  let at = 0;
  const token = () => tokens[at], advance = () => tokens[tokens[at].kind === "end" ? at : at++];
  const take = (...texts) => { const t = token(); if ((t.kind === "word" || t.kind === "sign") && texts.includes(t.text)) { at++; return true; } return false; };
  const fault = (message, t = token()) => new QueryError(`${message}, at column ${t.at + 1}`);

  function any(depth) {
    if (depth > MAX_DEPTH) throw fault(`more than ${MAX_DEPTH} brackets inside each other`);
    const tests = [all(depth)];
    while (take("or", "|", "||")) tests.push(all(depth));
    return tests.length === 1 ? tests[0] : (g, v) => tests.some(test => test(g, v));
  }
  function all(depth) {
    const tests = [not(depth)];
    while (take("and", "&", "&&")) tests.push(not(depth));
    return tests.length === 1 ? tests[0] : (g, v) => tests.every(test => test(g, v));
  }
  function not(depth) {
    let negate = false, test;
    while (take("not", "!")) negate = !negate;
    if (take("(")) { test = any(depth + 1); if (!take(")")) throw fault("a bracket is not closed"); }
    else test = single();
    return negate ? (g, v) => !test(g, v) : test;
  }
  function single() {
    const t = token();
    if (!["word", "text", "regex"].includes(t.kind)) throw fault(t.kind === "end" ? "the query ends too early" : `expected a column or a name, found ${t.text}`);
    advance();
    if (t.kind === "word" && Object.hasOwn(FUNCTIONS, t.text) && token().text === "(") return called(t);
    const column = t.kind === "word" && Object.hasOwn(COLUMNS, t.text) ? COLUMNS[t.text] : null;
    if (token().kind === "compare") {
      if (!column) throw fault(`there is no column ${t.text}; columns: ${Object.keys(COLUMNS).join(", ")}`, t);
      return compared(t.text, column);
    }
    if (column) {
      if (column[0] !== "flag") throw fault(`${t.text} needs a comparison`);
      return (g, v) => Boolean(column[1](g, v));
    }
    const matches = matcher(t);
    return (g, v) => matches(g.op(v)) || matches(g.names[v]);
  }
  function compared(name, [kind, ask]) {
    const compare = advance();
    let value = advance();
    if (!["word", "text", "regex"].includes(value.kind)) throw fault(`expected a value after ${compare.text}`, value);
    const equal = compare.text !== "!=";
    if (kind === "flag") {
      const wanted = new Map([["true", true], ["yes", true], ["1", true], ["false", false], ["no", false], ["0", false]]).get(value.text.toLowerCase());
      if (wanted === undefined || !["=", "==", "!="].includes(compare.text)) throw fault(`${name} is true or false`, value);
      return (g, v) => Boolean(ask(g, v)) === (wanted === equal);
    }
    if (kind === "number") return numbered(name, ask, compare, value);
    if (compare.text === "~" || compare.text === "!~") {
      const pattern = regexOf(value), found = compare.text === "~";
      return (g, v) => pattern.test(ask(g, v)) === found;
    }
    if (!["=", "==", "!="].includes(compare.text)) throw fault(`${name} is text: compare it with =, !=, ~ or !~`, compare);
    if (name === "shape" && value.kind === "word") {
      let shape = value.text;
      while (take(",")) shape += "," + advance().text;
      value = { kind: "word", text: shape.replace(/^[[\]]+|[[\]]+$/g, "").replaceAll("x", ",") };
    }
    const matches = matcher(value);
    return (g, v) => matches(ask(g, v)) === equal;
  }
  function numbered(name, ask, compare, value) {
    const number = value.kind === "word" && NUMBER.exec(value.text);
    if (!number || isNaN(Number(number[1]))) throw fault(`${name} is a number, and ${value.text} is none; such as 12, 1.5k, 4MB, 2GiB`, value);
    const limit = Number(number[1]) * UNITS[(number[2] || "").toLowerCase()];
    const test = { "=": x => x === limit, "==": x => x === limit, "!=": x => x !== limit, "<": x => x < limit, "<=": x => x <= limit, ">": x => x > limit, ">=": x => x >= limit }[compare.text];
    if (!test) throw fault(`${name} is a number: compare it with = != < <= > >=`, compare);
    return (g, v) => test(ask(g, v));
  }
  function called(name) {
    const words = [];
    take("(");
    while (["word", "text"].includes(token().kind)) { words.push(advance().text.replace(/^["']+|["']+$/g, "")); if (!take(",")) break; }
    if (!take(")")) throw fault(`${name.text}( is not closed`);
    const [least, most] = FUNCTIONS[name.text], badNear = name.text === "near" && words.length > 1 && (!/^\d+$/.test(words[1]) || words.slice(2).some(word => !THROUGH.includes(word)));
    if (words.length < least || words.length > most || badNear)
      throw fault("near(NODE, 2), deps(NODE), uses(NODE), between(A, B), dominators(NODE), dominators(A, B), postdominators(NODE)", name);
    const [graph, picked] = pickedBy(name.text, words);
    return (g, v) => g.number === graph && picked.has(v);
  }
  function matcher(value) {
    if (value.kind === "regex") { const pattern = regexOf(value); return text => pattern.test(text); }
    const wanted = value.kind === "text" ? value.text.slice(1, -1) : value.text.replace(/^%+/, "");
    if (!/[*?]/.test(wanted)) return text => text === wanted;
    const pattern = [...wanted];
    return text => fits([...text], pattern);
  }
  function regexOf(value) {
    try { return new RegExp(value.kind === "word" ? value.text : value.text.slice(1, -1)); }
    catch (error) { throw fault("not a regular expression: " + error.message.replace(/^.*: /, ""), value); }
  }

  const test = any(0);
  if (token().kind !== "end") throw fault(`unexpected ${token().text}; tests are joined by and, or`);
  return test;
}

function tokenise(text) {
  const tokens = [];
  for (let at = 0; at < text.length;) {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    if (!found) throw new QueryError(`this character means nothing here: ${text[at]}, at column ${at + 1}`);
    const kind = Object.keys(found.groups).find(k => found.groups[k] !== undefined);
    if (kind !== "blank") tokens.push({ kind, text: found[0], at });
    at += found[0].length;
  }
  return [...tokens, { kind: "end", text: "", at: text.length }];
}

// Whether letters fit a pattern, in which * is any text and ? any character. Only the last star is ever tried again: a regular expression
// would try all of them in every combination.
function fits(letters, wanted) {
  let at = 0, i = 0, star = -1, tried = 0;
  while (at < letters.length) {
    if (wanted[i] === "*") { star = i++; tried = at; }
    else if (i < wanted.length && (wanted[i] === "?" || wanted[i] === letters[at])) { i++; at++; }
    else if (star < 0) return false;
    else { i = star + 1; at = ++tried; }
  }
  while (wanted[i] === "*") i++;
  return i === wanted.length;
}

// The nodes of near, deps, uses, between, dominators and postdominators: the number of their graph, and the nodes.
function pickedBy(what, words) {
  const place = name => { const found = find(name.replace(/^%/, "")); if (!found) throw new QueryError(`there is no node ${name}`); return found; };
  const [number, node] = place(words[0]), g = graph(number);
  const reach = (start, near) => { const seen = new Set([start]), stack = [start]; while (stack.length) for (const o of near(stack.pop())) if (!seen.has(o)) { seen.add(o); stack.push(o); } return seen; };
  const deps = v => reach(v, u => g.operands(u)), uses = v => reach(v, u => g.users(u));
  if (what === "deps") return [number, deps(node)];
  if (what === "uses") return [number, uses(node)];
  if (what === "near") {
    const seen = new Set([node]);
    let ring = [node];
    for (let i = 0; i < Number(words[1] ?? 2); i++) {
      const beyond = [];
      for (const v of ring) {
        const near = g.op(v) !== "tuple" || v === node || words.includes("tuples", 2) ? g.operands(v) : [];
        for (const o of g.users(v).length <= FAN_OUT || v === node || words.includes("fan-out", 2) ? [...near, ...g.users(v)] : near) if (!seen.has(o)) { seen.add(o); beyond.push(o); }
      }
      ring = beyond;
    }
    return [number, seen];
  }
  if (words.length === 1) return [number, what === "dominators" ? dominators(g, node, deps(node)) : postdominators(g, node, uses(node), g.root >= 0 ? deps(g.root) : new Set())];
  const [other, end] = place(words[1]);
  if (other !== number) throw new QueryError("both nodes of a path are in one graph");
  const [first, second] = node <= end ? [node, end] : [end, node], needed = deps(second), needing = uses(first);
  const on = needed.has(first) ? new Set([...needed].filter(v => needing.has(v))) : new Set();
  return [number, what === "dominators" && on.size ? onEveryPath([...on].sort((a, b) => a - b), v => g.operands(v), second) : on];
}

// As irscope/analysis/dominators.py, in which each step is explained.
function dominators(g, node, needed) {
  const data = new Set();
  for (const v of [...needed].sort((a, b) => a - b)) if (g.op(v) === "parameter" || g.operands(v).some(o => data.has(o))) data.add(v);
  return data.has(node) ? onEveryPath([...data], v => g.operands(v), node) : new Set([node]);
}
function postdominators(g, node, reached, needed) {
  const on = reached.has(g.root) ? [...reached].filter(v => needed.has(v)) : [...reached];
  return onEveryPath(on.sort((a, b) => b - a), v => g.users(v), node);
}
function onEveryPath(order, before, end) {
  const depth = new Map([[-1, 0]]), above = new Map(), found = new Set();
  const common = (a, b) => { while (a !== b) if (depth.get(a) >= depth.get(b)) a = above.get(a); else b = above.get(b); return a; };
  for (const v of order) {
    const known = before(v).filter(o => depth.has(o)), nearest = known.length ? known.reduce(common) : -1;
    above.set(v, nearest); depth.set(v, depth.get(nearest) + 1);
  }
  for (let v = end; v >= 0; v = above.get(v)) found.add(v);
  return found;
}
