/** @param {number[]} values @param {number} share 0.5 is the median */
export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) return NaN;
  const place = (sorted.length - 1) * share;
  const low = Math.floor(place);
  const high = Math.ceil(place);
  return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
}

export const median = (values) => quantile(values, 0.5);

/** "median (lowest-highest)" */
export function spread(values, format) {
  const ends = [Math.min(...values), Math.max(...values)].map((value) => format(value));
  return `${format(median(values))} (${ends.join('-')})`;
}

export const whole = (value) => Math.round(value).toLocaleString('en-US');
export const ratio = (value) => value.toFixed(2);
/** More than three digits would be noise. */
export const ms = (value) => (value >= 10 ? value.toFixed(0) : value.toFixed(value >= 1 ? 1 : 2));

export const us = (value) => (value === null ? 'not known' : value.toFixed(0));

/** @param {string[][]} rows the first one is the heading */
export function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]),
        )
        .join('  '),
    )
    .join('\n');
}
