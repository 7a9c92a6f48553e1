import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { Browser } from '../support/browser/browser.js';
import { RecordedStatements } from '../support/database/recorded-statements.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;
let statements: RecordedStatements;

beforeAll(async () => {
  service = await startService();
  statements = new RecordedStatements(service.app.get(Pool));
  store = await service.newStore();
  await enrol(store);
  owner = new Browser(service);
  await owner.signIn(store.email, 'correct horse');
});
afterAll(() => service?.stop());

it.each(['', '/numbers'])('reads all cards of a store once for its page "%s"', async (page) => {
  statements.clear();
  expect((await owner.get(`/app/stores/${store.accountId}${page}`)).status).toBe(200);
  expect(await statements.explain(service.database, /outstanding_stamps/)).toHaveLength(1);
});
