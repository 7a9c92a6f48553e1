import { describe, expect, it } from '@jest/globals';
import { chaos } from '../chaos/chaos.js';
import type { Engine } from '../chaos/stack.js';

/** `npm run test:chaos` plays more of them, under any seed. */
const OPERATIONS = Number(process.env['CHAOS_OPERATIONS'] ?? 1_000);
const FAULTS = Number(process.env['CHAOS_FAULTS'] ?? Math.max(12, Math.round(OPERATIONS / 400)));
const SEED = Number(process.env['CHAOS_SEED'] ?? 21);
const ENGINES = (process.env['CHAOS_ENGINE'] ?? 'postgresql,eventstoredb').split(',') as Engine[];
/** Against hanging for ever: an operation may have to wait for a silent connection to be noticed. */
const WITHIN_MS = 1_800_000 + OPERATIONS * 100;

describe('a service to which everything happens', () => {
  it.each(ENGINES)(
    'does on %s what the model does',
    async (engine) => {
      expect([OPERATIONS, FAULTS, SEED].every(Number.isSafeInteger)).toBe(true);
      expect(['postgresql', 'eventstoredb']).toContain(engine);
      await chaos({ engine, seed: SEED, operations: OPERATIONS, faults: FAULTS });
    },
    WITHIN_MS,
  );
});
