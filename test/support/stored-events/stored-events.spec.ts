import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Pool } from 'pg';
import { Keyring, createMasterKey } from '#platform/kernel/keyring.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { toRecorded, getCurrentVersion } from '#platform/event-store/port/codec.js';
import type { JsonObject, NewEvent, StoredEvent } from '#platform/event-store/port/event-store.js';
import { hashEvent } from '#platform/event-store/port/hash-chain.js';
import {
  PERSONAL_KEYS_COLUMN,
  PersonalKeys,
} from '#platform/event-store/personal-keys/personal-keys.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { readModels } from '../../../apps/read-models.js';
import { ACCOUNT_ID, CUSTOMER_ID, SAMPLES, type Samples } from './samples.js';

/**
 * The history is never rewritten, so every shape that an event ever had must stay readable. A fixture is an event as it
 * stands in the history, hash included, which is why no fixture is ever edited: `<Type>.v<version>.json`.
 *
 * `STORED_EVENTS=write npm test -- stored-events` writes those that are missing.
 */
type Fixture = Omit<StoredEvent, 'position'> & { previousHash: string | null };
type Named = Fixture & { file: string };

const FOLDER = 'test/support/stored-events';
const FILE = /^(\w+)[.]v(\d+)[.]json$/;
const KEY = createMasterKey(Buffer.alloc(32, 1));
/** Events that name only the changed fields, so older ones lack newer fields. Their data are `Partial`. */
const PARTIAL = new Set([
  'AccountUpdated',
  'CardUpdated',
  'CustomerMerged',
  'CustomerUpdated',
  'LocationUpdated',
  'PosterUpdated',
  'RewardUpdated',
]);
/** Events that do not change `updatedAt`. */
const UNSEEN = new Set([
  'CustomerResealed',
  'CardLinksRequested',
  'CustomerMessaged',
  'CustomerEmailBounced',
  'CustomerEmailRetried',
]);
const WRITE = process.env['STORED_EVENTS'] === 'write';

function createKeys(): PersonalKeys {
  const ring = new Keyring([KEY], KEY);
  const { purpose, getContext } = PERSONAL_KEYS_COLUMN;
  // The pool is never used: the only key is cached.
  const keys = new PersonalKeys(
    new Pool({ host: '127.0.0.1', port: 1 }),
    MasterKeys.withKeys(ring, new Map()),
    customerSubjects,
  );
  const wrapped = ring.seal(purpose, Buffer.alloc(32, 2), getContext(CUSTOMER_ID));
  keys.remember(
    CUSTOMER_ID,
    { wrapped, previous_wrapped: null, is_renewed: false },
    performance.now(),
  );
  return keys;
}

function readFixtures({ aggregate }: Samples): Named[] {
  const folder = `${FOLDER}/${aggregate.name}`;
  return readdirSync(folder).map((file) => {
    const match = FILE.exec(file);
    const fixture = JSON.parse(readFileSync(`${folder}/${file}`, 'utf8')) as Fixture;
    if (fixture.type !== match?.[1] || fixture.version !== Number(match[2])) {
      throw new Error(`${folder}/${file} holds a ${fixture.type} of version ${fixture.version}`);
    }
    return { ...fixture, file: `${aggregate.name}/${file}` };
  });
}

async function write(all: Samples, type: string): Promise<void> {
  const { aggregate, events } = all;
  const revision = Object.keys(events).indexOf(type);
  const at = `2026-03-01T10:00:0${revision}.000Z`;
  const newEvent: NewEvent = {
    id: randomUUID(),
    type,
    version: getCurrentVersion(aggregate, type),
    data: JSON.parse(JSON.stringify(events[type])) as JsonObject,
    meta: {
      accountId: ACCOUNT_ID,
      actor: { type: 'token', id: 1 },
      channel: 'api',
      requestId: 'fixture',
      occurredAt: at,
      recordedAt: at,
    },
  };
  const [event] = await createKeys().sealEvents([newEvent]);
  if (!event) throw new Error('sealing events keeps their number');
  const stream = `${aggregate.name}-1`;
  const previousHash = revision === 0 ? null : 'a'.repeat(64);
  const place = { stream, revision, previousHash };
  const fixture: Fixture = {
    ...place,
    ...event,
    hash: computeHash({ ...place, ...event, hash: '' }),
  };
  mkdirSync(`${FOLDER}/${aggregate.name}`, { recursive: true });
  const file = `${FOLDER}/${aggregate.name}/${type}.v${event.version}.json`;
  writeFileSync(file, `${JSON.stringify(fixture, null, 2)}\n`, { flag: 'wx' });
}

function computeHash({ stream, revision, previousHash, id, type, version, data, meta }: Fixture) {
  const before = previousHash === null ? null : { revision: revision - 1, hash: previousHash };
  return hashEvent(stream, before, { id, type, version, data, meta });
}

/** Reduces a value to its field names and types; null in a fixture stands for any type. */
function toShape(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toShape);
  if (typeof value !== 'object' || value === null) return value === null ? null : typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, value]) => [name, toShape(value)]));
}

/** Copies the sample with null where the fixture has null. */
function copyNulls(sample: unknown, fixture: unknown): unknown {
  if (fixture === null) return null;
  if (typeof sample !== 'object' || sample === null || Array.isArray(sample)) return sample;
  return Object.fromEntries(
    Object.entries(sample).map(([name, value]) => [
      name,
      copyNulls(value, (fixture as Record<string, unknown>)[name]),
    ]),
  );
}

async function readFixture({ aggregate }: Samples, fixture: Fixture) {
  const [decrypted] = await createKeys().openEvents([
    { ...fixture, position: { commit: 0n, prepare: 0n } },
  ]);
  if (!decrypted) throw new Error('decryption must return every event');
  return toRecorded(aggregate, decrypted);
}

it('SAMPLES names every aggregate with a read model', () => {
  expect(SAMPLES.map(({ aggregate }) => aggregate.name).toSorted()).toEqual(
    readModels.map(({ name }) => name).toSorted(),
  );
});

describe.each(SAMPLES.map((all): [string, Samples] => [all.aggregate.name, all]))(
  'stored events of a %s',
  (name, all) => {
    const { aggregate, events } = all;

    it.each(Object.keys(events))('have a fixture for each version of %s', async (type) => {
      const versions = Array.from({ length: getCurrentVersion(aggregate, type) }, (_, i) => i + 1);
      const listVersions = () =>
        readFixtures(all)
          .filter((fixture) => fixture.type === type)
          .map(({ version }) => version);
      if (WRITE && !listVersions().includes(versions.length)) await write(all, type);
      const missing = versions.filter((version) => !listVersions().includes(version));
      const beyond = listVersions().filter((version) => !versions.includes(version));
      // Missing: write the fixture before the version is released. Beyond: its upcast was removed.
      expect({ type, missing, beyond }).toEqual({ type, missing: [], beyond: [] });
    });

    it('have fixtures that match their hashes: never edit a fixture, write a new version', () => {
      for (const fixture of readFixtures(all)) {
        expect({ [fixture.file]: computeHash(fixture) }).toEqual({ [fixture.file]: fixture.hash });
      }
    });

    it('have samples of the same shape as the newest fixture: another shape needs a new version', async () => {
      const isNewest = ({ type, file }: Named) =>
        file === `${name}/${type}.v${getCurrentVersion(aggregate, type)}.json`;
      for (const fixture of readFixtures(all).filter(isNewest)) {
        const { data } = await readFixture(all, fixture);
        const { type, file } = fixture;
        expect({ [file]: toShape(data) }).toEqual({ [file]: toShape(events[type]) });
      }
    });

    it('are upcast and projected from every version', async () => {
      const fixtures = readFixtures(all);
      for (const fixture of fixtures) {
        const { file } = fixture;
        const now = await readFixture(all, fixture);
        expect({ [file]: toShape(now.data) }).toEqual({
          [file]: toShape(copyNulls(findSample(events, now), now.data)),
        });
        let state;
        for (const step of [...findEarlier(fixtures, fixture), fixture])
          state = aggregate.evolve(state, await readFixture(all, step));
        expect({ [file]: JSON.parse(JSON.stringify(state)) }).toEqual({ [file]: state });
        const changed = UNSEEN.has(fixture.type) ? [] : [fixture];
        expect(state).toMatchObject({ accountId: ACCOUNT_ID });
        for (const { meta } of changed) {
          expect(state).toMatchObject({ updatedAt: meta.recordedAt });
        }
      }
    });
  },
);

function findSample(
  events: Samples['events'],
  { type, data }: { type: string; data: object },
): object {
  const sample = events[type] ?? {};
  if (!PARTIAL.has(type)) return sample;
  return Object.fromEntries(Object.entries(sample).filter(([name]) => Object.hasOwn(data, name)));
}

/** Finds the newest fixture of each event before this one. */
function findEarlier(fixtures: Named[], { revision }: Fixture): Named[] {
  return Array.from({ length: revision }, (_, nth) => {
    const [newest] = fixtures
      .filter((fixture) => fixture.revision === nth)
      .toSorted((a, b) => b.version - a.version);
    if (!newest) throw new Error(`there is no fixture of event ${nth}`);
    return newest;
  });
}
