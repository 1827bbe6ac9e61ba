// Numbers for people: ticks, axis labels, values.

const compactFormat = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 4 });
const groupedFormat = new Intl.NumberFormat('en');

/** Four significant digits, without an exponent where that stays short. */
function formatValue(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6) return compactFormat.format(value);
  if (size < 1e-4) return value.toExponential(2).replace('e-', 'e−');
  const text = String(Number(value.toPrecision(size >= 1000 ? Math.max(4, Math.ceil(Math.log10(size))) : 4)));
  return minus(size >= 1000 ? groupedFormat.format(Number(text)) : text);
}

function formatCount(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  return value < 100000 ? groupedFormat.format(Math.round(value)) : compactFormat.format(value);
}

function formatTime(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return '–';
  if (seconds < 1) return `${Number(seconds.toPrecision(2))} s`;
  if (seconds < 59.95) return `${Number(seconds.toFixed(1))} s`;
  // Round before splitting: otherwise 119.7 s becomes 1 min 60 s.
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function minus(text) {
  return text.replace('-', '−');
}

/** About `count` round numbers from low to high. */
function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999) * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}

/** Powers of ten, with their halves and fifths where there is room. */
function logTicks(low, high, count) {
  const found = [];
  const decades = Math.log10(high / low);
  const factors = decades * 3 <= count ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(decades / count));
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const factor of factors) {
      const value = Number((factor * 10 ** power).toPrecision(12));
      if (value >= low && value <= high && power % every === 0) found.push(value);
    }
  }
  return found.length ? found : [low, high];
}

/** Round times: whole seconds, minutes, hours. */
function timeTicks(low, high, count) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  const step = steps.find((candidate) => (high - low) / candidate <= count);
  if (!step || high - low < 4) return ticks(low, high, count);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) found.push(k * step);
  return found;
}

function axisLabel(value, all) {
  if (value === 0) return '0';
  const span = Math.abs(all[all.length - 1] - all[0]) || Math.abs(value);
  const largest = Math.max(Math.abs(all[0]), Math.abs(all[all.length - 1]));
  if (largest >= 10000) return minus(compactFormat.format(value));
  if (largest < 1e-3) return minus(String(Number(value.toPrecision(3)))).replace('e−', 'e−');
  const digits = Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(span / Math.max(1, all.length - 1)) + 1e-9)));
  return minus(String(Number(value.toFixed(digits))));
}

function timeLabel(value, all) {
  const largest = all[all.length - 1];
  if (largest < 120) return `${Number(value.toFixed(1))} s`;
  if (largest < 7200) return `${Number((value / 60).toFixed(1))} min`;
  return `${Number((value / 3600).toFixed(1))} h`;
}
