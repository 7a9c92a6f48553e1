/** @property stream of the event */
export type Ordered = { id: number; customerId: number; stream: string };

/**
 * The first attempts of a lane, one at a time for each customer and each record, in the order of the events. A record
 * counts beside its customer because a merge gives a card another one.
 */
export class FirstAttempts<D extends Ordered> {
  private upcoming: D[] = [];
  /** They had to wait and may go now. */
  private released: D[] = [];
  /** By customer and by stream, oldest first: the delivery under way or released, then those that wait for it. */
  private readonly lines = new Map<number | string, D[]>();
  private readonly underWay = new Set<D>();
  private waiting = 0;

  /** Those that have not begun. */
  get known(): number {
    return this.upcoming.length + this.released.length + this.waiting;
  }

  get begun(): Iterable<D> {
    return this.underWay;
  }

  /** In the order of the events. */
  add(delivery: D): void {
    this.upcoming.push(delivery);
  }

  /** The next one that may go, which is under way then. */
  next(): D | undefined {
    let delivery = this.released.shift();
    while (!delivery) {
      const upcoming = this.upcoming.shift();
      if (!upcoming) return undefined;
      if (this.queueUp(upcoming)) delivery = upcoming;
      else this.waiting++;
    }
    this.underWay.add(delivery);
    return delivery;
  }

  /** It is under way elsewhere: what comes after it has to wait for its end. */
  await(delivery: D): void {
    this.queueUp(delivery);
    this.underWay.add(delivery);
  }

  /** It is over, with or without an attempt. Without effect when it is not under way. */
  end(delivery: D): void {
    if (!this.underWay.delete(delivery)) return;
    const following = new Set<D>();
    for (const key of keysOf(delivery)) {
      const line = this.lines.get(key) ?? [];
      line.shift();
      if (line[0]) following.add(line[0]);
      else this.lines.delete(key);
    }
    for (const first of following) {
      if (!keysOf(first).every((key) => this.lines.get(key)?.[0] === first)) continue;
      this.waiting--;
      this.released.push(first);
    }
  }

  /** Drops what has not begun. @returns the dropped deliveries */
  clear(): D[] {
    const dropped = new Set(this.upcoming);
    for (const [key, line] of this.lines) {
      const left = line.filter((delivery) => this.underWay.has(delivery));
      for (const delivery of line) if (!this.underWay.has(delivery)) dropped.add(delivery);
      if (left.length > 0) this.lines.set(key, left);
      else this.lines.delete(key);
    }
    this.upcoming = [];
    this.released = [];
    this.waiting = 0;
    return [...dropped];
  }

  /** @returns whether nothing is before it */
  private queueUp(delivery: D): boolean {
    let isFirst = true;
    for (const key of keysOf(delivery)) {
      const line = this.lines.get(key);
      if (line) {
        line.push(delivery);
        isFirst = false;
      } else this.lines.set(key, [delivery]);
    }
    return isFirst;
  }
}

function keysOf({ customerId, stream }: Ordered): (number | string)[] {
  return [customerId, stream];
}
