import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import {
  findConnectionStringError,
  parseConnectionString,
  type Credentials,
} from '#platform/event-store/eventstoredb/connection-string.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { getErrorMessage } from '#platform/kernel/errors.js';

const TIMEOUT_MS = 10_000;

/**
 * Parses user and password as the client does.
 * @throws ConfigError where the connection string names no user or no password
 */
export function parseUser(url: string, setting: string): Credentials {
  const problem = url === '' ? undefined : findConnectionStringError(url);
  if (problem !== undefined) throw new ConfigError(`${setting}: ${problem}`);
  const { credentials } = parseConnectionString(url);
  if (credentials === null) {
    throw new ConfigError(
      `${setting} must name a user and a password: kurrentdb://name:password@host`,
    );
  }
  return credentials;
}

/**
 * Creates a user without any right of its own, over the HTTP API: gRPC clients cannot. One that exists with this
 * password stays as it is. Any node will do, since followers forward the request to their leader.
 * @param adminUrl connection string of an administrator
 * @throws ConfigError where the server refuses
 */
export async function createUser(adminUrl: string, user: Credentials): Promise<void> {
  const admin = parseUser(adminUrl, 'EVENT_STORE_ADMIN_URL');
  const { hosts, isTls, caFile } = parseConnectionString(adminUrl);
  if (!isTls) throw new ConfigError('EVENT_STORE_ADMIN_URL: the server has no users without TLS.');
  const ca = caFile === null ? undefined : readFileSync(caFile);
  const agent = new Agent({ connect: { ...(ca && { ca }), timeout: TIMEOUT_MS } });
  try {
    const status = await tryHosts(hosts, async (host) => {
      const { statusCode, body } = await request(`https://${host}/users/`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`${admin.name}:${admin.password}`).toString('base64')}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({
          loginName: user.name,
          fullName: 'Inkpad',
          groups: [],
          password: user.password,
        }),
        headersTimeout: TIMEOUT_MS,
        bodyTimeout: TIMEOUT_MS,
        dispatcher: agent,
      });
      await body.dump();
      return statusCode;
    });
    assertUserCreated(status, user.name);
  } finally {
    await agent.close();
  }
}

async function tryHosts<T>(hosts: string[], ask: (host: string) => Promise<T>): Promise<T> {
  let failure: unknown;
  for (const host of hosts) {
    try {
      return await ask(host);
    } catch (error) {
      failure = error;
    }
  }
  throw new ConfigError(
    `KurrentDB (EventStoreDB) cannot be reached at EVENT_STORE_ADMIN_URL: ${getErrorMessage(failure)}`,
    { cause: failure },
  );
}

function assertUserCreated(status: number, name: string): void {
  if (status === 201) return;
  if (status === 409) {
    throw new ConfigError(
      `KurrentDB (EventStoreDB) has a user ${name} with another password: correct EVENT_STORE_URL, or have an administrator reset it there.`,
    );
  }
  const why = status === 401 || status === 403 ? 'access denied' : `status ${status}`;
  throw new ConfigError(
    `KurrentDB (EventStoreDB) cannot create the user ${name} at EVENT_STORE_ADMIN_URL: ${why}`,
  );
}
