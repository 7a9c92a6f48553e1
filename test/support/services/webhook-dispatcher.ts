import { afterAll, afterEach, expect } from '@jest/globals';
import type { WebhookSubscriptionSecretJson } from '#outbound/subscriptions/webhook-subscription.dto.js';
import { createTestEnvironment } from '../database/database.js';
import { eventually } from '../jest/eventually.js';
import { startProgram, type Program } from './program.js';
import { Receiver } from '../emulators/webhook-receiver.js';
import type { Client, Service } from './service.js';

/** A real dispatcher process next to a service, which it stops before; waits until it handles stop signals. */
export async function startDispatcher(
  service: Service,
  environment: NodeJS.ProcessEnv = {},
): Promise<Program> {
  const dispatcher = startProgram(
    'dist/apps/dispatcher/main.js',
    createTestEnvironment(service.database.url, {
      ...service.environment,
      ...environment,
      LOG_LEVEL: 'info',
    }),
  );
  service.onStop(() => dispatcher.kill('SIGTERM'));
  await eventually(dispatcher.output, (text) => text.includes('started'));
  return dispatcher;
}

/**
 * Dispatchers and receivers that end with each test of a file, or with the file if its tests share a dispatcher.
 * @param service must allow insecure targets
 */
export function useWebhooks(service: () => Service) {
  const dispatchers: Program[] = [];
  const receivers: Receiver[] = [];
  let sharedDispatcher: Program | undefined;

  const stopReceivers = () => Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
  const stopSharedDispatcher = async () => {
    await sharedDispatcher?.kill('SIGTERM');
    sharedDispatcher = undefined;
  };
  afterEach(async () => {
    await Promise.all(dispatchers.splice(0).map((dispatcher) => dispatcher.kill('SIGTERM')));
    // A shared dispatcher goes on sending to them: none may get the port of another.
    if (!sharedDispatcher) await stopReceivers();
  });
  afterAll(async () => {
    await stopSharedDispatcher();
    await stopReceivers();
  });
  const start = (environment: NodeJS.ProcessEnv = {}): Promise<Program> =>
    startDispatcher(service(), { WEBHOOK_TIME_SCALE: '100', ...environment });

  const receive = async (...[reply]: Parameters<typeof Receiver.start>): Promise<Receiver> => {
    const receiver = await Receiver.start(reply);
    receivers.push(receiver);
    return receiver;
  };
  const queryRows = async <R>(text: string, ...values: unknown[]): Promise<R[]> =>
    (await service().database.query(text, values)).rows as R[];
  return {
    receive,
    /** Queries the service's database. */
    queryRows,
    /** Lists the statuses of the deliveries to a subscription, in their order. */
    listStatuses: async ({ id }: { id: number }): Promise<string[]> =>
      (
        await queryRows<{ status: string }>(
          'select status from webhook_deliveries where subscription_id = $1 order by id',
          id,
        )
      ).map(({ status }) => status),
    /** A receiver that does not respond until it is released. */
    receiveHeld: async (): Promise<{ receiver: Receiver; release: () => void }> => {
      let release: () => void = () => undefined;
      const releaseSignal = new Promise<void>((resolve) => {
        release = resolve;
      });
      const receiver = await receive(async () => {
        await releaseSignal;
        return { status: 200 };
      });
      return { receiver, release };
    },
    /** A dispatcher of the test's own: by default a hundred times as fast as real ones. */
    startDispatcher: async (environment: NodeJS.ProcessEnv = {}): Promise<Program> => {
      await stopSharedDispatcher();
      const dispatcher = await start(environment);
      dispatchers.push(dispatcher);
      return dispatcher;
    },
    /** The dispatcher of all tests of the file that neither stop it nor need it to start late. */
    shareDispatcher: async (): Promise<Program> => (sharedDispatcher ??= await start()),
  };
}

/** The events about customers and their cards, for tests to which cards and rewards are of no interest. */
export const CUSTOMER_EVENTS = [
  'customer.created',
  'customer.updated',
  'customer_card.created',
  'stamp.earned',
  'stamp.removed',
  'reward.unlocked',
  'reward.redeemed',
];

/** Subscribes to stamps, unless the body names something else. */
export async function subscribe(
  store: Client,
  receiver: Receiver,
  body: object = { event: 'stamp.earned' },
): Promise<WebhookSubscriptionSecretJson> {
  const response = await store.post<WebhookSubscriptionSecretJson>(
    `${store.store}/webhook_subscriptions`,
    { target_url: receiver.url, ...body },
  );
  expect(response.status).toBe(201);
  return response.body;
}

/** Stamps a card as clients do: again while the machine is too busy for the service, which then has written nothing. */
export async function stamp(
  store: Client,
  path: string,
  times = 1,
  body: object = {},
): Promise<void> {
  for (let i = 0; i < times; i++) {
    const { status } = await eventually(
      () => store.stamp(path, { ...body }),
      (response) => response.status !== 503,
    );
    expect(status).toBe(200);
  }
}

/** Lists the balances that a receiver got, in the order of arrival. */
export const listReceivedBalances = ({ events }: Receiver): unknown[] =>
  events.map(({ body }) => (body['data'] as { stamps_count: number }).stamps_count);
