// One chart: axes, bands, lines, and a table of what it shows.

const PALETTE = 8;
let chartNumber = 0;

function svg(tag, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function colorClass(group) {
  return `c${group % PALETTE} d${Math.floor(group / PALETTE) % 3}`;
}

class Chart {
  constructor(metric, store) {
    this.metric = metric;
    this.store = store;
    this.number = chartNumber++;
    this.plot = svg('svg', { class: 'plot', tabindex: '0', role: 'img', 'data-metric': metric.key });
    this.table = element('div', { class: 'scroll table-body' });
    this.details = element('details', { class: 'data-table', ontoggle: () => this.fillTable() },
      element('summary', {}, 'Data table'), this.table);
    this.caption = element('p', {}, metric.note);
    this.empty = element('p', { class: 'empty', hidden: true }, 'Nothing recorded yet.');
    this.root = element('figure', { class: metric.large ? 'chart large' : 'chart' },
      element('figcaption', {}, element('h3', {}, metric.title), this.caption), this.plot, this.empty, this.details);
    this.series = [];
  }

  /** Compute what to show and draw it. */
  update() {
    const { data, view } = this.store;
    this.series = seriesFor(data, view, this.metric.key);
    this.draw();
    if (this.details.open) this.fillTable();
  }

  draw() {
    const { view } = this.store;
    const width = Math.max(240, Math.round(this.root.clientWidth || 600));
    const height = this.metric.large ? Math.round(Math.min(380, Math.max(260, width * 0.42))) : 210;
    const drawn = this.series.filter((series) => series.x.length);
    this.empty.hidden = drawn.length > 0;
    this.plot.classList.toggle('gone', drawn.length === 0);
    if (!drawn.length) return;
    const [xLow, xHigh] = view.domain || this.store.fullDomain();
    const [yLow, yHigh] = this.valueRange(drawn, xLow, xHigh);
    const scale = this.log ? Math.log10 : (value) => value;
    this.caption.textContent = this.metric.note + (this.log ? '; logarithmic scale' : '');
    const yTicks = (this.log ? logTicks : ticks)(yLow, yHigh, Math.max(3, Math.round(height / 55)));
    const yLabels = yTicks.map((value) => (this.log ? formatValue(value) : axisLabel(value, yTicks)));
    const left = 12 + 6.6 * Math.max(...yLabels.map((label) => label.length));
    this.frame = { left, right: width - 12, top: 10, bottom: height - 34 };
    const { right, top, bottom } = this.frame;
    this.toX = (value) => left + ((value - xLow) / (xHigh - xLow || 1)) * (right - left);
    const [from, to] = [scale(yLow), scale(yHigh)];
    this.toY = (value) => bottom - ((scale(value) - from) / (to - from || 1)) * (bottom - top);
    this.fromX = (pixel) => xLow + ((pixel - left) / (right - left)) * (xHigh - xLow);
    this.plot.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.plot.setAttribute('height', height);
    this.plot.setAttribute('aria-label', this.summary(drawn));
    const clip = `clip${this.number}`;
    this.overlay = svg('g', { class: 'overlay' });
    this.plot.replaceChildren(
      svg('defs', {}, svg('clipPath', { id: clip }, svg('rect', { x: left - 4, y: 0, width: right - left + 8, height: bottom + 4 }))),
      this.axes(yTicks, yLabels, xLow, xHigh, width, height),
      svg('g', { 'clip-path': `url(#${clip})` }, ...this.references(), ...drawn.flatMap((series) => this.shapes(series, xLow, xHigh))),
      this.overlay,
    );
  }

  axes(yTicks, yLabels, xLow, xHigh, width, height) {
    const { left, right, top, bottom } = this.frame;
    const group = svg('g', { class: 'axes', 'aria-hidden': 'true' });
    yTicks.forEach((value, k) => {
      const y = this.toY(value);
      group.append(svg('line', { x1: left, x2: right, y1: y, y2: y, class: value === 0 ? 'grid zero' : 'grid' }));
      group.append(text(left - 7, y + 4, yLabels[k], 'end'));
    });
    const axis = AXES[this.store.view.axis];
    const xTicks = axis.ticks(xLow, xHigh, Math.max(2, Math.round((right - left) / 90)));
    xTicks.forEach((value) => {
      const x = this.toX(value);
      group.append(svg('line', { x1: x, x2: x, y1: bottom, y2: bottom + 4, class: 'tick' }));
      group.append(text(x, bottom + 17, axis.tick(value, xTicks), x > right - 16 ? 'end' : 'middle'));
    });
    group.append(svg('line', { x1: left, x2: right, y1: bottom, y2: bottom, class: 'base' }));
    group.append(text(right, height - 3, axis.label, 'end', 'axis-title'));
    return group;
  }

  shapes(series, xLow, xHigh) {
    const from = Math.max(0, lowerBound(series.x, xLow) - 1);
    const to = Math.min(series.x.length, lowerBound(series.x, xHigh) + 2);
    const color = colorClass(series.group);
    const shapes = [];
    if (series.low) {
      const upper = thin(series.x, series.high, from, to, this.toX).map((i) => this.point(series.x[i], series.high[i]));
      const lower = thin(series.x, series.low, from, to, this.toX).map((i) => this.point(series.x[i], series.low[i]));
      shapes.push(svg('path', { class: `band ${color}`, d: `M${upper.join('L')}L${lower.reverse().join('L')}Z` }));
    }
    const kept = thin(series.x, series.y, from, to, this.toX);
    const line = kept.map((i) => this.point(series.x[i], series.y[i]));
    const thinner = this.store.view.mode === 'single' && this.series.length > 6 ? ' thin' : '';
    if (line.length > 1) shapes.push(svg('path', { class: `line ${color}${thinner}`, d: `M${line.join('L')}` }));
    if (this.metric.large && kept.length <= 60 && this.series.length <= 8) {
      for (const i of kept) shapes.push(svg('circle', { class: `dot ${color}`, cx: this.toX(series.x[i]), cy: this.toY(series.y[i]), r: kept.length > 30 ? 1.8 : 2.6 }));
    }
    return shapes;
  }

  references() {
    const lines = [];
    for (const [value, group] of this.referenceValues()) {
      const y = this.toY(value);
      lines.push(svg('line', { class: `reference ${colorClass(group)}`, x1: this.frame.left, x2: this.frame.right, y1: y, y2: y, 'data-value': value }));
    }
    return lines;
  }

  /** Each distinct max_speed with the first group that has it. */
  referenceValues() {
    const found = new Map();
    if (!this.metric.reference) return found;
    for (const series of this.series) {
      for (const run of series.runs) {
        const value = run[this.metric.reference];
        if (Number.isFinite(value) && !found.has(value)) found.set(value, series.group);
      }
    }
    return found;
  }

  point(x, y) {
    return `${this.toX(x).toFixed(2)},${this.toY(y).toFixed(2)}`;
  }

  /** The lowest and highest value in sight, with a little room. */
  valueRange(drawn, xLow, xHigh) {
    let low = Infinity;
    let high = -Infinity;
    for (const series of drawn) {
      for (let i = Math.max(0, lowerBound(series.x, xLow) - 1); i < series.x.length && (i === 0 || series.x[i - 1] <= xHigh); i += 1) {
        low = Math.min(low, series.low ? series.low[i] : series.y[i]);
        high = Math.max(high, series.high ? series.high[i] : series.y[i]);
      }
    }
    if (!Number.isFinite(low)) [low, high] = [0, 1];
    for (const value of this.referenceValues().keys()) {
      high = Math.max(high, value);
      low = Math.min(low, value);
    }
    // Runs of very different size, as in a search for max_speed, would all but one lie on the axis.
    this.log = Boolean(this.metric.log) && low > 0 && high / low > 50;
    if (this.log) return [low / 1.15, high * 1.15];
    if (this.metric.zero) {
      low = Math.min(0, low);
      high = Math.max(0, high);
    }
    if (low === high) {
      low -= Math.abs(low) * 0.1 || 0.5;
      high += Math.abs(high) * 0.1 || 0.5;
    }
    const room = (high - low) * 0.05;
    return [low === 0 ? 0 : low - room, high === 0 ? 0 : high + room];
  }

  summary(drawn) {
    const ends = drawn.slice(0, 6).map((series) => `${series.label}: from ${formatValue(series.y[0])} to ${formatValue(series.y[series.y.length - 1])}`);
    const more = drawn.length > 6 ? `; and ${drawn.length - 6} more` : '';
    return `${this.metric.title} over ${AXES[this.store.view.axis].title.toLowerCase()}. ${ends.join('; ')}${more}. The data table below has the numbers.`;
  }

  fillTable() {
    if (!this.details.open) return;
    this.table.replaceChildren(dataTable(this));
  }
}

function text(x, y, content, anchor, extra) {
  const made = svg('text', { x, y, 'text-anchor': anchor, class: extra || 'tick-label' });
  made.textContent = content;
  return made;
}
