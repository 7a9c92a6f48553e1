import { describe, expect, it } from '@jest/globals';
import { StallDetector } from './stall-detector.js';

describe('StallDetector', () => {
  it('is stuck while any work has been in progress for more than a minute', async () => {
    let now = 0;
    let end: () => void = () => undefined;
    const stalls = new StallDetector(() => now);
    const slow = stalls.watch(() => new Promise<void>((resolve) => (end = resolve)));
    now = 60_000;
    expect(stalls.isStuck).toBe(false);
    now = 60_001;
    await stalls.watch(async () => expect(stalls.isStuck).toBe(true));
    end();
    await slow;
    expect(stalls.isStuck).toBe(false);
  });

  it('is not stuck after work failed, and rethrows the failure', async () => {
    let now = 0;
    const stalls = new StallDetector(() => now);
    await expect(stalls.watch(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
    now = 1e9;
    expect(stalls.isStuck).toBe(false);
  });
});
