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
    // Down the lane left of the steps, then along the top of the target's row, so that no text is crossed.
    const lane = a.left - 10, start = (a.top + a.bottom) / 2, row = to.closest('tr').getBoundingClientRect().top - origin.top + 1;
    const same = from.closest('td').cellIndex === to.closest('td').cellIndex, y = (b.top + b.bottom) / 2, x = b.left + 24;
    if (same) {
      add(wires, 'path', { d: `M${a.left} ${start} H${lane} V${y} H${b.left - 6}` }, because, chip.dataset.evidence);
      add(wires, 'polygon', { points: `${b.left},${y} ${b.left - 8},${y - 5} ${b.left - 8},${y + 5}` }, because);
    } else {
      add(wires, 'path', { d: `M${a.left} ${start} H${lane} V${row} H${x} V${b.top - 6}` }, because, chip.dataset.evidence);
      add(wires, 'polygon', { points: `${x},${b.top} ${x - 6},${b.top - 9} ${x + 6},${b.top - 9}` }, because);
    }
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
    // By the address, not by the marks: those follow a moment later.
    const open = [...document.querySelectorAll('.step')].find((step) => step.hash === location.hash);
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
