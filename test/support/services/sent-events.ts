import { afterAll, beforeAll } from '@jest/globals';
import { eventually } from '../jest/eventually.js';
import type { Program } from './program.js';
import { Receiver } from '../emulators/webhook-receiver.js';
import type { Client, Service } from './service.js';
import { CUSTOMER_EVENTS, startDispatcher, subscribe } from './webhook-dispatcher.js';

export type Sent = { type: string; data: Record<string, unknown> };

/**
 * Runs a dispatcher next to the service of a file of tests, and receivers of everything that it sends.
 * @param service must allow insecure targets
 */
export function useSentEvents(service: { running: Service }) {
  const receivers: Receiver[] = [];
  let dispatcher: Program;

  beforeAll(async () => {
    dispatcher = await startDispatcher(service.running);
  });
  afterAll(async () => {
    await dispatcher.kill('SIGTERM');
    await Promise.all(receivers.map((receiver) => receiver.stop()));
  });
  return {
    async subscribe(store: Client): Promise<Receiver> {
      const receiver = await Receiver.start();
      receivers.push(receiver);
      await subscribe(store, receiver, { events: CUSTOMER_EVENTS });
      return receiver;
    },
  };
}

/**
 * Everything sent about a customer so far: events of one customer are sent in order, so once one more stamp
 * has arrived, nothing before it is missing.
 * @param path of a customer card that can take one more stamp
 */
export async function sentSoFar(store: Client, path: string, receiver: Receiver): Promise<Sent[]> {
  const external_ref = `last ${path} ${receiver.received.length}`;
  const { status, text } = await store.stamp(path, { external_ref });
  if (status !== 200) throw new Error(text);
  const sent = () =>
    receiver.events.map(({ body }) => ({
      type: String(body['type']),
      data: body['data'] as Sent['data'],
    }));
  const isLast = ({ data }: Sent) => data['external_ref'] === external_ref;
  const all = await eventually(sent, (events) => events.some(isLast));
  return all.slice(0, all.findIndex(isLast));
}
