import { describe, expect, it } from '@jest/globals';
import { runChaos } from './chaos.js';
import type { Engine } from './stack.js';

/** `tools/test/chaos.mjs` plays more operations, with any seed. */
const OPERATIONS = Number(process.env['CHAOS_OPERATIONS'] ?? 1_000);
const FAULTS = Number(process.env['CHAOS_FAULTS'] ?? Math.max(12, Math.round(OPERATIONS / 400)));
const SEED = Number(process.env['CHAOS_SEED'] ?? 21);
const ENGINES = (process.env['CHAOS_ENGINE'] ?? 'postgresql,eventstoredb').split(',') as Engine[];
/** Ends a test that hangs. An operation may wait until a silent connection is noticed. */
const TIMEOUT_MS = 1_800_000 + OPERATIONS * 100;

describe('a service under chaos', () => {
  it.each(ENGINES)(
    'agrees with the model on %s',
    async (engine) => {
      expect([OPERATIONS, FAULTS, SEED].every(Number.isSafeInteger)).toBe(true);
      expect(['postgresql', 'eventstoredb']).toContain(engine);
      await runChaos({ engine, seed: SEED, operations: OPERATIONS, faults: FAULTS });
    },
    TIMEOUT_MS,
  );
});
