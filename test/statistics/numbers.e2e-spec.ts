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

it.each([
  ['', 0],
  ['/numbers', 1],
])('reads all cards of a store for its page "%s" %d times', async (page, times) => {
  statements.clear();
  expect((await owner.get(`/app/stores/${store.accountId}${page}`)).status).toBe(200);
  const plans = await statements.explain(service.database, /outstanding_stamps/);
  expect(plans).toHaveLength(times);
  for (const plan of plans) expect(plan.match(/ on customer_cards /g)).toHaveLength(1);
});

it('reads no rewards for the statistics of the API', async () => {
  statements.clear();
  expect((await store.get(`${store.store}/statistics`)).status).toBe(200);
  const [plan, ...others] = await statements.explain(service.database, /outstanding_stamps/);
  expect(others).toEqual([]);
  expect(plan).not.toMatch(/ on rewards /);
});

it('counts the rewards that can be redeemed now, and the customers who have a card', async () => {
  const other = await service.newStore();
  const browser = new Browser(service);
  await browser.signIn(other.email, 'correct horse');
  const at = `/app/stores/${other.accountId}`;
  const readDue = async () => {
    const { text } = await browser.get(`${at}/numbers`);
    return Number(/Rewards ready to redeem<\/dt><dd>(\d+)/.exec(text)?.[1]);
  };
  const { path, card, rewards } = await enrol(other, { rewards: [2, 3, 9] });
  expect(await readDue()).toBe(0);
  await other.post(`${path}/stamp`, { stamps: 5 });
  expect(await readDue()).toBe(2);
  // Taken off again, stamps leave the rewards unlocked, and nothing to redeem them with.
  await other.post(`${path}/adjust`, { stamps: -3, reason: 'A mistake' });
  expect(await readDue()).toBe(1);
  const reward = `${other.store}/rewards/${rewards[0]?.id}`;
  await other.send('PATCH', reward, { reward: { stamps_required: 4 } });
  // An unlocked reward takes what it took when it was unlocked.
  expect(await readDue()).toBe(1);
  await other.send('PATCH', reward, { reward: { active: false } });
  expect(await readDue()).toBe(0);
  await other.send('PATCH', reward, { reward: { active: true } });
  await other.post(`${other.store}/rewards`, {
    reward: { card_id: card.id, name: 'Cheap', stamps_required: 1 },
  });
  expect(await readDue()).toBe(2);
  expect((await browser.get(`${at}/cards`)).text).toContain('1 customer · 4 rewards');
  expect((await browser.get(`${at}/cards/${card.id}`)).text).toContain('This changes 1 card.');
  await other.post(`${path.replace(/[/]customer_cards.*/, '')}/erase`);
  expect(await readDue()).toBe(0);
  expect((await browser.get(`${at}/cards`)).text).toContain('0 customers · 4 rewards');
  expect((await browser.get(`${at}/cards/${card.id}`)).text).not.toContain('This changes 1 card.');
});
