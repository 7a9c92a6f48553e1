const SLOT_MS = 100;

/** Thrown when no response headers arrived in time. */
export class DeadlineError extends Error {}

export type Expiring = { expire(): void };

/**
 * Ends exchanges at their deadlines. All have the same time, so those that began within the same 100 ms share an entry,
 * and one timer serves all.
 */
export class Deadlines {
  private slots: { at: number; exchanges: Set<Expiring> }[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly milliseconds: number) {}

  /** Adds an exchange. @returns the set to remove it from once it has ended */
  add(exchange: Expiring): Set<Expiring> {
    const now = performance.now();
    let slot = this.slots.at(-1);
    if (!slot || now >= slot.at - this.milliseconds) {
      slot = { at: now + SLOT_MS + this.milliseconds, exchanges: new Set() };
      this.slots.push(slot);
      this.timer ??= this.wakeIn(this.milliseconds + SLOT_MS);
    }
    return slot.exchanges.add(exchange);
  }

  private expire(): void {
    const now = performance.now();
    for (let slot = this.slots[0]; slot && slot.at <= now; slot = this.slots[0]) {
      this.slots.shift();
      for (const exchange of slot.exchanges) exchange.expire();
    }
    const [first] = this.slots;
    this.timer = first && this.wakeIn(Math.max(1, first.at - now));
  }

  /** Sets a timer that does not keep the process running. */
  private wakeIn(milliseconds: number): NodeJS.Timeout {
    return setTimeout(() => this.expire(), milliseconds).unref();
  }
}
