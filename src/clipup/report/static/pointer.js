// Reading values and zooming, by mouse, touch and keyboard. The cursor stands at one place in all charts.

class Pointer {
  constructor(store, charts) {
    this.store = store;
    this.charts = charts;
    this.tooltip = document.getElementById('tooltip');
    this.announcer = document.getElementById('announcer');
    for (const chart of charts) this.listen(chart);
  }

  listen(chart) {
    const plot = chart.plot;
    let start = null;
    plot.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || !chart.frame) return;
      start = this.place(chart, event);
      if (event.pointerType !== 'touch') plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener('pointermove', (event) => {
      if (!chart.frame) return;
      const pixel = this.place(chart, event);
      if (start !== null && Math.abs(pixel - start) > 4) this.select(chart, start, pixel);
      else this.moveTo(chart, chart.fromX(pixel));
    });
    plot.addEventListener('pointerup', (event) => {
      if (start === null) return;
      const pixel = this.place(chart, event);
      if (Math.abs(pixel - start) > 8) this.zoom(chart.fromX(Math.min(start, pixel)), chart.fromX(Math.max(start, pixel)));
      start = null;
    });
    plot.addEventListener('pointercancel', () => { start = null; this.leave(); });
    plot.addEventListener('pointerleave', () => { if (start === null) this.leave(); });
    plot.addEventListener('blur', () => this.leave());
    plot.addEventListener('dblclick', () => { this.leave(); this.store.setDomain(null); });
    plot.addEventListener('wheel', (event) => {
      if (!event.ctrlKey || !chart.frame) return;
      event.preventDefault();
      this.scale(chart.fromX(this.place(chart, event)), event.deltaY > 0 ? 1.25 : 0.8);
    }, { passive: false });
    plot.addEventListener('keydown', (event) => this.key(chart, event));
  }

  place(chart, event) {
    const box = chart.plot.getBoundingClientRect();
    const width = Number(chart.plot.getAttribute('viewBox').split(' ')[2]);
    const pixel = ((event.clientX - box.left) / box.width) * width;
    return Math.min(Math.max(pixel, chart.frame.left), chart.frame.right);
  }

  key(chart, event) {
    const [low, high] = this.store.view.domain || this.store.fullDomain();
    const step = (high - low) * (event.shiftKey ? 0.1 : 0.01);
    const at = this.at === undefined || this.at === null ? (low + high) / 2 : this.at;
    const moves = { ArrowLeft: at - step, ArrowRight: at + step, Home: low, End: high };
    if (event.key in moves) this.moveTo(chart, Math.min(Math.max(moves[event.key], low), high), true);
    else if (event.key === '+' || event.key === '=') this.scale(at, 0.5);
    else if (event.key === '-') this.scale(at, 2);
    else if (event.key === 'Escape' || event.key === '0') this.store.setDomain(null);
    else return;
    event.preventDefault();
  }

  scale(about, factor) {
    const [low, high] = this.store.view.domain || this.store.fullDomain();
    this.zoom(about - (about - low) * factor, about + (high - about) * factor);
  }

  zoom(low, high) {
    const [first, last] = this.store.fullDomain();
    const from = Math.max(low, first);
    const to = Math.min(high, last);
    if (to - from < (last - first) * 1e-4) return;
    this.store.setDomain(from <= first && to >= last ? null : [from, to]);
  }

  select(chart, start, pixel) {
    this.leave();
    const { top, bottom } = chart.frame;
    chart.overlay.append(svg('rect', { class: 'selection', x: Math.min(start, pixel), y: top, width: Math.abs(pixel - start), height: bottom - top }));
  }

  /** Put the cursor at x in every chart, the tooltip at this one. */
  moveTo(active, x, aloud) {
    this.leave();
    this.at = x;
    this.active = active;
    for (const chart of this.charts) {
      if (!chart.frame || !chart.overlay) continue;
      const pixel = chart.toX(x);
      chart.overlay.append(svg('line', { class: 'cursor', x1: pixel, x2: pixel, y1: chart.frame.top, y2: chart.frame.bottom }));
      for (const reading of this.readings(chart, x)) {
        chart.overlay.append(svg('circle', { class: `cursor-dot ${colorClass(reading.series.group)}`, cx: chart.toX(reading.x), cy: chart.toY(reading.y), r: 3.5 }));
      }
    }
    this.showTooltip(active, x);
    if (aloud) this.announcer.textContent = this.tooltip.innerText.replaceAll('\n', ' ') || `${AXES[this.store.view.axis].format(x)}: no value here`;
  }

  /** For each series the point nearest to x: for single runs a value of the records, never one in between. */
  readings(chart, x) {
    const found = [];
    for (const series of chart.series) {
      const { x: xs } = series;
      if (!xs.length) continue;
      let i = Math.min(lowerBound(xs, x), xs.length - 1);
      if (i > 0 && x - xs[i - 1] < xs[i] - x) i -= 1;
      const gap = xs.length > 1 ? (xs[xs.length - 1] - xs[0]) / (xs.length - 1) : Infinity;
      if (Math.abs(xs[i] - x) > 2 * gap) continue;
      found.push({ series, x: xs[i], y: series.y[i], low: series.low && series.low[i], high: series.high && series.high[i] });
    }
    return found;
  }

  showTooltip(chart, x) {
    const readings = this.readings(chart, x).sort((one, two) => two.y - one.y);
    if (!readings.length) return;
    const nearest = readings.reduce((one, two) => (Math.abs(two.x - x) < Math.abs(one.x - x) ? two : one));
    const rows = readings.slice(0, 10).map((reading) => element('div', { class: 'reading' },
      element('span', { class: `swatch ${colorClass(reading.series.group)}` }),
      element('span', { class: 'reading-label' }, reading.series.label),
      element('b', {}, formatValue(reading.y)),
      reading.low === null || reading.low === undefined ? null : element('small', {}, `${formatValue(reading.low)} to ${formatValue(reading.high)}`)));
    if (readings.length > 10) rows.push(element('div', { class: 'more' }, `and ${readings.length - 10} more`));
    this.tooltip.replaceChildren(element('div', { class: 'reading-head' }, AXES[this.store.view.axis].format(nearest.x)), ...rows);
    this.tooltip.hidden = false;
    const box = chart.plot.getBoundingClientRect();
    const width = Number(chart.plot.getAttribute('viewBox').split(' ')[2]);
    const at = box.left + (chart.toX(x) / width) * box.width;
    const size = this.tooltip.getBoundingClientRect();
    const left = at + 14 + size.width > document.documentElement.clientWidth ? at - 14 - size.width : at + 14;
    this.tooltip.style.left = `${Math.max(4, left) + window.scrollX}px`;
    this.tooltip.style.top = `${box.top + 12 + window.scrollY}px`;
  }

  /** Put the cursor back into charts that were drawn anew, if its place is still in sight. */
  again() {
    const { active, at } = this;
    const [low, high] = this.store.view.domain || this.store.fullDomain();
    if (at === undefined || at === null || at < low || at > high) this.leave();
    else this.moveTo(active, at);
  }

  leave() {
    this.at = null;
    this.tooltip.hidden = true;
    this.tooltip.replaceChildren(); // a hidden tooltip still has a text to be read aloud
    for (const chart of this.charts) if (chart.overlay) chart.overlay.replaceChildren();
  }
}
