import { afterAll, beforeAll } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { ProcessSession } from '#platform/database/process-session.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { WebhookDispatch } from '#outbound/dispatch/webhook-dispatch.service.js';
import { DispatcherModule } from '../../../apps/dispatcher/dispatcher.module.js';
import { testConfig } from '../database/database.js';
import { eventually } from '../jest/eventually.js';
import { Receiver } from '../emulators/webhook-receiver.js';
import type { Client, Service } from './service.js';
import { CUSTOMER_EVENTS, subscribe } from './webhook-dispatcher.js';

const FINISH_WITHIN_MS = 10_000;

export type Sent = { type: string; data: Record<string, unknown> };

/**
 * Sends webhooks next to the service of a file of tests, and receives everything that is sent. They are sent in this process,
 * since a dispatcher of its own takes seconds of processor time to start.
 * @param service must allow insecure targets
 */
export function useSentEvents(service: { running: Service }) {
  const receivers: Receiver[] = [];

  beforeAll(async () => {
    const { database, environment, onStop } = service.running;
    const module = DispatcherModule.forRoot(testConfig(database.url, environment));
    const dispatcher = await NestFactory.createApplicationContext(module, { logger: ['error'] });
    const dispatch = dispatcher.get(WebhookDispatch);
    await dispatcher.get(ProcessSession, { strict: false }).start('dispatcher');
    const stopping = new AbortController();
    const maintenance = dispatcher.get(EventStore).maintain(stopping.signal);
    dispatch.start();
    onStop(async () => {
      stopping.abort();
      await maintenance;
      await dispatch.stop(FINISH_WITHIN_MS);
      await dispatcher.close();
    });
  });
  afterAll(() => Promise.all(receivers.map((receiver) => receiver.stop())));
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
