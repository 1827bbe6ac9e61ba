// From the embedded data to runs with columns of numbers. The page shows only these numbers.

const AXES = {
  interactions: { title: 'Interactions', label: 'interactions', format: (v) => `${formatCount(v)} interactions`, ticks, tick: axisLabel },
  generations: { title: 'Generations', label: 'generations', format: (v) => `generation ${formatCount(v)}`, ticks, tick: axisLabel },
  time: { title: 'Training time', label: 'training time', format: formatTime, ticks: timeTicks, tick: timeLabel },
};

const METRICS = [
  { key: 'score', title: 'Score', note: 'of the center, mean over its evaluation episodes, with the environment’s own reward', large: true },
  { key: 'fitness_mean', title: 'Mean fitness', note: 'mean over the candidates of a generation' },
  { key: 'fitness_best', title: 'Best fitness of the generation', note: 'of one candidate; under noise, part of it is luck' },
  { key: 'speed', title: 'Speed', note: 'length of the center’s step; dashed: max_speed', reference: 'max_speed', zero: true, log: true },
  { key: 'stdev_norm', title: 'Stdev norm', note: 'of the standard deviations of all parameters: the radius of the search', zero: true, log: true },
  { key: 'gradient_agreement', title: 'Gradient agreement', note: 'cosine between two halves of the population; 0 is noise', zero: true },
  { key: 'gradient_norm', title: 'Gradient norm', note: 'before it is normalized', zero: true, log: true },
  { key: 'population', title: 'Population', note: 'candidates per generation', zero: true },
  { key: 'steps_per_second', title: 'Steps/s', note: 'environment steps per second of training time', zero: true },
];

const CUMULATIVE = { generation: 'generations', total_interactions: 'interactions', milliseconds: 'time' };

async function embeddedData() {
  const element = document.getElementById('data');
  if (element.type === 'application/json') return JSON.parse(element.textContent);
  if (typeof DecompressionStream === 'undefined') throw new Error('this page needs a browser from 2023 or later');
  const bytes = Uint8Array.from(atob(element.textContent.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

/** Give a run its columns: `x` by axis, `y` by metric, gaps as NaN. */
function addColumns(run, columns, keep) {
  if (!keep || !run.x) {
    run.x = {};
    run.y = {};
  }
  run.version = (run.version || 0) + 1;
  for (const [name, values] of Object.entries(columns)) {
    const axis = CUMULATIVE[name];
    const place = axis ? run.x : run.y;
    const key = axis || name;
    const old = place[key] || [];
    const added = axis ? accumulate(values, name === 'milliseconds' ? 1000 : 1) : values.map((v) => (v === null ? NaN : v));
    place[key] = keep ? old.concat(added) : added;
  }
}

/** Sums of increments, divided by `unit`. Multiplying would turn 123 milliseconds into 0.12300000000000001 s. */
function accumulate(values, unit) {
  let total = 0;
  return values.map((value) => {
    if (value === null) return NaN;
    total += value;
    return total / unit;
  });
}

function prepare(data) {
  data.runs.forEach((run, index) => {
    run.index = index;
    run.hidden = false;
    addColumns(run, run.columns, false);
    delete run.columns;
  });
  data.groups.forEach((group, index) => {
    group.index = index;
  });
  return data;
}

/** Make an element. By its `key` it is known again when it was made anew: see `rememberPlace`. */
function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name === 'class') made.className = value;
    else if (name.startsWith('aria-') || name === 'role' || name === 'scope' || name === 'colspan' || name === 'for') made.setAttribute(name, value);
    else if (name === 'key') made.dataset.key = value;
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
