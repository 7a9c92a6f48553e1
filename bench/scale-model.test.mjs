import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coresIn, divide } from './cores.mjs';
import { demandOf, simulateCommits, wallsOf } from './scale-model.mjs';

const costs = {
  stampNode: 140,
  stampPostgres: 100,
  deliveryNode: 280,
  deliveryPostgres: 180,
  planNode: 80,
  flushMs: 1,
  commitGroup: 64,
  few: 16,
  lanes: 4,
  walBytes: 2_000,
  diskBytes: 3_000,
};
const load = { stores: 10, stamps: 1_000, deliveries: 1, databases: 1, cores: 4 };

test('a load takes what its operations take, at cores that are 70 % busy', () => {
  const demand = demandOf(costs, load);
  assert.equal(demand.apiCores.toFixed(3), '0.200');
  assert.equal(demand.dispatcherCores.toFixed(3), '0.400');
  assert.equal(demand.postgresCores.toFixed(3), '0.400');
  assert.equal(demand.leaderBusy.toFixed(3), '0.080');
  assert.equal(demand.walMegabytes, 2);
  assert.equal(demand.gigabytesADay.toFixed(1), '259.2');
});

test('stores split over databases leave each its share, and the processes the whole', () => {
  const [one, four] = [1, 4].map((databases) => demandOf(costs, { ...load, databases }));
  assert.equal(four.postgresCores, one.postgresCores / 4);
  assert.equal(four.leaderBusy, one.leaderBusy / 4);
  assert.equal(four.apiCores, one.apiCores);
});

test('the narrowest part is the first wall', () => {
  const walls = wallsOf(costs, load);
  assert.deepEqual(
    walls.map(([name, stamps]) => [name, Math.round(stamps)]),
    [
      ['the leading dispatcher', 8_750],
      ['processors of PostgreSQL', 10_000],
      ['flushes of one api', 64_000],
    ],
  );
  assert.equal(wallsOf(costs, { ...load, deliveries: 3 })[0][0], 'processors of PostgreSQL');
});

test('an idle api makes a stamp wait for its own commit only; a busy one fills its groups', () => {
  const random = () => 0.5;
  const idle = simulateCommits(costs, { stamps: 10, seconds: 10, random });
  assert.equal(idle.p99.toFixed(3), '1.100');
  assert.equal(idle.group, 1);
  const busy = simulateCommits(costs, { stamps: 10_000, seconds: 1, random });
  assert.ok(busy.group > 5);
  assert.ok(busy.p50 > idle.p50);
});

test('an api that gets more than it commits falls behind', () => {
  const slow = { ...costs, flushMs: 10 };
  const { group, left } = simulateCommits(slow, { stamps: 10_000, seconds: 1, random: () => 0.5 });
  assert.ok(group > 60);
  assert.ok(left > 1_000);
});

test('cores are divided among service, PostgreSQL and load generator', () => {
  assert.deepEqual(coresIn('0-2,8'), [0, 1, 2, 8]);
  assert.deepEqual(divide([0, 1, 2, 8]), { service: '0,1', postgres: '2', load: '8' });
  assert.throws(() => divide([0, 1]), /needs at least 3 cores/);
});
