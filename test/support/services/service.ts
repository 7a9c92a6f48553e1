import { randomUUID } from 'node:crypto';
import { CommandBus, type Command } from '@nestjs/cqrs';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { ApiModule } from '../../../apps/api/api.module.js';
import { CreateAccount } from '#loyalty/accounts/account.commands.js';
import type { ChangedCustomerCardJson } from '#loyalty/stamping/customer-card.dto.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { EventStore, type StoredEvent } from '#platform/event-store/port/event-store.js';
import { createServer } from '../../../apps/api/server.js';
import { CreateUser } from '#identity/identity.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { AddMember } from '#identity/member.commands.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { rememberExchange } from '../http/exchanges.mjs';
import {
  testConfig,
  createTestDatabase,
  getEngineSettings,
  type TestDatabase,
} from '../database/database.js';
import { readAllEvents, waitUntilReadable } from '../database/event-store.js';

export const cli: AuditedWriter = {
  actor: { type: 'system', id: 0 },
  channel: 'cli',
  requestId: 'test',
};

export type ApiResponse<T = unknown> = {
  status: number;
  headers: Headers;
  text: string;
  body: T;
};

/** Calls a service as its clients do: real HTTP, a token, JSON. */
export class Client {
  constructor(
    readonly baseUrl: string,
    readonly accountId: number,
    readonly token: string | null,
  ) {}

  get store(): string {
    return `/api/v1/accounts/${this.accountId}`;
  }

  async send<T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<ApiResponse<T>> {
    const response = await fetch(this.baseUrl + path, {
      method,
      headers: {
        ...(this.token !== null && { authorization: `Bearer ${this.token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: isBytes(body) ? body : JSON.stringify(body) }),
      // Required by fetch for bodies that are streams.
      duplex: 'half',
    });
    const text = await response.text();
    rememberExchange({ method, path, body, status: response.status, text });
    const type = response.headers.get('content-type') ?? '';
    const json = text !== '' && /[/+]json(;|$)/.test(type);
    // A file is checked as the text that it is.
    const file = /^(text\/csv|application\/x-ndjson)(;|$)/.test(type) ? text : undefined;
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: (json ? JSON.parse(text) : file) as T,
    };
  }

  get<T>(path: string): Promise<ApiResponse<T>> {
    return this.send<T>('GET', path);
  }

  post<T>(path: string, body?: unknown): Promise<ApiResponse<T>> {
    return this.send<T>('POST', path, body);
  }

  /**
   * Adds stamps to a customer card.
   * @param path of the customer card, or a path in whose place one is looked for
   * @param fields of the request, or the number of stamps
   */
  stamp(
    path: string,
    fields: number | object = 1,
    headers: Record<string, string> = {},
  ): Promise<ApiResponse<ChangedCustomerCardJson>> {
    const body = typeof fields === 'number' ? { stamps: fields } : { stamps: 1, ...fields };
    return this.send('POST', `${path}/stamp`, body, headers);
  }

  /** Reads how many stamps a customer card has. @param path of the customer card */
  async readBalance(path: string): Promise<number> {
    return (await this.get<{ stamps_count: number }>(path)).body.stamps_count;
  }
}

function isBytes(body: unknown): body is string | Uint8Array<ArrayBuffer> | ReadableStream {
  return typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
}

export type Service = {
  database: TestDatabase;
  /** Settings, besides the database, for another process of the same service. */
  environment: NodeJS.ProcessEnv;
  baseUrl: string;
  /** Every event so far. */
  history: () => Promise<StoredEvent[]>;
  /** Does what only operators can do, in the way that their command line does it. */
  execute: <R>(command: Command<R>) => Promise<R>;
  /** A new store with a token for it. */
  newStore: (attributes?: StoreAttributes) => Promise<Client & { email: string }>;
  /** Registers what has to stop before the service does. The last registered stops first. */
  onStop: (stop: () => Promise<unknown>) => void;
  stop: () => Promise<void>;
};

/** A service in this process, whose parts a test can reach. */
export type LocalService = Service & { app: NestFastifyApplication };

/** The api in this process, on a free port unless one is given, with its own database. */
export async function startService(
  overrides: NodeJS.ProcessEnv = {},
  existingDatabase?: TestDatabase,
  port = 0,
): Promise<LocalService> {
  const database = existingDatabase ?? (await createTestDatabase());
  const environment = { ...getEngineSettings(database.url), ...overrides };
  const config = testConfig(environment['DATABASE_URL'] ?? database.url, environment);
  const app = await createServer(ApiModule.forRoot(config), config);
  await app.listen(port, '127.0.0.1');
  const baseUrl = await app.getUrl();
  const bus = app.get(CommandBus);
  const execute: Service['execute'] = (command) => bus.execute(command);
  const { onStop, stopDependents } = createStops();
  return {
    app,
    database,
    environment,
    baseUrl,
    history: async () => {
      await waitUntilReadable(database);
      return readAllEvents(app.get(EventStore));
    },
    execute,
    newStore: (attributes) => createStore(baseUrl, execute, attributes),
    onStop,
    stop: async () => {
      await stopDependents();
      await app.close();
      await database.close();
    },
  };
}

const startedSessions = new WeakSet<ProcessSession>();

/**
 * Starts the session of a service as its program does, once: jobs that become due are announced on it. Call it when the first
 * queues exist; of queues that are created later it does not end the leases of dead processes.
 */
export function startSession({ app }: LocalService): void {
  const session = app.get(ProcessSession, { strict: false });
  if (startedSessions.has(session)) return;
  startedSessions.add(session);
  // The service may stop meanwhile.
  void session.start('api').catch(() => undefined);
}

export function createStops() {
  const stops: (() => Promise<unknown>)[] = [];
  return {
    onStop: (stop: () => Promise<unknown>): void => void stops.unshift(stop),
    stopDependents: async (): Promise<void> => {
      for (const stop of stops) await stop();
    },
  };
}

/** @property locale its region is the country that the store is in */
type StoreAttributes = { timeZone?: string; locale?: string; country?: string };

/** Creates a store whose owner has a token. */
export async function createStore(
  baseUrl: string,
  execute: Service['execute'],
  { timeZone = 'UTC', locale = 'en', country }: StoreAttributes = {},
): Promise<Client & { email: string }> {
  const email = `${randomUUID()}@owner.example`;
  await execute(new CreateUser(cli, email, 'Owner', 'correct horse'));
  const { id } = await execute(
    new CreateAccount(cli, {
      name: 'Corner Café',
      storeName: null,
      personal: false,
      timeZone,
      locale,
      ...(country !== undefined && { country }),
    }),
  );
  await execute(new AddMember(cli, id, email, 'owner'));
  const { token } = await execute(new CreateToken(cli, email, 'till'));
  return Object.assign(new Client(baseUrl, id, token), { email });
}
