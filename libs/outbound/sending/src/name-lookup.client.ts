import { Injectable } from '@nestjs/common';
import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { getErrorMessage } from '#kernel/errors.js';
import { ExpiringCache } from '#kernel/expiring-cache.js';
import { isLocalName, LOCAL_ADDRESSES } from './target-address.js';

const HOSTS_FILE = '/etc/hosts';
/** How long to wait for a server before asking it again; the second wait is twice as long. */
const TRY_MS = 1_500;
const TRIES = 2;
const WITHIN_MS = 5_000;
const NAMES_KEPT = 10_000;
const MOST_MS = 30_000;
const FAILED_MS = 5_000;

export type Address = { address: string; family: number };

export type Found = {
  /** At least one. */
  addresses: Address[];
  /** False when only one of the IPv4 and IPv6 queries was answered: the name may have more addresses than these. */
  complete: boolean;
};

export class UnresolvedNameError extends Error {
  readonly code = 'ENOTFOUND';
}

/**
 * Resolves names through c-ares rather than the system's own lookup. That has four threads for the whole process, so a
 * few names whose servers do not answer would delay all others. Like the system's lookup, this one reads the hosts file
 * first; unlike it, it appends no search domains.
 */
@Injectable()
export class NameLookup {
  private readonly found = new ExpiringCache<string, Found | UnresolvedNameError>({
    max: NAMES_KEPT,
    ttl: FAILED_MS,
    fetchMethod: async (name, _stale, { options }) => {
      const { found, keepMs } = await this.ask(name);
      // 0 would keep it forever.
      options.ttl = Math.max(1, keepMs);
      return found;
    },
  });

  /** @throws UnresolvedNameError */
  async addressesOf(name: string): Promise<Found> {
    if (isLocalName(name)) return { addresses: LOCAL_ADDRESSES.map(addressOf), complete: true };
    const found = await this.found.fetch(name.toLowerCase().replace(/\.$/, ''));
    if (found === undefined || found instanceof UnresolvedNameError) {
      throw found ?? new UnresolvedNameError(`${name} was not looked up`);
    }
    return found;
  }

  /** Empty when it cannot be determined in time where the name leads. */
  async addressesWithin(name: string, milliseconds: number): Promise<string[]> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), milliseconds);
    });
    try {
      const found = await Promise.race([this.addressesOf(name), tooLate]);
      return found?.complete ? found.addresses.map(({ address }) => address) : [];
    } catch (error) {
      if (!(error instanceof UnresolvedNameError)) throw error;
      // A name that does not resolve is accepted (contract section 9): it may do so later.
      return [];
    } finally {
      clearTimeout(timer);
    }
  }

  /** One resolver per name: it picks up changes of resolv.conf, and cancelling one does not affect the others. */
  protected resolver(): Resolver {
    return new Resolver({ timeout: TRY_MS, tries: TRIES });
  }

  private async ask(name: string): Promise<{ found: Found | UnresolvedNameError; keepMs: number }> {
    const listed = addressesInHosts(await hostsFile(), name);
    if (listed.length > 0) return { found: { addresses: listed, complete: true }, keepMs: MOST_MS };
    const resolver = this.resolver();
    const timer = setTimeout(() => resolver.cancel(), WITHIN_MS);
    try {
      const answers = await Promise.allSettled([
        resolver.resolve4(name, { ttl: true }),
        resolver.resolve6(name, { ttl: true }),
      ]);
      const records = answers.flatMap((answer) =>
        answer.status === 'fulfilled' ? answer.value : [],
      );
      const faults = answers.flatMap((answer) =>
        answer.status === 'rejected' && !saysThereIsNone(answer.reason) ? [answer.reason] : [],
      );
      if (records.length === 0) {
        const why = faults.length > 0 ? getErrorMessage(faults[0]) : 'there is no such name';
        return { found: new UnresolvedNameError(`${name}: ${why}`), keepMs: FAILED_MS };
      }
      const complete = faults.length === 0;
      return {
        found: { addresses: records.map(({ address }) => addressOf(address)), complete },
        keepMs: Math.min(complete ? MOST_MS : FAILED_MS, ...records.map(({ ttl }) => ttl * 1000)),
      };
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The addresses that a hosts file (hosts(5)) gives for a name. */
export function addressesInHosts(file: string, name: string): Address[] {
  return file.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    return isIP(address) !== 0 && names.includes(name) ? [addressOf(address)] : [];
  });
}

function addressOf(address: string): Address {
  return { address, family: isIP(address) };
}

async function hostsFile(): Promise<string> {
  try {
    return await readFile(HOSTS_FILE, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return '';
    throw error;
  }
}

function saysThereIsNone(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'ENODATA' || code === 'ENOTFOUND';
}

/** The error's own code, or else that of its cause; of several errors, the code of the first. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  if ('errors' in error && Array.isArray(error.errors)) return codeOf(error.errors[0]);
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? codeOf(error.cause) : undefined;
}
