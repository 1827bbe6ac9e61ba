// The state of the page, and everything that is drawn from it.

class Store {
  constructor(data) {
    this.data = data;
    this.view = { axis: 'interactions', mode: 'median', domain: null, task: null };
    this.charts = METRICS.map((metric) => new Chart(metric, this));
  }

  start() {
    document.getElementById('charts').append(...this.charts.map((chart) => chart.root));
    this.pointer = new Pointer(this, this.charts);
    const axes = Object.entries(AXES).map(([value, axis]) => [value, axis.title]);
    showChoice('axis', axes, this.view.axis, (value) => { this.view.axis = value; this.pointer.leave(); this.setDomain(null); });
    showChoice('mode', [['median', 'Median and band'], ['single', 'Single runs']], this.view.mode, (value) => { this.view.mode = value; this.redraw(); });
    document.getElementById('reset').addEventListener('click', () => this.setDomain(null));
    if (window.matchMedia('(max-width: 700px)').matches && this.data.runs.length > 1) document.getElementById('legend').open = false;
    new ResizeObserver(() => this.later()).observe(document.getElementById('charts'));
    this.listenForPrint();
    this.refresh();
    showVideos(this.data);
  }

  /** Open everything before printing: paper has its own width, and a reader cannot open anything on it. */
  listenForPrint() {
    const closable = () => [...document.querySelectorAll('#legend, #repeat-list details')];
    let opened = new Set();
    window.addEventListener('beforeprint', () => {
      const closed = closable().filter((details) => !details.open);
      closed.forEach((details) => { details.open = true; });
      // Remembered by key: a live page may replace the elements while the print dialog is open.
      opened = new Set([...opened, ...closed.map((details) => details.dataset.key)]);
      this.pointer.leave();
      this.redraw();
    });
    window.addEventListener('afterprint', () => {
      for (const details of closable()) if (opened.has(details.dataset.key)) details.open = false;
      opened.clear();
    });
  }

  /** Show new data. What the reader has open or focused stays as it is. */
  refresh() {
    this.separateTasks();
    const returnToPlace = rememberPlace();
    showHeading(this.data);
    showTiles(this.data);
    showFindings(this.data);
    showLegend(this.data, this);
    showRuns(this.data);
    showSettings(this.data);
    showRepeat(this.data);
    this.redraw();
    returnToPlace();
  }

  /** Scores of different tasks cannot share an axis: the charts show one task, and a choice leads to the others. */
  separateTasks() {
    const tasks = [...new Set(this.data.groups.map((group) => group.task))].filter((task) => task);
    if (!tasks.includes(this.view.task)) this.view.task = tasks.length ? tasks[0] : null;
    for (const group of this.data.groups) {
      for (const index of group.runs) this.data.runs[index].apart = isApart(group, this.view.task);
    }
    const field = document.getElementById('task');
    field.hidden = tasks.length < 2;
    if (field.dataset.tasks === JSON.stringify(tasks)) return;
    field.dataset.tasks = JSON.stringify(tasks);
    field.replaceChildren(element('legend', {}, 'Task'));
    showChoice('task', tasks.map((task) => [task, task]), this.view.task, (value) => {
      this.view.task = value;
      this.pointer.leave();
      this.view.domain = null;
      document.getElementById('reset').disabled = true;
      this.refresh();
    });
  }

  redraw() {
    for (const chart of this.charts) chart.update();
    this.pointer.again();
  }

  later() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => { this.charts.forEach((chart) => chart.draw()); this.pointer.again(); });
  }

  setDomain(domain) {
    this.view.domain = domain;
    document.getElementById('reset').disabled = !domain;
    this.redraw();
  }

  /** From the first to the last x of all visible runs. */
  fullDomain() {
    let low = Infinity;
    let high = -Infinity;
    for (const run of this.data.runs) {
      if (run.hidden || run.apart) continue;
      for (const x of run.x[this.view.axis] || []) {
        if (x < low) low = x;
        if (x > high) high = x;
      }
    }
    if (!(high > -Infinity)) return [0, 1];
    return [Math.min(0, low), high > 0 ? high : 1];
  }
}

/** Whether a group belongs to another task than the one that is shown. Runs whose task is unknown are always shown. */
function isApart(group, task) {
  return Boolean(group.task) && group.task !== task;
}

/** Remember by keys what is open and focused; return a function that restores both. */
function rememberPlace() {
  const withKey = (selector) => [...document.querySelectorAll(`${selector}[data-key]`)];
  const open = new Map(withKey('details').map((details) => [details.dataset.key, details.open]));
  const focused = document.activeElement && document.activeElement.dataset.key;
  return () => {
    for (const details of withKey('details')) if (open.has(details.dataset.key)) details.open = open.get(details.dataset.key);
    const again = focused && withKey('').find((one) => one.dataset.key === focused);
    if (again) again.focus({ preventScroll: true });
  };
}

/** Ask the page's own server for new data again and again, also while it does not answer. */
class Live {
  constructor(store) {
    this.store = store;
    this.badge = document.getElementById('live');
    this.badge.classList.add('on');
    this.poll();
  }

  async poll() {
    let wait = 1500;
    try {
      const have = this.store.data.runs.map((run) => `${run.key}.${run.epoch}.${(run.x.generations || []).length}`).join(',');
      const answer = await fetch(`data?have=${encodeURIComponent(have)}&token=${this.store.data.token || ''}`, { cache: 'no-store' });
      if (!answer.ok) throw new Error(String(answer.status));
      this.take(await answer.json());
      this.say('live', 'on');
    } catch (error) {
      this.say('no answer from clipup watch', 'lost');
      wait = 4000;
    }
    setTimeout(() => this.poll(), wait);
  }

  say(words, state) {
    if (this.badge.textContent !== words) this.badge.textContent = words;
    this.badge.className = state;
  }

  take(fresh) {
    if (!fresh.changed) return;
    const old = new Map(this.store.data.runs.map((run) => [run.key, run]));
    fresh.runs.forEach((run, index) => {
      const before = old.get(run.key);
      const same = before && before.epoch === run.epoch && run.first > 0;
      run.index = index;
      run.hidden = before ? before.hidden : false;
      run.version = before ? before.version : 0;
      if (same) {
        run.x = before.x;
        run.y = before.y;
      }
      addColumns(run, run.columns, same);
      delete run.columns;
    });
    fresh.groups.forEach((group, index) => { group.index = index; });
    lineCache.clear();
    this.store.data = { ...this.store.data, ...fresh };
    this.store.refresh();
  }
}

function listenForTheme() {
  const root = document.documentElement;
  document.getElementById('theme').addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : window.matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
  });
}

listenForTheme();
embeddedData().then((data) => {
  const store = new Store(prepare(data));
  window.clipupReport = store;
  store.start();
  if (data.live) new Live(store);
  document.documentElement.dataset.ready = 'yes';
}).catch((error) => {
  document.getElementById('title').textContent = 'This report cannot be shown';
  document.getElementById('subtitle').textContent = error.message;
  document.documentElement.dataset.ready = 'failed';
});
