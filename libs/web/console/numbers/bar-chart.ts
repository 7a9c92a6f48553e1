/** A series of bars over one another, the first at the bottom. */
export type Bars = { values: number[][] };

/** The paths of a chart, one for each series, in a view box that is as wide as it has bars and 100 high. */
export type BarPaths = { width: number; paths: string[]; max: number };

const GAP = 0.16;

/** Draws bars, stacked where there are several series. All of them are scaled to the highest. */
export function drawBars({ values }: Bars): BarPaths {
  const width = values[0]?.length ?? 0;
  const heights = Array.from({ length: width }, (_, i) =>
    values.reduce((sum, series) => sum + (series[i] ?? 0), 0),
  );
  const max = Math.max(0, ...heights);
  const below = Array.from({ length: width }, () => 0);
  const paths = values.map((series) =>
    series
      .map((value, i) => {
        const [top, base] = [(below[i] ?? 0) + value, below[i] ?? 0];
        below[i] = top;
        if (value === 0 || max === 0) return '';
        return `M${round(i + GAP / 2)} ${round(100 - (100 * base) / max)}v-${round((100 * value) / max)}h${round(1 - GAP)}v${round((100 * value) / max)}z`;
      })
      .join(''),
  );
  return { width, paths, max };
}

function round(value: number): string {
  return String(Math.round(value * 100) / 100);
}
