/** Makes random choices that are the same in every run. */
export class Dice {
  constructor(private state: number) {}

  /** Returns a number from 0 up to 1, without 1. (Mulberry32) */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** Tells whether something happens that happens with this probability. */
  roll(probability: number): boolean {
    return this.next() < probability;
  }

  /** Returns an integer. Both ends are included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** Returns how often something happens that happens this often on average (Poisson). */
  count(average: number): number {
    const limit = Math.exp(-average);
    let count = 0;
    for (let product = this.next(); product > limit; product *= this.next()) count++;
    return count;
  }

  pick<T>(from: readonly T[], weigh: (element: T) => number = () => 1): T {
    let left = this.next() * from.reduce((sum, element) => sum + weigh(element), 0);
    for (const element of from) {
      left -= weigh(element);
      if (left < 0) return element;
    }
    const last = from.at(-1);
    if (last === undefined) throw new Error('there is nothing to choose from');
    return last;
  }
}
