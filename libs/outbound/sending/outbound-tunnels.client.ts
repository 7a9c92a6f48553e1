import { lookup } from 'node:dns/promises';
import type { Socket } from 'node:net';
import type { Config } from '#configuration/config.js';
import { isProxyException } from '#configuration/host-lists.js';
import { withTimeout } from '#platform/kernel/with-timeout.js';
import { openTunnel, ProxyError } from './proxy-tunnel.client.js';
import {
  isBlockedAddress,
  isLocalName,
  parseLiteralAddress,
  PUBLIC_ONLY,
} from './target-address.js';

type Proxy = NonNullable<Config['outboundProxy']>;

/** Finds the addresses of a host. */
export type FindAddresses = (host: string) => Promise<string[]>;

/**
 * Opens tunnels through the outgoing proxy to servers that the operator has configured (ADR-0016). The proxy gets their
 * names, so that it can allow names. Addresses that others enter need `createGuardedConnector`.
 */
export class OutboundTunnels {
  constructor(
    private readonly proxy: Config['outboundProxy'],
    private readonly findAddresses: FindAddresses = findSystemAddresses,
  ) {}

  /** Whether there is a proxy. */
  get isNeeded(): boolean {
    return this.proxy !== null;
  }

  /**
   * Opens a tunnel to a server outside.
   * @param timeoutMs for the lookup of the name and the proxy's response together
   * @returns undefined for a server that is reached directly
   * @throws ProxyError, or the error of the lookup
   */
  async open(host: string, port: number, timeoutMs: number): Promise<Socket | undefined> {
    const { proxy } = this;
    if (proxy === null) return undefined;
    const endsAt = performance.now() + timeoutMs;
    const target = parseLiteralAddress(host) ?? host;
    if (!(await this.isOutside(target, proxy, timeoutMs))) return undefined;
    return openTunnel(proxy, target, port, Math.max(1, endsAt - performance.now()));
  }

  /** Tells whether a host is outside our own network, and no exception. */
  private async isOutside(host: string, proxy: Proxy, timeoutMs: number): Promise<boolean> {
    const isOutsideAddress = (address: string) =>
      !isBlockedAddress(address, PUBLIC_ONLY) && !isProxyException(address, proxy.exceptions);
    if (parseLiteralAddress(host) !== undefined) return isOutsideAddress(host);
    if (isLocalName(host) || isProxyException(host, proxy.exceptions)) return false;
    if (proxy.resolvesNames) return true;
    const addresses = await withTimeout(
      this.findAddresses(host),
      timeoutMs,
      () => new ProxyError('ETIMEDOUT', 'the name was not resolved in time'),
    );
    return addresses.some(isOutsideAddress);
  }
}

/** Finds them as a direct connection would, which may use a search domain of the network. */
async function findSystemAddresses(host: string): Promise<string[]> {
  const results = await lookup(host, { all: true });
  return results.map(({ address }) => address);
}
