import { describe, expect, it } from '@jest/globals';
import { Pulse } from './pulse.js';

describe('Pulse', () => {
  it('is stuck while any work has been under way for more than a minute', async () => {
    let now = 0;
    let end: () => void = () => undefined;
    const pulse = new Pulse(() => now);
    const slow = pulse.during(() => new Promise<void>((resolve) => (end = resolve)));
    now = 60_000;
    expect(pulse.isStuck).toBe(false);
    now = 60_001;
    await pulse.during(async () => expect(pulse.isStuck).toBe(true));
    end();
    await slow;
    expect(pulse.isStuck).toBe(false);
  });

  it('is not stuck by work that failed, and hands its failure on', async () => {
    let now = 0;
    const pulse = new Pulse(() => now);
    await expect(pulse.during(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
    now = 1e9;
    expect(pulse.isStuck).toBe(false);
  });
});
