import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createDataSource, getPool } from '#platform/database/data-source.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { event } from '#platform/event-store/port/event-store.contract.js';
import type { NewEvent } from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { testConfig, createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';

const CUSTOMER = 7;

let database: TestDatabase;
let openKeys: () => PersonalKeys;
let close: () => Promise<void>;

beforeAll(async () => {
  database = await createTestDatabase();
  const config = testConfig(database.url);
  const source = await createDataSource(config, 'test').initialize();
  const masterKeys = new MasterKeys(getPool(source), config);
  await masterKeys.onModuleInit();
  openKeys = () => new PersonalKeys(getPool(source), masterKeys, customerSubjects);
  close = async () => {
    await source.destroy();
    await database.close();
  };
});
afterAll(() => close());

const createEvent = (note: string): NewEvent =>
  event('StampsEarned', { customerId: CUSTOMER, personal: { note } });

it('PersonalKeys decrypts events at once with a key that another process has just renewed', async () => {
  const [one, other, third] = [openKeys(), openKeys(), openKeys()];
  await one.create(CUSTOMER, 'customers');
  const before = await one.sealEvents([createEvent('oat milk')]);
  for (const keys of [other, third]) expect(await keys.openEvents(before)).toHaveLength(1);
  const renewal = one.renew(1, [CUSTOMER]);
  await eventually(
    async () =>
      (await database.query('select previous_wrapped from personal_keys')).rows[0]?.[
        'previous_wrapped'
      ],
    (previousKey) => previousKey !== null,
  );
  const events = [...before, ...(await one.sealEvents([createEvent('soy milk')]))];
  const notes = [{ note: 'oat milk' }, { note: 'soy milk' }];
  const getNotes = (openedEvents: NewEvent[]) =>
    openedEvents.map(({ data }) => (data as { personal: unknown }).personal);
  expect(getNotes(await other.openEvents(events))).toEqual(notes);
  expect(getNotes(await third.openEventsLazily(events))).toEqual(notes);
  await renewal;
});
