/** Within this time a body has to move. */
export const PACE_WINDOW_MS = 5_000;
/** What even a slow line brings (400 kbit/s). */
const MIN_BYTES_PER_SECOND = 50_000;
/** In which a whole body has to arrive: a small one may come as slowly as that takes. */
const WHOLE_SECONDS = 60;

type Sample = { at: number; received: number };

/** Judges whether a body arrives, or only keeps the room that is reserved for it. */
export class UploadPace {
  private readonly samples: Sample[];
  private readonly minBytes: number;

  /** @param bytes that are reserved @param startedAt by the same clock as `judge` */
  constructor(bytes: number, startedAt: number) {
    this.samples = [{ at: startedAt, received: 0 }];
    const perSecond = Math.min(MIN_BYTES_PER_SECOND, bytes / WHOLE_SECONDS);
    this.minBytes = (perSecond * PACE_WINDOW_MS) / 1000;
  }

  /** Judges by the last five seconds. @returns undefined while the body arrives */
  judge(now: number, received: number): 'stalled' | 'slow' | undefined {
    this.samples.push({ at: now, received });
    // The last one that is old enough stays.
    while ((this.samples[1]?.at ?? Infinity) <= now - PACE_WINDOW_MS) this.samples.shift();
    const [first] = this.samples;
    if (!first || first.at > now - PACE_WINDOW_MS) return undefined;
    const grown = received - first.received;
    if (grown === 0) return 'stalled';
    return grown < this.minBytes ? 'slow' : undefined;
  }
}
