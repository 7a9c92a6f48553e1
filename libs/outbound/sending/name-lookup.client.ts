import { Injectable } from '@nestjs/common';
import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { ExpiringCache } from '#platform/kernel/expiring-cache.js';
import { withTimeout } from '#platform/kernel/with-timeout.js';
import { isLocalName, LOCAL_ADDRESSES } from './target-address.js';

const HOSTS_FILE = '/etc/hosts';
/** How long to wait for a server before the query is repeated; the second wait is twice as long. */
const QUERY_TIMEOUT_MS = 1_500;
const MAX_TRIES = 2;
const RESOLVE_TIMEOUT_MS = 5_000;
const MAX_NAMES = 10_000;
const MAX_TTL_MS = 30_000;
const FAILURE_TTL_MS = 5_000;

export type ResolvedAddress = { address: string; family: number };

export type ResolvedName = {
  /** At least one. */
  addresses: ResolvedAddress[];
  /** False when only one of the IPv4 and IPv6 queries got a response: the name may have more addresses than these. */
  isComplete: boolean;
};

export class UnresolvedNameError extends Error {
  readonly code = 'ENOTFOUND';
}

/**
 * Resolves names through c-ares rather than the system's own lookup. That has four threads for the whole process, so a
 * few names whose servers do not respond would delay all others. Like the system's lookup, this one reads the hosts
 * file first; unlike it, it appends no search domains.
 */
@Injectable()
export class NameLookup {
  private readonly cache = new ExpiringCache<string, ResolvedName | UnresolvedNameError>({
    max: MAX_NAMES,
    ttl: FAILURE_TTL_MS,
    fetchMethod: async (name, _stale, { options }) => {
      const { result, ttlMs } = await this.resolveName(name);
      // 0 would keep it forever.
      options.ttl = Math.max(1, ttlMs);
      return result;
    },
  });

  /** Resolves a name, from the cache if possible. @throws UnresolvedNameError */
  async resolve(name: string): Promise<ResolvedName> {
    if (isLocalName(name)) return { addresses: LOCAL_ADDRESSES.map(toAddress), isComplete: true };
    const result = await this.cache.fetch(name.toLowerCase().replace(/\.$/, ''));
    if (result === undefined || result instanceof UnresolvedNameError) {
      throw result ?? new UnresolvedNameError(`${name} was not looked up`);
    }
    return result;
  }

  /** Resolves a name within a time limit. @returns no addresses when that was not possible in time */
  async resolveWithin(name: string, milliseconds: number): Promise<string[]> {
    try {
      const resolved = await withTimeout(
        this.resolve(name),
        milliseconds,
        () => new UnresolvedNameError(`${name} was not resolved in time`),
      );
      return resolved.isComplete ? resolved.addresses.map(({ address }) => address) : [];
    } catch (error) {
      if (!(error instanceof UnresolvedNameError)) throw error;
      // A name that does not resolve is accepted: it may do so later.
      return [];
    }
  }

  /** Creates a resolver per name, which picks up changes of resolv.conf and can be cancelled apart from others. */
  protected createResolver(): Resolver {
    return new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: MAX_TRIES });
  }

  private async resolveName(
    name: string,
  ): Promise<{ result: ResolvedName | UnresolvedNameError; ttlMs: number }> {
    const listed = findInHosts(await readHostsFile(), name);
    if (listed.length > 0)
      return { result: { addresses: listed, isComplete: true }, ttlMs: MAX_TTL_MS };
    const resolver = this.createResolver();
    const timer = setTimeout(() => resolver.cancel(), RESOLVE_TIMEOUT_MS);
    try {
      const results = await Promise.allSettled([
        resolver.resolve4(name, { ttl: true }),
        resolver.resolve6(name, { ttl: true }),
      ]);
      const records = results.flatMap((result) =>
        result.status === 'fulfilled' ? result.value : [],
      );
      const errors = results.flatMap((result) =>
        result.status === 'rejected' && !isNotFound(result.reason) ? [result.reason] : [],
      );
      if (records.length === 0) {
        const reason = errors.length > 0 ? getErrorMessage(errors[0]) : 'there is no such name';
        return { result: new UnresolvedNameError(`${name}: ${reason}`), ttlMs: FAILURE_TTL_MS };
      }
      const isComplete = errors.length === 0;
      return {
        result: {
          addresses: records.map(({ address }) => toAddress(address)),
          isComplete,
        },
        ttlMs: Math.min(
          isComplete ? MAX_TTL_MS : FAILURE_TTL_MS,
          ...records.map(({ ttl }) => ttl * 1000),
        ),
      };
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Finds the addresses that a hosts file (hosts(5)) lists for a name. */
export function findInHosts(file: string, name: string): ResolvedAddress[] {
  return file.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    return isIP(address) !== 0 && names.includes(name) ? [toAddress(address)] : [];
  });
}

function toAddress(address: string): ResolvedAddress {
  return { address, family: isIP(address) };
}

async function readHostsFile(): Promise<string> {
  try {
    return await readFile(HOSTS_FILE, 'utf8');
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return '';
    throw error;
  }
}

function isNotFound(error: unknown): boolean {
  const code = getErrorCode(error);
  return code === 'ENODATA' || code === 'ENOTFOUND';
}

/** Returns the error's own code, or that of its cause; of several errors, the code of the first. */
export function getErrorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  if ('errors' in error && Array.isArray(error.errors)) return getErrorCode(error.errors[0]);
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? getErrorCode(error.cause) : undefined;
}
