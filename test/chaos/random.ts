/** Random choices that are the same for the same seed (mulberry32). */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** Independent of this one from here on. */
  fork(): Random {
    return new Random(this.below(2 ** 32));
  }

  /** 0 to 1, without 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from 0, below the limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** Both inclusive. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Undefined of nothing. */
  pick<T>(from: readonly T[]): T | undefined {
    return from[this.below(from.length)];
  }

  one<T>(first: T, ...others: T[]): T {
    return this.pick([first, ...others]) ?? first;
  }

  weighted<T extends { weight: number }>(from: readonly T[]): T {
    let left = this.below(from.reduce((sum, { weight }) => sum + weight, 0));
    for (const one of from) {
      left -= one.weight;
      if (left < 0) return one;
    }
    throw new Error('there is nothing to choose from');
  }

  shuffled<T>(from: readonly T[]): T[] {
    const left = [...from];
    const picked: T[] = [];
    while (left.length > 0) picked.push(...left.splice(this.below(left.length), 1));
    return picked;
  }
}
