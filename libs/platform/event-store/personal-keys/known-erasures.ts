/**
 * Maximum number of known erasures. Beyond it the oldest are forgotten, and everything read before counts as out of
 * date.
 */
const MAX_KNOWN = 50_000;

export type SendGuard = { erased: AbortSignal; mayBeSent: () => boolean };

/**
 * Tells whether what was read of a person may still be used. Everything made from personal data goes out of date when
 * an erasure becomes known, or may have been missed. All times are of `performance.now()`.
 */
export class KnownErasures {
  private readonly knownAt = new Map<number, number>();
  /** Requests that are being sent, by person. They abort when the person's erasure becomes known. */
  private readonly sending = new Map<number, Set<AbortController>>();
  private doubtedAt = -Infinity;
  private trustedUntil = Infinity;

  constructor(private readonly maxKnown = MAX_KNOWN) {}

  /** Records an erasure: what was read of these people before now is out of date. */
  note(subjectIds: Iterable<number>, now: number): void {
    for (const id of subjectIds) {
      this.knownAt.delete(id);
      this.knownAt.set(id, now);
      this.abort(id);
    }
    for (const [id, at] of this.knownAt) {
      if (this.knownAt.size <= this.maxKnown) break;
      this.knownAt.delete(id);
      this.doubtedAt = Math.max(this.doubtedAt, at);
    }
  }

  /** Marks everything read before now as out of date, because an erasure may have been missed. */
  doubtAll(now: number): void {
    this.knownAt.clear();
    this.doubtedAt = now;
    for (const id of this.sending.keys()) this.abort(id);
  }

  /** Sets until when other processes wait for this one to learn of an erasure. From then on they do not. */
  trustUntil(time: number): void {
    this.trustedUntil = time;
  }

  /** Tells whether erasures wait for this process. Otherwise nothing that was read may be used. */
  isTrusted(now: number): boolean {
    return now < this.trustedUntil;
  }

  /** Tells whether what was read of a person at a time is from before an erasure, as far as this process knows. */
  isOutdated(subjectId: number, readAt: number): boolean {
    if (readAt <= this.doubtedAt) return true;
    const knownAt = this.knownAt.get(subjectId);
    return knownAt !== undefined && readAt <= knownAt;
  }

  /** Tells whether what was read of a person at a time may be used now. */
  isCurrent(subjectId: number, readAt: number, now: number): boolean {
    return this.isTrusted(now) && !this.isOutdated(subjectId, readAt);
  }

  /**
   * Sends what was read of a person, unless it is out of date. The signal aborts when their erasure becomes known. A
   * process that was paused has not learned of it yet, so `mayBeSent` is called right before the body is written.
   * @returns undefined when nothing was sent
   */
  async send<R>(
    { subjectId, readAt }: { subjectId: number; readAt: number },
    clock: () => number,
    send: (sending: SendGuard) => Promise<R>,
  ): Promise<R | undefined> {
    const mayBeSent = () => this.isCurrent(subjectId, readAt, clock());
    if (!mayBeSent()) return undefined;
    const erased = new AbortController();
    const others = this.sending.get(subjectId) ?? new Set();
    this.sending.set(subjectId, others.add(erased));
    try {
      return await send({ erased: erased.signal, mayBeSent });
    } finally {
      others.delete(erased);
      if (others.size === 0 && this.sending.get(subjectId) === others) {
        this.sending.delete(subjectId);
      }
    }
  }

  private abort(subjectId: number): void {
    const all = this.sending.get(subjectId);
    this.sending.delete(subjectId);
    for (const erased of all ?? []) erased.abort();
  }
}
