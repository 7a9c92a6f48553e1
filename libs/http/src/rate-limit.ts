import { RateLimiterMemory } from 'rate-limiter-flexible';

export const WINDOW_SECONDS = 60;

export type Usage = { limit: number; remaining: number; resetSeconds: number; exceeded: boolean };

/** A fixed window of 60 s from the first request in it; every request counts, refused ones too. */
export class RateLimit {
  // The library's own limit stays out of it: ours differs from token to token.
  private readonly counts = new RateLimiterMemory({ points: 1, duration: WINDOW_SECONDS });

  /** @param key whose requests are counted together */
  async count(key: string, limit: number): Promise<Usage> {
    const { consumedPoints, msBeforeNext } = await this.counts.penalty(key, 1);
    return {
      limit,
      remaining: Math.max(0, limit - consumedPoints),
      resetSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
      exceeded: consumedPoints > limit,
    };
  }
}
