import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { MEASURED_DELAYS } from '../support/emulators/eventstoredb/latency.mjs';
import {
  startEventStoreDbCluster,
  type EventStoreDbCluster,
} from '../support/emulators/eventstoredb/cluster.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Three nodes as slow as real ones, of which another one leads now and then, below the api in this process. */

const TILLS = 8;
/** Shorter, and longer, than the client looks for a leader. */
const ELECTIONS_MS = [500, 3_000];
const SLOW = 300_000;

let cluster: EventStoreDbCluster;
let service: LocalService;
let store: Client;

beforeAll(async () => {
  cluster = await startEventStoreDbCluster({ delays: MEASURED_DELAYS });
  service = await startService({ EVENT_STORE_URL: cluster.connectionString });
  store = await service.newStore();
}, SLOW);
afterAll(async () => {
  await service.stop();
  await cluster.stop();
}, SLOW);

it(
  'stamps that were confirmed are stored once when the leader of the event store changes',
  async () => {
    const paths: string[] = [];
    for (let i = 0; i < TILLS; i++) paths.push((await enrol(store)).path);
    const requestIds: string[] = [];
    const confirmedIds: string[] = [];
    const refusedIds: string[] = [];
    let isStamping = true;
    const stampOnce = async (path: string, requestId: string, headers = {}) => {
      const { status } = await store.send(
        'POST',
        `${path}/stamp`,
        { stamps: 1 },
        { 'x-request-id': requestId, ...headers },
      );
      expect([200, 409, 503]).toContain(status);
      return status;
    };
    const tills = paths.map(async (path, till) => {
      for (let n = 0; isStamping; n++) {
        const requestId = `leader-${till}-${n}`;
        requestIds.push(requestId);
        // Every second till repeats a request that failed, with the same key.
        const status =
          till % 2 === 1
            ? await eventually(
                () => stampOnce(path, requestId, { 'idempotency-key': requestId }),
                (last) => last === 200,
              )
            : await stampOnce(path, requestId);
        (status === 200 ? confirmedIds : refusedIds).push(requestId);
      }
    });
    const waitForStamps = async () => {
      const before = confirmedIds.length;
      await eventually(
        () => confirmedIds.length,
        (count) => count > before + 100,
      );
    };
    await waitForStamps();
    for (const electionMs of ELECTIONS_MS) {
      const former = cluster.leader;
      await cluster.changeLeader(electionMs);
      await waitForStamps();
      await former?.listenAgain();
    }
    isStamping = false;
    await Promise.all(tills);

    const expected = new Set(requestIds);
    const storedIds = (await service.history())
      .filter(({ type, meta }) => type === 'StampsEarned' && expected.has(meta.requestId))
      .map(({ meta }) => meta.requestId);
    expect(storedIds.length).toBe(new Set(storedIds).size);
    expect(confirmedIds.filter((id) => !storedIds.includes(id))).toEqual([]);
    expect(refusedIds.filter((id) => storedIds.includes(id))).toEqual([]);
    const { rows } = await service.database.query<{ stamps: number }>(
      `select sum((state ->> 'stampsCount')::bigint)::int as stamps from customer_cards`,
    );
    expect(rows).toEqual([{ stamps: storedIds.length }]);
    expect((await service.database.query('select from es.intents')).rowCount).toBe(0);
  },
  SLOW,
);
