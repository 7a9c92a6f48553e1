/** A series of bars over one another, the first at the bottom, and what there was before each of them. */
export type Bars = { values: number[][]; before: number[] };

/**
 * The paths of a chart in a view box that is as wide as it has bars and 100 high.
 * @property bars the paths of each bar, one for each series, to be stroked as wide as it is; empty for zero
 * @property line the points of what there was before; empty if that was nothing
 */
export type BarPaths = { width: number; bars: string[][]; line: string; max: number };

/** Draws bars, stacked where there are several series. All of them, and the line, are scaled to the highest. */
export function drawBars({ values, before }: Bars): BarPaths {
  const width = values[0]?.length ?? 0;
  const heights = Array.from({ length: width }, (_, i) =>
    values.reduce((sum, series) => sum + (series[i] ?? 0), 0),
  );
  const max = Math.max(0, ...heights);
  const top = Math.max(max, ...before);
  const toHeight = (value: number) => round((100 * value) / top);
  const bars = heights.map((_, i) => {
    let base = 0;
    return values.map((series) => {
      const value = series[i] ?? 0;
      if (value === 0) return '';
      const bottom = round(100 - (100 * base) / top);
      base += value;
      return `M${i + 0.5} ${bottom}v-${toHeight(value)}`;
    });
  });
  const line = before.some((value) => value > 0)
    ? before.map((value, i) => `${i + 0.5},${round(100 - (100 * value) / top)}`).join(' ')
    : '';
  return { width, bars, line, max };
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}
