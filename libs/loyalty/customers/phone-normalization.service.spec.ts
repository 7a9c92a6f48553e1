import { expect, it } from '@jest/globals';
import type { CommandBus } from '@nestjs/cqrs';
import type { Pool } from 'pg';
import type { LeaderLock } from '#platform/database/leader-lock.js';
import type { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { PhoneNormalization } from './phone-normalization.service.js';

it("claims the keys of Argentina's numbers that were stored as claims themselves", async () => {
  const claims: unknown[] = [];
  const rows = {
    phone_normalizations_due: [{ account_id: 7, revision: 1, after_id: 0 }],
    phone_normalizations_next: [
      { id: 1, phone: '+5491123456789', country: 'AR', survivor_ids: [] },
      { id: 2, phone: '+541143211234', country: 'AR', survivor_ids: [] },
    ],
  };
  const pool = {
    query: ({ name, values }: { name: string; values: unknown[] }) => {
      if (name === 'phone_normalizations_claim_keys') claims.push(values);
      return Promise.resolve({ rows: rows[name as keyof typeof rows] ?? [] });
    },
  } as unknown as Pool;
  const keys = {
    createClaim: (accountId: number, kind: string, value: string, stream: string) => ({
      kind,
      value: `${accountId} ${value}`,
      stream,
    }),
  } as unknown as PersonalKeys;
  const normalization = new PhoneNormalization(pool, {} as CommandBus, {} as LeaderLock, keys);
  expect(await normalization.normalizeNext()).toBe(true);
  expect(claims).toEqual([[7, ['customer-1'], ['7 +5491123456789'], ['7 +541123456789']]]);
});
