// SPDX-License-Identifier: MIT
// What the page does beyond its links: draws the arrows, shows one suspect's steps, follows a value to where it came from,
// closes with Escape, walks with the arrow keys. Without it everything is still there to read.
'use strict';
(() => {
  const picture = document.querySelector('.picture'), others = document.getElementById('others'), chain = document.getElementById('chain');
  const texts = document.getElementById('texts'); // panels of many steps, not parsed yet
  const DRAWN = 200; // orders; of more, only those of the cause
  const box = (element, origin) => {
    const r = element.getBoundingClientRect();
    return { left: r.left - origin.left, right: r.right - origin.left, top: r.top - origin.top, bottom: r.bottom - origin.top };
  };
  const add = (wires, name, attributes, kind, title) => {
    const shape = document.createElementNS(wires.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
    if (kind) shape.setAttribute('class', kind);
    if (title) shape.appendChild(document.createElementNS(wires.namespaceURI, 'title')).textContent = title;
    wires.appendChild(shape);
  };
  // Down the lane left of the steps, then along the top of the target's row, so that no text is crossed.
  const wire = (wires, origin, from, to, kind, title, shift) => {
    if (!from || !to || !from.offsetParent || !to.offsetParent) return;
    const a = box(from, origin), b = box(to, origin);
    const lane = a.left - 10 - shift, start = (a.top + a.bottom) / 2;
    const row = to.closest('.row').getBoundingClientRect().top - origin.top + 2 + shift;
    if (from.closest('.cell') === to.closest('.cell') || Math.abs(a.left - b.left) < 40) {
      const y = (b.top + b.bottom) / 2;
      add(wires, 'path', { d: `M${a.left} ${start} H${lane} V${y} H${b.left - 6}` }, kind, title);
      add(wires, 'polygon', { points: `${b.left},${y} ${b.left - 8},${y - 5} ${b.left - 8},${y + 5}` }, kind);
    } else {
      const x = b.left + 24 + 3 * shift;
      add(wires, 'path', { d: `M${a.left} ${start} H${lane} V${row} H${x} V${b.top - 6}` }, kind, title);
      add(wires, 'polygon', { points: `${x},${b.top} ${x - 6},${b.top - 9} ${x + 6},${b.top - 9}` }, kind);
    }
  };
  const at = (number) => document.getElementById('at-' + number);
  let traced = []; // pairs of step numbers: the writer, and the step that read what it wrote
  const draw = () => {
    const wires = picture && picture.querySelector('.wires');
    if (!wires) return;
    wires.replaceChildren();
    const origin = picture.getBoundingClientRect();
    let chips = [...picture.querySelectorAll('.chip[data-from]')];
    if (chips.length > DRAWN) chips = chips.filter((c) => c.classList.contains('because'));
    for (const c of chips)
      wire(wires, origin, at(c.dataset.from), at(c.dataset.to), c.classList.contains('because') ? 'because' : '', c.dataset.evidence, 0);
    for (const [from, to] of traced) wire(wires, origin, at(from), at(to), 'from', 'wrote what this step read', 5);
  };
  // ---- The value chain ----
  const words = (value) => [...value.childNodes].filter((n) => !(n.classList && n.classList.contains('tip'))).map((n) => n.textContent).join('').trim();
  const lineOf = (step) => {
    const place = step.querySelector('.place').title, code = step.querySelector('code').textContent;
    return { who: step.querySelector('.who').textContent.trim(), place, code };
  };
  const element = (name, text, attributes) => {
    const e = document.createElement(name);
    e.textContent = text || '';
    for (const [key, value] of Object.entries(attributes || {})) e.setAttribute(key, value);
    return e;
  };
  const valuesOf = (number) => [...picture.querySelectorAll(`.value[data-step="${number}"]`)];
  // From a value to its writer, and on from what that step had read. A step comes once.
  const follow = (value) => {
    const links = [], seen = new Set();
    const visit = (v, into) => {
      const writer = v.dataset.writer;
      links.push({ value: v, step: v.dataset.step, into });
      if (!writer || seen.has(writer)) return;
      seen.add(writer);
      traced.push([writer, v.dataset.step]);
      links.push({ step: writer, writer: true });
      for (const read of valuesOf(writer)) if (read.dataset.writer && read !== v) visit(read, writer);
    };
    visit(value, null);
    return links;
  };
  const trace = (value) => {
    traced = [];
    const links = follow(value), list = document.createElement('ol');
    for (const { value: v, step, writer } of links) {
      const target = at(step), { who, place, code } = lineOf(target), item = element('li');
      target.classList.add('traced-step');
      item.append(element('a', `${who}, ${place}`, { href: '#at-' + step }), ' ', element('code', code), writer ? '  wrote it' : '  ' + words(v));
      list.append(item);
    }
    const last = links[links.length - 1];
    chain.replaceChildren(element('a', '✕', { class: 'close', href: '#_', 'aria-label': 'close' }), element('h3', 'Where this value came from'), list,
      element('p', last.writer ? 'Here the chain ends: this step made the value, or what it used was not recorded.'
        : links.length === 1 && /wrote/.test(words(value)) ? 'This step wrote the value itself.'
        : 'No recorded step wrote it before: it is older than the recording, or the write was not watched.', { class: 'soft' }));
    chain.hidden = false;
    document.body.classList.add('traced');
  };
  const untrace = () => {
    if (chain) chain.hidden = true;
    traced = [];
    document.body.classList.remove('traced');
    for (const s of document.querySelectorAll('.traced-step')) s.classList.remove('traced-step');
  };
  // ---- The address says what is open ----
  const parse = (id) => {
    const start = texts.textContent.indexOf(`<section class="panel" id="${id}"`);
    const end = '\n</section>\n', holder = document.createElement('template');
    holder.innerHTML = start < 0 ? '' : texts.textContent.slice(start, texts.textContent.indexOf(end, start) + end.length);
    return holder.content.firstElementChild;
  };
  const take = (id) => {
    const panel = texts && !document.getElementById(id) && parse(id);
    if (!panel) return;
    const side = panel.querySelector('[data-source]'), source = side && parse(side.dataset.source)?.querySelector('pre');
    if (source) side.append(source);
    texts.before(panel);
    location.replace(location.hash); // :target is looked up again
  };
  // A link leads to its row. Rows that come into view get their true height, so the way is gone more than once.
  const lead = (target, times) => {
    const r = target.getBoundingClientRect();
    if (!times || (r.top > 80 && r.bottom < innerHeight)) return;
    target.scrollIntoView({ block: 'center' });
    requestAnimationFrame(() => lead(target, times - 1));
  };
  const show = () => {
    const cause = /^#cause-(\d+)$/.exec(location.hash), step = /^#step-(\d+)$/.exec(location.hash);
    const value = /^#value-\d+-\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
    const target = document.getElementById(location.hash.slice(1).replace(/^step-/, 'at-'));
    if (target && target.closest('.folded') && others) others.checked = true;
    document.body.classList.toggle('filtered', !!cause);
    for (const link of document.querySelectorAll('.cause, .value[aria-current]'))
      if (cause && link.hash === location.hash) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    for (const s of document.querySelectorAll('.step')) {
      if (cause) s.classList.toggle('chosen', (s.dataset.causes || '').split(' ').includes(cause[1]));
      if (s.hasAttribute('aria-expanded') || (step && s.hash === location.hash))
        s.setAttribute('aria-expanded', String(!!step && s.hash === location.hash));
    }
    untrace();
    if (value) {
      value.setAttribute('aria-current', 'true');
      trace(value);
    }
    if (step) {
      take('step-' + step[1]);
      document.getElementById('step-' + step[1])?.focus({ preventScroll: true });
    }
    draw();
    if (target && target.closest('.row')) lead(target, 4);
  };
  const close = () => {
    // By the address, not by the marks: those follow a moment later.
    const open = [...document.querySelectorAll('.step, .value')].find((e) => e.hash === location.hash), top = scrollY;
    location.hash = '#_';
    if (open) open.focus({ preventScroll: true });
    scrollTo(scrollX, top);
  };
  const writerOf = (focused) => {
    const values = focused.classList.contains('value') ? [focused] : focused.classList.contains('step') ? valuesOf(focused.id.slice(3)) : [];
    return at((values.find((v) => v.dataset.writer) || { dataset: {} }).dataset.writer);
  };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === 'Escape' && location.hash.length > 1) close();
    if (event.key === 'o' && others && !others.hidden) others.click();
    const steps = [...document.querySelectorAll('.step')].filter((s) => s.offsetParent), now = steps.indexOf(document.activeElement);
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const to = move && now >= 0 ? steps[now + move] : event.key === 'ArrowLeft' ? writerOf(document.activeElement) : null;
    if (to) {
      event.preventDefault();
      to.focus();
    }
  });
  document.addEventListener('click', (event) => {
    const link = event.target.closest && event.target.closest('.close, .cause[aria-current], .value[aria-current]');
    if (link) {
      event.preventDefault();
      close();
    }
  });
  if (others) others.addEventListener('change', draw);
  addEventListener('hashchange', show);
  addEventListener('resize', draw);
  addEventListener('beforeprint', () => {
    if (texts && texts.isConnected) texts.outerHTML = texts.textContent;
    draw();
  });
  matchMedia('print').addEventListener('change', draw);
  if (picture && window.ResizeObserver) new ResizeObserver(draw).observe(picture);
  show();
})();
