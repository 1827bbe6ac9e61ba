// Tables: the numbers of a chart, the runs, their configurations, and commands that repeat them.

const TABLE_ROWS = 200;

function table(head, rows, caption) {
  const header = element('tr', {}, ...head.map((cell) => element('th', { scope: 'col' }, cell)));
  const body = rows.map((row) => element('tr', { class: row.class || '' }, ...row.cells.map((cell, k) => (k === 0
    ? element('th', { scope: 'row' }, cell) : element('td', {}, cell)))));
  return element('table', {}, caption ? element('caption', { class: 'unseen' }, caption) : null, element('thead', {}, header), element('tbody', {}, ...body));
}

/** One row per x and, where a series has several points at one x (generations within a millisecond), one for each. */
function rowsOf(series, low, high) {
  const rows = new Map();
  series.forEach((entry, k) => {
    const counts = new Map();
    entry.x.forEach((x, i) => {
      if (x < low || x > high) return;
      const count = counts.get(x) || 0;
      counts.set(x, count + 1);
      if (!rows.has(x)) rows.set(x, []);
      const same = rows.get(x);
      if (count === same.length) same.push({ x, places: [] });
      same[count].places[k] = i;
    });
  });
  return [...rows.values()].flat().sort((one, two) => one.x - two.x);
}

/** The values of a chart: what its lines are drawn from. */
function dataTable(chart) {
  const { view } = chart.store;
  const series = chart.series.filter((entry) => entry.x.length);
  const [low, high] = view.domain || chart.store.fullDomain();
  const lines = rowsOf(series, low, high);
  const head = [AXES[view.axis].title, ...series.flatMap((entry) => (entry.low ? [`${entry.label}, median`, 'lower quartile', 'upper quartile'] : [entry.label]))];
  const cellsOf = ({ places }, show) => series.flatMap((entry, k) => {
    const values = entry.low ? [entry.y, entry.low, entry.high] : [entry.y];
    return values.map((column) => (places[k] === undefined ? '' : show(column[places[k]])));
  });
  const step = Math.max(1, Math.ceil(lines.length / TABLE_ROWS));
  const shown = lines.filter((_, i) => i % step === 0 || i === lines.length - 1);
  const rows = shown.map((line) => ({ cells: [view.axis === 'time' ? formatTime(line.x) : formatCount(line.x), ...cellsOf(line, formatValue)] }));
  const save = element('button', { type: 'button', key: `csv/${chart.metric.key}`, onclick: () => {
    const quoted = (cell) => `"${String(cell).replaceAll('"', '""')}"`;
    const written = [head, ...lines.map((line) => [line.x, ...cellsOf(line, String)])].map((row) => row.map(quoted).join(','));
    const link = element('a', { href: URL.createObjectURL(new Blob([`${written.join('\n')}\n`], { type: 'text/csv' })), download: `${chart.metric.key}.csv` });
    link.click();
    URL.revokeObjectURL(link.href);
  } }, 'Save as CSV');
  const note = step > 1 ? `one in ${step} of ${formatCount(lines.length)} rows; the CSV has them all ` : '';
  return element('div', {}, element('p', { class: 'table-note' }, note, save), table(head, rows, `${chart.metric.title}, ${AXES[view.axis].title}`));
}

function showRuns(data) {
  const head = ['Run', 'State', 'Score', 'Best score', 'Seed', 'Generation', 'Interactions', 'Training time'];
  const rows = data.runs.map((run) => ({
    class: run.problems.length ? 'broken' : '',
    cells: [
      element('span', { class: 'run-cell' }, element('span', { class: `swatch ${colorClass(run.group)}` }), run.name),
      element('span', { class: `state ${run.state}`, title: run.reason || '' }, STATES[run.state] || run.state),
      Number.isFinite(run.score) && Number.isFinite(run.score_standard_error) ? `${formatValue(run.score)} ± ${formatValue(run.score_standard_error)}` : formatValue(run.score),
      formatValue(run.best_score), run.seed === null ? '–' : String(run.seed), formatCount(run.generation), formatCount(run.interactions), formatTime(run.seconds),
    ],
  }));
  document.getElementById('run-table').replaceChildren(table(head, rows, 'All runs'));
}

function showSettings(data) {
  const many = data.groups.length > 1;
  const differing = data.settings.filter((row) => row.differs);
  const controls = document.getElementById('setting-controls');
  const before = controls.querySelector('input');
  const only = before ? before.checked : many && differing.length > 0;
  const draw = (differencesOnly) => {
    const rows = (differencesOnly ? differing : data.settings).map((row) => ({
      class: row.differs ? 'differs' : '',
      cells: [element('span', { title: row.help }, row.differs ? element('span', { class: 'mark-differs', role: 'img', 'aria-label': 'differs: ' }, '≠ ') : null, row.name), ...row.values],
    }));
    const head = ['Setting', ...data.groups.map((group) => element('span', { class: 'run-cell' }, element('span', { class: `swatch ${colorClass(group.index)}` }), group.label))];
    document.getElementById('setting-table').replaceChildren(rows.length ? table(head, rows, 'Configuration of each group of runs') : element('p', {}, 'No configuration could be read.'));
  };
  controls.replaceChildren();
  if (many) {
    controls.append(element('label', { class: 'check' }, element('input', { type: 'checkbox', key: 'settings/differences', checked: only, onchange: (event) => draw(event.target.checked) }),
      `Only what differs (${differing.length} of ${data.settings.length})`));
  }
  draw(only);
}

function showRepeat(data) {
  const entries = data.runs.filter((run) => run.command).map((run) => element('details', { key: `repeat/${run.path}`, open: data.runs.length === 1 },
    element('summary', { key: `repeat/${run.path}/name` }, run.name), command('The same settings', run.command), command('From its own file, bit for bit', run.repeat)));
  document.getElementById('repeat-list').replaceChildren(...entries);
  document.getElementById('repeat-section').hidden = !entries.length;
}

function command(title, words) {
  const code = element('code', {}, words);
  const button = element('button', { type: 'button', key: `copy/${words}`, 'aria-label': `Copy: ${words}`, onclick: () => copy(code, button) }, 'Copy');
  return element('div', { class: 'command' }, element('span', {}, title), element('pre', {}, code), button);
}

function copy(code, button) {
  const done = () => { button.textContent = 'Copied'; setTimeout(() => { button.textContent = 'Copy'; }, 1500); };
  const byHand = () => {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    if (document.execCommand('copy')) done();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, byHand);
  else byHand();
}

function showVideos(data) {
  const videos = data.videos || [];
  document.getElementById('videos').hidden = !videos.length;
  document.getElementById('video-list').replaceChildren(...videos.map((entry) => element('figure', { class: 'video' },
    element('video', { src: entry.source, controls: true, loop: true, muted: true, playsInline: true, preload: 'metadata', 'aria-label': entry.caption }),
    element('figcaption', {}, entry.caption))));
}
