// One run as a line; several runs of one configuration as a median with the band between the quartiles.

const GRID = 300;
const lineCache = new Map();

/** The points of a run for a metric over an axis, gaps left out. */
function lineOf(run, metric, axis) {
  const key = `${run.index}/${metric}/${axis}`;
  const cached = lineCache.get(key);
  if (cached && cached.version === run.version) return cached;
  const xs = run.x[axis] || [];
  const ys = run.y[metric] || [];
  const line = { version: run.version, x: [], y: [] };
  for (let i = 0; i < ys.length; i += 1) {
    if (Number.isFinite(ys[i]) && Number.isFinite(xs[i])) {
      line.x.push(xs[i]);
      line.y.push(ys[i]);
    }
  }
  lineCache.set(key, line);
  return line;
}

/** The quantile of sorted values, between neighbours in proportion. */
function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

/** The first index whose x is not below `x`. */
function lowerBound(xs, x) {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The value of a line at x, straight between its points; NaN outside of them. */
function valueAt(line, x) {
  const { x: xs, y: ys } = line;
  if (!xs.length || x < xs[0] || x > xs[xs.length - 1]) return NaN;
  const i = lowerBound(xs, x);
  if (xs[i] === x) return ys[i];
  return ys[i - 1] + ((ys[i] - ys[i - 1]) * (x - xs[i - 1])) / (xs[i] - xs[i - 1]);
}

/** Median and quartiles over lines, where at least half of them (and no fewer than one) have a value. */
function bandOf(lines, axis) {
  const present = lines.filter((line) => line.x.length);
  if (present.length <= 1) {
    const only = present[0] || { x: [], y: [] };
    return { x: only.x, y: only.y, low: null, high: null, count: present.length };
  }
  const band = { x: [], y: [], low: [], high: [], count: present.length };
  for (const x of gridOf(present, axis)) {
    const values = present.map((line) => valueAt(line, x)).filter(Number.isFinite).sort((a, b) => a - b);
    if (values.length * 2 < present.length) continue;
    band.x.push(x);
    band.y.push(quantile(values, 0.5));
    band.low.push(quantile(values, 0.25));
    band.high.push(quantile(values, 0.75));
  }
  return band;
}

/** Generations are the same in every run, so their own values are used; other axes need a common grid. */
function gridOf(lines, axis) {
  if (axis === 'generations') {
    return [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  }
  const low = Math.min(...lines.map((line) => line.x[0]));
  const high = Math.max(...lines.map((line) => line.x[line.x.length - 1]));
  const ends = lines.flatMap((line) => [line.x[0], line.x[line.x.length - 1]]);
  const even = Array.from({ length: GRID + 1 }, (_, k) => low + ((high - low) * k) / GRID);
  return [...new Set([...even, ...ends])].sort((a, b) => a - b);
}

/** What a chart draws: one series per group, or one per run. */
function seriesFor(data, view, metric) {
  if (view.mode === 'single') {
    return data.runs.filter((run) => !run.hidden && !run.apart).map((run) => {
      const line = lineOf(run, metric, view.axis);
      return { label: run.name, group: run.group, x: line.x, y: line.y, low: null, high: null, count: 1, runs: [run] };
    });
  }
  return data.groups.map((group) => {
    const runs = group.runs.map((index) => data.runs[index]).filter((run) => !run.hidden && !run.apart);
    const band = bandOf(runs.map((run) => lineOf(run, metric, view.axis)), view.axis);
    return { label: group.label, group: group.index, runs, ...band };
  }).filter((series) => series.runs.length);
}

/** Keep what the eye can see: per pixel column the first, lowest, highest and last point. */
function thin(x, y, from, to, toPixel) {
  if (to - from < 1500) {
    const all = [];
    for (let i = from; i < to; i += 1) all.push(i);
    return all;
  }
  const kept = [];
  let i = from;
  while (i < to) {
    const pixel = Math.floor(toPixel(x[i]));
    const first = i;
    let low = i;
    let high = i;
    while (i < to && Math.floor(toPixel(x[i])) === pixel) {
      if (y[i] < y[low]) low = i;
      if (y[i] > y[high]) high = i;
      i += 1;
    }
    kept.push(...new Set([first, Math.min(low, high), Math.max(low, high), i - 1]));
  }
  return kept;
}
