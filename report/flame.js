'use strict';
// The tree of call paths. DATA.nodes: [parent, function, weight, calls, low, high, wait, before], parents first.
const nodes = DATA.nodes.map((n, i) => ({ id: i, parent: n[0], f: n[1], self: n[2], calls: n[3], lo: n[4], hi: n[5], wait: n[6], before: n[7], kids: [], sum: 0, sumBefore: 0, sumWait: 0 }));
for (let i = nodes.length - 1; i > 0; i--) {
  const n = nodes[i], p = nodes[n.parent];
  n.sum += n.self; n.sumBefore += n.before; n.sumWait += n.wait;
  p.sum += n.sum; p.sumBefore += n.sumBefore; p.sumWait += n.sumWait;
  p.kids.push(n);
}
nodes.forEach(n => n.kids.sort((a, b) => DATA.names[a.f] < DATA.names[b.f] ? -1 : 1));
const root = nodes[0], flame = document.getElementById('flame'), detail = document.getElementById('detail'), search = document.getElementById('search');
let top_ = root, mode = 'graph';
const name = n => n === root ? 'all' : DATA.names[n.f];
const size = v => {
  if (DATA.unit !== 'ns') return v >= 1e6 ? (v / 1e6).toFixed(2) + ' M' : v >= 1e3 ? (v / 1e3).toFixed(2) + ' k' : String(Math.round(v));
  return v >= 1e9 ? (v / 1e9).toFixed(2) + ' s' : v >= 1e6 ? (v / 1e6).toFixed(2) + ' ms' : v >= 1e3 ? (v / 1e3).toFixed(2) + ' us' : Math.round(v) + ' ns';
};
const percent = (a, b) => b > 0 ? (100 * a / b).toFixed(2) + ' %' : '-';
function colour(n) {
  if (DATA.diff) {
    const was = n.sumBefore / (root.sumBefore || 1), is = n.sum / (root.sumBefore || 1), d = Math.max(-1, Math.min(1, (is - was) / (was || is || 1) * 5));
    if (Math.abs(d) < 0.01) return '#d9d5d1';
    return d > 0 ? `hsl(8 80% ${88 - 28 * d}%)` : `hsl(212 75% ${88 + 28 * d}%)`;
  }
  if (n.sumWait > n.sum / 2) return '#9dc3e6';
  let h = 0;
  for (const c of name(n)) h = (h * 31 + c.charCodeAt(0)) >>> 0;
  return `hsl(${22 + h % 34} 85% ${66 + h % 12}%)`;
}
function describe(n) {
  const unit = DATA.unit === 'ns' ? '' : ' instructions';
  let text = `${name(n)}: ${size(n.sum)}${unit}, ${percent(n.sum, root.sum)} of all, itself ${size(n.self)}${unit}; ${n.calls} calls`;
  if (n !== root && DATA.unit === 'ns') text += `\nof itself between ${size(n.lo)} and ${size(n.hi)} is certain`;
  if (n.sumWait) text += `; waiting ${DATA.waitUnit === 'ns' ? (n.sumWait / 1e6).toFixed(3) + ' ms' : n.sumWait}`;
  if (DATA.diff) text += `\nbefore: ${size(n.sumBefore)}; now ${n.sum >= n.sumBefore ? '+' : '-'}${size(Math.abs(n.sum - n.sumBefore))}`;
  return text;
}
function place(n, x, width, depth, rows) {
  if (width < 1) return;
  const b = document.createElement('button'), q = search.value.trim().toLowerCase();
  b.className = 'f' + (q && name(n).toLowerCase().includes(q) ? ' match' : '');
  b.style.left = x + 'px'; b.style.width = width + 'px'; b.style.top = depth * 20 + 'px'; b.style.background = colour(n);
  b.textContent = width > 24 ? name(n) : ''; b.title = describe(n); b.setAttribute('aria-label', name(n));
  b.onclick = () => { top_ = n; draw(); detail.textContent = describe(n); };
  b.onmouseenter = b.onfocus = () => { detail.textContent = describe(n); };
  rows.max = Math.max(rows.max, depth); flame.append(b);
  let at = x;
  const whole = Math.max(n.sum, 1e-9);
  for (const k of n.kids) { const w = width * k.sum / whole; place(k, at, w, depth + 1, rows); at += w; }
}
// The chart: the longest calls of a thread, each where it can have been.
function chart() {
  const t = DATA.chart, rows = { max: 0 };
  if (!t.length) { detail.textContent = 'no call of this recording has a known time'; return rows; }
  const lo = Math.min(...t.map(c => c[1])), hi = Math.max(...t.map(c => c[2])), scale = flame.clientWidth / Math.max(hi - lo, 1), q = search.value.trim().toLowerCase();
  const tids = [...new Set(t.map(c => c[4]))];
  let base = 0;
  for (const tid of tids) {
    let deepest = 0;
    for (const c of t) {
      if (c[4] !== tid) continue;
      const b = document.createElement('button');
      b.className = 'f' + (q && DATA.names[c[0]].toLowerCase().includes(q) ? ' match' : '');
      b.style.left = (c[1] - lo) * scale + 'px'; b.style.width = Math.max(1, (c[2] - c[1]) * scale) + 'px'; b.style.top = (base + c[3]) * 20 + 'px';
      b.style.background = c[5] > (c[2] - c[1]) / 2 ? '#9dc3e6' : '#f3c078'; b.textContent = DATA.names[c[0]];
      b.title = `${DATA.names[c[0]]}, thread ${tid}: at least ${size(c[6])}, at most ${size(c[7])}` + (c[5] ? `, waiting ${size(c[5])}` : '');
      b.onmouseenter = b.onfocus = () => { detail.textContent = b.title; };
      deepest = Math.max(deepest, c[3]); flame.append(b);
    }
    base += deepest + 2;
  }
  rows.max = base;
  return rows;
}
function draw() {
  let rows = { max: 0 };
  flame.replaceChildren();
  if (mode === 'chart') rows = chart(); else place(top_, 0, flame.clientWidth, 0, rows);
  flame.style.height = (rows.max + 1) * 20 + 'px';
  const q = search.value.trim().toLowerCase();
  if (q) {
    let sum = 0;
    const visit = n => { if (n !== root && name(n).toLowerCase().includes(q)) sum += n.sum; else n.kids.forEach(visit); };
    visit(root);
    document.getElementById('found').textContent = percent(sum, root.sum) + ' in what matches';
  } else document.getElementById('found').textContent = '';
}
function press(id, on) { document.getElementById(id).setAttribute('aria-pressed', String(on)); }
for (const m of ['graph', 'chart']) document.getElementById(m).onclick = () => { mode = m; press('graph', m === 'graph'); press('chart', m === 'chart'); draw(); };
document.getElementById('reset').onclick = () => { top_ = root; search.value = ''; draw(); };
search.oninput = draw;
window.onresize = draw;
draw();
