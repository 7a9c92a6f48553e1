import { Histogram, type LabelValues, type Registry } from 'prom-client';

type Options<L extends string> = {
  name: string;
  help: string;
  labelNames: readonly L[];
  buckets: readonly number[];
};

/** @property counts by bucket; the last is of values above all bounds */
type Series<L extends string> = { labels: LabelValues<L>; counts: number[]; sum: number };

/**
 * Counts values in plain numbers, and copies them only when they are scraped. The library's own histogram validates and
 * hashes the labels of each value.
 */
export class PlainHistogram<L extends string> {
  private readonly series = new Map<string, Series<L>>();

  constructor(
    registry: Registry,
    private readonly options: Options<L>,
  ) {
    const { name, help, labelNames, buckets } = options;
    const histogram = new Histogram({
      name,
      help,
      labelNames,
      buckets: [...buckets],
      registers: [],
    });
    const get = async () => ({
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: this.getValues(),
    });
    // The registry prefers the second, which prom-client has for itself.
    registry.registerMetric(Object.assign(histogram, { get, getForPromString: get }));
    // Without labels there is one series, which is there before its first value.
    if (labelNames.length === 0) this.createSeries([]);
  }

  /** @param labelValues in the order of the names */
  observe(value: number, ...labelValues: string[]): void {
    const { buckets } = this.options;
    const series = this.series.get(labelValues.join(' ')) ?? this.createSeries(labelValues);
    let bucket = 0;
    while (value > (buckets[bucket] ?? Infinity)) bucket++;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += value;
  }

  private createSeries(labelValues: string[]): Series<L> {
    const { labelNames, buckets } = this.options;
    const labels = Object.fromEntries(labelNames.map((name, i) => [name, labelValues[i]]));
    const counts = Array.from({ length: buckets.length + 1 }, () => 0);
    const series = { labels: labels as LabelValues<L>, counts, sum: 0 };
    this.series.set(labelValues.join(' '), series);
    return series;
  }

  private getValues() {
    const { name, buckets } = this.options;
    return [...this.series.values()].flatMap(({ labels, counts, sum }) => {
      let count = 0;
      const cumulative = counts.map((ofBucket, i) => ({
        labels: { le: buckets[i] ?? '+Inf', ...labels },
        value: (count += ofBucket),
        metricName: `${name}_bucket`,
      }));
      return [
        ...cumulative,
        { labels, value: sum, metricName: `${name}_sum` },
        { labels, value: count, metricName: `${name}_count` },
      ];
    });
  }
}
