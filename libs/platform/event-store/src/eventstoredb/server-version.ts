import type { Logger } from '@nestjs/common';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { getErrorMessage } from '#kernel/errors.js';
import { parseConnectionString } from './connection-string.js';

const TIMEOUT_MS = 3_000;

/** The supported versions: those that were tried, and those that speak the same protocol (docs/engines.md). */
const SUPPORTED: Record<Product, readonly string[]> = {
  EventStoreDB: ['23.10', '24.10'],
  KurrentDB: ['25', '26'],
};

type Product = 'EventStoreDB' | 'KurrentDB';

export type ServerVersion = { product: Product; version: string };

/**
 * Parses the response to `/info`. KurrentDB calls its version dbVersion, EventStoreDB esVersion.
 * @returns undefined for anything else
 */
export function parseServerInfo(info: unknown): ServerVersion | undefined {
  const { dbVersion, esVersion } = (info ?? {}) as Record<string, unknown>;
  const version = dbVersion ?? esVersion;
  if (typeof version !== 'string') return undefined;
  const major = Number.parseInt(version, 10);
  return { product: major >= 25 ? 'KurrentDB' : 'EventStoreDB', version };
}

/** Finds what to say about a version that is not supported. */
export function findVersionWarning({ product, version }: ServerVersion): string | undefined {
  if (SUPPORTED[product].some((start) => version.startsWith(`${start}.`))) return undefined;
  return `${product} ${version} is not supported: use EventStoreDB ${SUPPORTED.EventStoreDB.join(' or ')}, or KurrentDB ${SUPPORTED.KurrentDB.join(' or ')}`;
}

/**
 * Asks the servers of a connection string for their version, over HTTP, since gRPC has no such request.
 * @throws Error when no server responds within three seconds each
 */
export async function fetchServerVersion(url: string): Promise<ServerVersion | undefined> {
  const { credentials, hosts, isTls, caFile } = parseConnectionString(url);
  const ca = isTls && caFile !== null ? readFileSync(caFile) : undefined;
  const agent = new Agent({ connect: { ...(ca && { ca }), timeout: TIMEOUT_MS } });
  const authorization =
    credentials &&
    `Basic ${Buffer.from(`${credentials.name}:${credentials.password}`).toString('base64')}`;
  try {
    let failure: unknown;
    for (const host of hosts) {
      try {
        const { body } = await request(`${isTls ? 'https' : 'http'}://${host}/info`, {
          dispatcher: agent,
          headers: authorization === null ? {} : { authorization },
          headersTimeout: TIMEOUT_MS,
          bodyTimeout: TIMEOUT_MS,
        });
        return parseServerInfo(await body.json());
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  } finally {
    await agent.destroy();
  }
}

/** Logs which version a process works with, and warns where it was not tested. A start does not depend on it. */
export async function logServerVersion(
  url: string,
  log: Pick<Logger, 'log' | 'warn'>,
): Promise<void> {
  try {
    const server = await fetchServerVersion(url);
    if (!server) throw new Error('/info names no version');
    log.log(`${server.product} ${server.version}`);
    const warning = findVersionWarning(server);
    if (warning !== undefined) log.warn(warning);
  } catch (error) {
    log.warn(`The version of the event store is not known: ${getErrorMessage(error)}`);
  }
}
