// SPDX-License-Identifier: MIT
// What the page does beyond its links: draws the arrows, shows one predictor's steps, closes with Escape, walks with the
// arrow keys. Without it everything is still there to read.
'use strict';
(() => {
  const picture = document.querySelector('.picture');
  const box = (element, origin) => {
    const r = element.getBoundingClientRect();
    return { left: r.left - origin.left, right: r.right - origin.left, top: r.top - origin.top, bottom: r.bottom - origin.top };
  };
  const add = (wires, name, attributes, because, title) => {
    const shape = document.createElementNS(wires.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
    if (because) shape.setAttribute('class', 'because');
    if (title) shape.appendChild(document.createElementNS(wires.namespaceURI, 'title')).textContent = title;
    wires.appendChild(shape);
  };
  const drawOne = (wires, origin, chip) => {
    const from = document.getElementById('at-' + chip.dataset.from), to = document.getElementById('at-' + chip.dataset.to);
    if (!from || !to) return;
    const a = box(from, origin), b = box(to, origin), because = chip.classList.contains('because');
    const y = b.top + 14, head = b.left - 2, lane = Math.min(a.left, b.left) - 12, start = (a.top + a.bottom) / 2;
    let path;
    if (b.left > a.right) path = `M${a.left + 18} ${a.bottom} V${Math.max(y, a.bottom)} H${head - 6}`;
    else if (b.right < a.left) {
      path = `M${a.left + 18} ${a.bottom} V${Math.max(y, a.bottom)} H${b.right + 8}`;
      add(wires, 'path', { d: path }, because, chip.dataset.evidence);
      add(wires, 'polygon', { points: `${b.right + 2},${y} ${b.right + 10},${y - 5} ${b.right + 10},${y + 5}` }, because);
      return;
    } else path = `M${a.left} ${start} H${lane} V${y} H${head - 6}`;
    add(wires, 'path', { d: path }, because, chip.dataset.evidence);
    add(wires, 'polygon', { points: `${head},${y} ${head - 8},${y - 5} ${head - 8},${y + 5}` }, because);
  };
  const draw = () => {
    const wires = picture && picture.querySelector('.wires');
    if (!wires) return;
    wires.replaceChildren();
    const origin = picture.getBoundingClientRect();
    for (const chip of document.querySelectorAll('.chip[data-from]')) drawOne(wires, origin, chip);
  };
  const show = () => {
    const cause = /^#cause-(\d+)$/.exec(location.hash), step = /^#step-(\d+)$/.exec(location.hash);
    document.body.classList.toggle('filtered', !!cause);
    for (const link of document.querySelectorAll('.cause'))
      if (cause && link.hash === location.hash) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    for (const s of document.querySelectorAll('.step')) {
      s.classList.toggle('chosen', !!cause && (s.dataset.causes || '').split(' ').includes(cause[1]));
      s.setAttribute('aria-expanded', String(!!step && s.hash === location.hash));
    }
    if (step) document.getElementById('step-' + step[1])?.focus({ preventScroll: true });
  };
  const close = () => {
    const open = document.querySelector('.step[aria-expanded="true"]');
    location.hash = '#_';
    if (open) open.focus({ preventScroll: true });
  };
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && location.hash.length > 1) close();
    const steps = [...document.querySelectorAll('.step')], at = steps.indexOf(document.activeElement);
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move && at >= 0 && steps[at + move]) {
      event.preventDefault();
      steps[at + move].focus();
    }
  });
  document.addEventListener('click', (event) => {
    const link = event.target.closest && event.target.closest('.close, .cause[aria-current]');
    if (link) {
      event.preventDefault();
      close();
    }
  });
  addEventListener('hashchange', show);
  addEventListener('resize', draw);
  addEventListener('beforeprint', draw);
  matchMedia('print').addEventListener('change', draw);
  if (picture && window.ResizeObserver) new ResizeObserver(draw).observe(picture);
  show();
  draw();
})();
