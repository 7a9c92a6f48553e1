/** Random choices that are the same for the same seed (mulberry32). */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** Creates a generator that is independent of this one. */
  fork(): Random {
    return new Random(this.below(2 ** 32));
  }

  /** Returns a number from 0 to 1, exclusive. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns an integer from 0 to the limit, exclusive. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** Returns an integer from min to max, inclusive. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Picks an element, or undefined from an empty list. */
  pick<T>(from: readonly T[]): T | undefined {
    return from[this.below(from.length)];
  }

  one<T>(first: T, ...others: T[]): T {
    return this.pick([first, ...others]) ?? first;
  }

  pickWeighted<T extends { weight: number }>(from: readonly T[]): T {
    let remaining = this.below(from.reduce((sum, { weight }) => sum + weight, 0));
    for (const item of from) {
      remaining -= item.weight;
      if (remaining < 0) return item;
    }
    throw new Error('there is nothing to choose from');
  }

  shuffle<T>(from: readonly T[]): T[] {
    const remaining = [...from];
    const picked: T[] = [];
    while (remaining.length > 0) picked.push(...remaining.splice(this.below(remaining.length), 1));
    return picked;
  }
}
