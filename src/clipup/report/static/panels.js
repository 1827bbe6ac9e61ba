// Everything around the charts: heading, key numbers, findings, controls, list of runs.

const STATES = { running: 'running', finished: 'finished', interrupted: 'interrupted', failed: 'failed', killed: 'killed', unknown: 'unknown' };

function showHeading(data) {
  document.getElementById('title').textContent = data.title;
  document.title = `${data.title} · clipup`;
  const groups = data.groups.length > 1 ? ` in ${data.groups.length} configurations` : '';
  const count = data.runs.length === 1 ? data.runs[0].name : `${data.runs.length} runs${groups}`;
  document.getElementById('subtitle').textContent = data.live ? count : `${count} · ${data.made}`;
  document.getElementById('footer').textContent = `Made by clipup ${data.version}. This file contains everything it shows and never uses the network.`;
  if (data.live) document.getElementById('footer').textContent = `clipup ${data.version}, live from this machine.`;
  document.getElementById('notes').replaceChildren(...data.notes.map((note) => element('p', { class: 'notice' }, note)));
}

function showTiles(data) {
  const tile = (name, value, detail) => element('div', { class: 'tile' }, element('span', { class: 'tile-name' }, name),
    element('strong', {}, value), element('span', { class: 'tile-detail' }, detail || ''));
  const known = data.runs.filter((run) => Number.isFinite(run.score));
  const tiles = [];
  if (data.runs.length === 1) {
    const run = data.runs[0];
    tiles.push(tile('Score', formatValue(run.score), Number.isFinite(run.score_standard_error) ? `± ${formatValue(run.score_standard_error)} standard error` : ''));
    tiles.push(tile('Best score', formatValue(run.best_score), 'of any evaluation'));
    tiles.push(tile('Generation', formatCount(run.generation), stateText(run)));
  } else {
    // Scores of different tasks cannot be compared.
    const tasks = data.settings.find((row) => row.name === 'env');
    const one = !tasks || !tasks.differs;
    const best = one && data.groups.map((group) => ({ group, score: medianScore(data, group) })).filter((entry) => Number.isFinite(entry.score)).sort((one, two) => two.score - one.score)[0];
    if (best) tiles.push(tile(data.groups.length > 1 ? 'Best median score' : 'Median score', formatValue(best.score), data.groups.length > 1 ? best.group.label : `of ${known.length} runs`));
    if (known.length && one) tiles.push(tile('Range of scores', `${formatValue(Math.min(...known.map((run) => run.score)))} to ${formatValue(Math.max(...known.map((run) => run.score)))}`, 'over all runs'));
    tiles.push(tile('Runs', formatCount(data.runs.length), stateCounts(data)));
  }
  const sum = (name) => data.runs.reduce((total, run) => total + (run[name] || 0), 0);
  tiles.push(tile('Interactions', formatCount(sum('interactions')), data.runs.length > 1 ? 'environment steps in total' : 'environment steps'));
  tiles.push(tile('Training time', formatTime(sum('seconds')), sum('seconds') > 0 ? `${formatCount(sum('interactions') / sum('seconds'))} steps/s` : ''));
  document.getElementById('tiles').replaceChildren(...tiles);
}

function stateText(run) {
  const of = run.generations ? ` of ${formatCount(run.generations)}` : '';
  return run.state === 'running' ? `running${of}` : STATES[run.state] || run.state;
}

function stateCounts(data) {
  const counts = new Map();
  for (const run of data.runs) counts.set(run.state, (counts.get(run.state) || 0) + 1);
  return [...counts].map(([state, count]) => `${count} ${STATES[state] || state}`).join(', ');
}

function medianScore(data, group) {
  const scores = group.runs.map((index) => data.runs[index].score).filter(Number.isFinite).sort((a, b) => a - b);
  return scores.length ? quantile(scores, 0.5) : NaN;
}

const SEVERITIES = { problem: 'Problem', warning: 'Warning', note: 'Note', broken: 'Unreadable' };

function showFindings(data) {
  const cards = [];
  for (const run of data.runs) {
    for (const problem of run.problems) cards.push(findingCard({ severity: 'broken', sentence: problem, suggestion: '', evidence: {} }, [run.name]));
  }
  const merged = new Map();
  for (const run of data.runs) {
    for (const finding of run.findings) {
      const key = `${finding.rule}/${run.group}`;
      if (!merged.has(key)) merged.set(key, { finding, names: [] });
      merged.get(key).names.push(run.name);
    }
  }
  const order = Object.keys(SEVERITIES);
  const sorted = [...merged.values()].sort((one, two) => order.indexOf(one.finding.severity) - order.indexOf(two.finding.severity));
  cards.push(...sorted.map(({ finding, names }) => findingCard(finding, names)));
  if (!cards.length && data.runs.some((run) => run.generation >= 30)) {
    cards.push(element('p', { class: 'all-well' }, 'Nothing is wrong: no rule found fault with the speed, the gradient, the standard deviations or the ranking of the candidates.'));
  }
  document.getElementById('finding-list').replaceChildren(...cards);
  document.getElementById('findings').hidden = !cards.length;
}

function findingCard(finding, names) {
  const evidence = Object.entries(finding.evidence).map(([name, value]) => element('span', {}, `${name.replaceAll('_', ' ')} `, element('b', {}, formatValue(value))));
  const shown = names.slice(0, 4).join(', ') + (names.length > 4 ? ` and ${names.length - 4} more` : '');
  return element('article', { class: `finding ${finding.severity}` },
    element('header', {}, element('span', { class: 'badge' }, SEVERITIES[finding.severity] || finding.severity), element('span', { class: 'where' }, shown)),
    element('p', {}, finding.sentence),
    finding.suggestion ? element('p', { class: 'suggestion' }, finding.suggestion) : null,
    evidence.length ? element('p', { class: 'evidence' }, ...evidence) : null);
}

function showChoice(id, options, current, change) {
  const field = document.getElementById(id);
  for (const [value, title] of options) {
    const input = element('input', { type: 'radio', name: id, value, id: `${id}-${value}`, checked: value === current, onchange: () => change(value) });
    field.append(input, element('label', { for: `${id}-${value}` }, title));
  }
}

function showLegend(data, store) {
  document.getElementById('legend-list').replaceChildren(...data.groups.filter((group) => !isApart(group, store.view.task)).map((group) => legendGroup(data, store, group)));
}

function legendGroup(data, store, group) {
  const runs = group.runs.map((index) => data.runs[index]);
  const key = `legend/${runs[0].path}`;
  const hide = (some, hidden) => {
    some.forEach((run) => { run.hidden = hidden; });
    mark();
    store.redraw();
  };
  const box = element('input', { type: 'checkbox', key: `${key}/group`, onchange: () => hide(runs, !box.checked) });
  const boxes = runs.map((run) => element('input', { type: 'checkbox', key: `legend/${run.path}/run`, onchange: (event) => hide([run], !event.target.checked) }));
  const mark = () => {
    box.checked = runs.some((run) => !run.hidden);
    box.indeterminate = box.checked && runs.some((run) => run.hidden);
    boxes.forEach((member, k) => { member.checked = !runs[k].hidden; });
  };
  mark();
  const score = medianScore(data, group);
  const label = element('label', { class: 'group' }, box, element('span', { class: `swatch ${colorClass(group.index)}` }),
    element('span', { class: 'group-label' }, group.label), element('span', { class: 'group-score' }, Number.isFinite(score) ? formatValue(score) : ''));
  if (runs.length === 1) return element('div', { class: 'legend-group' }, label);
  const members = runs.map((run, k) => element('li', {}, element('label', {}, boxes[k],
    element('span', { class: 'run-name' }, run.name), element('span', { class: 'group-score' }, Number.isFinite(run.score) ? formatValue(run.score) : '–'))));
  const details = element('details', { key: `${key}/runs` }, element('summary', { key: `${key}/count` }, `${runs.length} runs`), element('ul', {}, ...members));
  return element('div', { class: 'legend-group' }, label, details);
}
