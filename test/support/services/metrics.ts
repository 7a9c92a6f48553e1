export type Labels = Record<string, string>;

export type Samples = {
  text: string;
  /** The value of the first sample with at least these labels. */
  value: (name: string, labels?: Labels) => number | undefined;
  has: (name: string, labels?: Labels) => boolean;
};

/** Parses the Prometheus text format. */
export function samples(text: string): Samples {
  const all = text.split('\n').flatMap((line) => {
    const match = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) return [];
    const [, name = '', labelText = '', value] = match;
    const labels = Object.fromEntries(
      [...labelText.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', text = '']) => [label, text]),
    );
    return [{ name, labels, value: Number(value) }];
  });
  const find = (name: string, labels: Labels = {}) =>
    all.find(
      (sample) =>
        sample.name === name &&
        Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
  return {
    text,
    value: (name, labels) => find(name, labels)?.value,
    has: (name, labels) => find(name, labels) !== undefined,
  };
}
