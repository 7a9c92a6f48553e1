/** @property stream of the event */
export type OrderedDelivery = { id: number; customerId: number; stream: string };

/**
 * The first attempts of a queue, one at a time for each customer and each record, in the order of the events. A record
 * counts beside its customer because a merge gives a card another one.
 */
export class FirstAttempts<D extends OrderedDelivery> {
  private upcoming: D[] = [];
  /** They had to wait and may go now. */
  private unblocked: D[] = [];
  /** By customer and by stream, oldest first: the delivery under way or released, then those that wait for it. */
  private readonly lines = new Map<number | string, D[]>();
  private readonly started = new Set<D>();
  private blockedCount = 0;

  /** Those that have not begun. */
  get waitingCount(): number {
    return this.upcoming.length + this.unblocked.length + this.blockedCount;
  }

  get inProgress(): Iterable<D> {
    return this.started;
  }

  /** In the order of the events. */
  add(delivery: D): void {
    this.upcoming.push(delivery);
  }

  /** The next one that may go, which is under way then. */
  next(): D | undefined {
    let delivery = this.unblocked.shift();
    while (!delivery) {
      const upcoming = this.upcoming.shift();
      if (!upcoming) return undefined;
      if (this.queueUp(upcoming)) delivery = upcoming;
      else this.blockedCount++;
    }
    this.started.add(delivery);
    return delivery;
  }

  /** It is under way elsewhere: what comes after it has to wait for its end. */
  waitFor(delivery: D): void {
    this.queueUp(delivery);
    this.started.add(delivery);
  }

  /** It is over, with or without an attempt. Without effect when it is not under way. */
  end(delivery: D): void {
    if (!this.started.delete(delivery)) return;
    const following = new Set<D>();
    for (const key of getOrderKeys(delivery)) {
      const line = this.lines.get(key) ?? [];
      line.shift();
      if (line[0]) following.add(line[0]);
      else this.lines.delete(key);
    }
    for (const first of following) {
      if (!getOrderKeys(first).every((key) => this.lines.get(key)?.[0] === first)) continue;
      this.blockedCount--;
      this.unblocked.push(first);
    }
  }

  /** Drops what has not begun. @returns the dropped deliveries */
  clear(): D[] {
    const dropped = new Set(this.upcoming);
    for (const [key, line] of this.lines) {
      const started = line.filter((delivery) => this.started.has(delivery));
      for (const delivery of line) if (!this.started.has(delivery)) dropped.add(delivery);
      if (started.length > 0) this.lines.set(key, started);
      else this.lines.delete(key);
    }
    this.upcoming = [];
    this.unblocked = [];
    this.blockedCount = 0;
    return [...dropped];
  }

  /** @returns whether nothing is before it */
  private queueUp(delivery: D): boolean {
    let isFirst = true;
    for (const key of getOrderKeys(delivery)) {
      const line = this.lines.get(key);
      if (line) {
        line.push(delivery);
        isFirst = false;
      } else this.lines.set(key, [delivery]);
    }
    return isFirst;
  }
}

function getOrderKeys({ customerId, stream }: OrderedDelivery): (number | string)[] {
  return [customerId, stream];
}
