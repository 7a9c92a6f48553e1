import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../support/jest/eventually.js';
import { samples } from '../support/services/metrics.js';
import { findFreePort } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

const SLOW = 600_000;
/** An hour of a busy store: three stamps a second. */
const STAMPS = 10_800;
const CUSTOMER_CARDS = 60;
const CALLERS = 16;
const MB = 1024 * 1024;
/** Resident memory includes the heap for new objects. With bodies that kept their slabs, a dispatcher grew by 72 and 191. */
const MAX_GROWTH_MB = { external: 24, resident: 128 };

type Memory = { external: number; resident: number };

const COLLECT_GARBAGE = new URL('../support/services/collect-garbage.mjs', import.meta.url).href;

let service: LocalService;
let store: Client;
let second: Client;
const ports = { api: 0, dispatcher: 0 };
const { receive, startDispatcher } = useWebhooks(() => service);

beforeAll(async () => {
  ports.api = await findFreePort();
  service = await startService({
    METRICS_PORT: String(ports.api),
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
  });
  store = await service.newStore();
  ({ second } = await startSecondApi(service, store));
}, SLOW);

afterAll(async () => {
  await service.stop();
}, SLOW);

async function readMemory(process: keyof typeof ports): Promise<Memory> {
  const response = await fetch(`http://127.0.0.1:${ports[process]}/metrics`);
  const { value } = samples(await response.text());
  return {
    external: value('nodejs_external_memory_bytes') ?? Number.NaN,
    resident: value('process_resident_memory_bytes') ?? Number.NaN,
  };
}

async function stampAll(paths: string[], count: number): Promise<void> {
  let next = 0;
  const call = async () => {
    for (let i = next++; i < count; i = next++) {
      const path = paths[i % paths.length] ?? '';
      const { status } = await second.stamp(path, { note: `cup ${i}` });
      expect(status).toBe(200);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
}

describe('the memory of api and dispatcher', () => {
  it(
    'grows by less than its limits over the 10,800 stamps of a busy hour',
    async () => {
      const receiver = await receive();
      ports.dispatcher = await findFreePort();
      const dispatcher = await startDispatcher({
        METRICS_PORT: String(ports.dispatcher),
        NODE_OPTIONS: `--import ${COLLECT_GARBAGE}`,
      });
      await subscribe(store, receiver);
      await subscribe(store, receiver, { event: 'stamp.earned', payload_format: 'flat' });
      const paths: string[] = [];
      for (let i = 0; i < CUSTOMER_CARDS; i++) paths.push((await enrol(store)).path);
      // Warms up: compiled code, connections, the heap for new objects.
      await stampAll(paths, 1_000);
      await eventually(
        () => receiver.received.length,
        (count) => count >= 2_000,
      );
      const before = { api: await readMemory('api'), dispatcher: await readMemory('dispatcher') };

      await stampAll(paths, STAMPS);
      await eventually(
        () => receiver.received.length,
        (count) => count >= 2 * (1_000 + STAMPS),
      );

      for (const process of ['api', 'dispatcher'] as const) {
        const measureGrowth = async () => {
          // The api collects its garbage by itself while it works.
          await stampAll(paths, 20);
          dispatcher.signal('SIGUSR2');
          const { external, resident } = await readMemory(process);
          return {
            process,
            external: (external - before[process].external) / MB,
            resident: (resident - before[process].resident) / MB,
          };
        };
        await eventually(
          measureGrowth,
          ({ external, resident }) =>
            external < MAX_GROWTH_MB.external && resident < MAX_GROWTH_MB.resident,
        );
      }
    },
    SLOW,
  );
});
