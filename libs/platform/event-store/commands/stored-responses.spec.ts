import { describe, expect, it } from '@jest/globals';
import type { KeyedRequest } from '#platform/kernel/aggregate.js';
import { RejectedError, UnavailableError } from '#platform/kernel/errors.js';
import { Keyring, createMasterKey } from '#platform/kernel/keyring.js';
import { open } from '#platform/kernel/sealing.js';
import { DatabasePool } from '#platform/database/database-pool.js';
import { DatabaseWait, findWait, runWithWait } from '#platform/database/database-waits.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import type { ProcessSession } from '#platform/database/process-session.js';
import { eventually } from '../../../../test/support/jest/eventually.js';
import type { SealedResponse } from '../port/event-store.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import { Subjects } from '../personal-keys/personal-parts.js';
import { STORED_RESPONSES_COLUMN, StoredResponses } from './stored-responses.js';

const PERSON = 31;
const CURRENT = Buffer.alloc(32, 7);
const BODY = { id: 12, note: 'oat milk' };

const masterKey = createMasterKey(Buffer.alloc(32, 1));
const masterKeys = MasterKeys.withKeys(new Keyring([masterKey], masterKey), new Map());
// Nothing listens on this port: no key is loaded.
const pool = new DatabasePool({ host: '127.0.0.1', port: 1 });
const responses = new StoredResponses(
  pool,
  masterKeys,
  new PersonalKeys(pool, masterKeys, new Subjects('subjectId', () => new RejectedError({}))),
  {} as ProcessSession,
);

const createRequest = (status: number): KeyedRequest => ({
  key: Buffer.alloc(32, 2),
  holder: 'one',
  status,
  isStored: false,
  subjectId: PERSON,
});

/** Opens what the master key has sealed. */
function openBody({ key, body }: SealedResponse): Buffer {
  const { purpose, getContext } = STORED_RESPONSES_COLUMN;
  return masterKeys.open(purpose, body, getContext(key));
}

describe('a stored response', () => {
  it('is sealed at once with the key of its person while that is held', () => {
    const heldKeys = new Map([[PERSON, { current: CURRENT, previous: null, isRenewed: false }]]);
    const sealed = responses.seal(createRequest(200), 'order-1', BODY, { heldKeys });
    if (sealed instanceof Promise) throw new Error('it waits');
    expect(sealed).toMatchObject({ holder: 'one', stream: 'order-1', status: 200 });
    const encoded = openBody(sealed);
    expect([encoded[0], Number(encoded.readBigUInt64BE(1))]).toEqual([1, PERSON]);
    const context = `response ${sealed.key.toString('hex')}`;
    expect(JSON.parse(open(CURRENT, encoded.subarray(9), context).toString())).toEqual(BODY);
  });

  it('has no text of a person who was erased', async () => {
    const queryKeys = () => Promise.resolve([]);
    const sealed = await responses.seal(createRequest(200), 'order-1', BODY, { queryKeys });
    expect(openBody(sealed)).toHaveLength(9);
  });

  it('is sealed at once when it is a rejection, which needs the key of nobody', () => {
    const sealed = responses.seal(createRequest(422), 'order-1', BODY);
    if (sealed instanceof Promise) throw new Error('it waits');
    expect(JSON.parse(openBody(sealed).toString())).toEqual(BODY);
  });
});

it('releases a key whose claim got lost, outside of the request that has its response by then', async () => {
  const waits: unknown[] = [];
  const lost = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
  const client = {
    query: ({ name }: { name: string }, onEnd: (error: null, result: object) => void) => {
      expect(name).toBe('stored_responses_claim_new');
      onEnd(null, { rows: [] });
    },
  };
  const fake = {
    acquireForCommit: (onTake: (error: undefined, claimed: object) => void) =>
      onTake(undefined, client),
    releaseAfterCommit: () => undefined,
    query: ({ name }: { name: string }) => {
      if (name === 'stored_responses_claim') return Promise.reject(lost);
      waits.push([name, findWait()]);
      return Promise.resolve({ rows: [] });
    },
  } as unknown as DatabasePool;
  const keys = new StoredResponses(fake, masterKeys, {} as PersonalKeys, {} as ProcessSession);
  const request = new DatabaseWait(undefined, undefined, undefined, () => true);
  const claim = runWithWait(request, () => keys.claimKey(createRequest(200), Buffer.alloc(32)));
  await expect(claim).rejects.toThrow(UnavailableError);
  await eventually(
    () => waits.length,
    (count) => count > 0,
  );
  keys.onModuleDestroy();
  expect(waits).toEqual([['stored_responses_release', undefined]]);
});
