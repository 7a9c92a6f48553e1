import type { LookupFunction, Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import { buildConnector } from 'undici';
import type { Config } from '#configuration/config.js';
import { isProxyException } from '#configuration/host-lists.js';
import {
  getErrorCode,
  NameLookup,
  UnresolvedNameError,
  type ResolvedAddress,
} from './name-lookup.client.js';
import type { Failure, FailureCause } from './outcome.js';
import { openTunnel } from './proxy-tunnel.client.js';
import {
  isBlockedAddress,
  isBlockedHost,
  isLocalName,
  parseLiteralAddress,
  PUBLIC_ONLY,
  type TargetRules,
} from './target-address.js';
import { DeadlineError } from './deadlines.client.js';

export const KEEP_ALIVE_MS = 10_000;
/** Bounds how long an open connection keeps using an address that the name no longer has. */
export const CONNECTION_MS = 60_000;
/** How many addresses of a name are tried, each but the last for `ADDRESS_MS`, all within the deadline. */
const MAX_ADDRESSES = 4;
const ADDRESS_MS = 2_000;

/** Thrown when nothing was sent, because the URL leads into our own network. */
export class BlockedAddressError extends Error {
  readonly code = 'BLOCKED_ADDRESS';
}

/** Thrown when the receiver sent no valid HTTP/1.1 response. */
export class InvalidResponseError extends Error {}

/**
 * Creates a connector for URLs that others have entered. It guards our own network, because only a connector sees the
 * address that is really used. It checks literals, which no resolver sees, and every resolved address, and connects
 * only to an address that it has checked.
 * @param proxy what is outside is reached through it, at the same addresses
 */
export function createGuardedConnector(
  names: NameLookup,
  rules: TargetRules,
  deadlineMs: number,
  proxy: Config['outboundProxy'],
): buildConnector.connector {
  const guarded = {
    timeout: deadlineMs,
    lookup: createGuardedLookup(names, rules),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_MS,
    // Set explicitly, so that no environment variable can turn it off.
    rejectUnauthorized: true,
  };
  const connect = buildConnector(guarded);
  // One context for all connections, because creating one takes a fifth of a handshake. The first connection creates
  // it: the root certificates that it reads take memory.
  let connectTls: buildConnector.connector | undefined;
  const connectTo: buildConnector.connector = (options, callback) => {
    if (options.protocol !== 'https:') {
      // A tunnel without TLS is the connection.
      if (options.httpSocket) callback(null, options.httpSocket);
      else connect(options, callback);
      return;
    }
    connectTls ??= buildConnector({
      ...guarded,
      secureContext: createSecureContext({ minVersion: 'TLSv1.2' }),
    });
    connectTls(withTlsName(options), callback);
  };
  return (options, callback) => {
    if (isBlockedHost(options, rules)) {
      callback(new BlockedAddressError(), null);
    } else if (proxy === null) connectTo(options, callback);
    else {
      openOutsideTunnel(options, { names, rules, deadlineMs, proxy }).then(
        (httpSocket) => connectTo(httpSocket ? { ...options, httpSocket } : options, callback),
        (error: Error) => callback(error, null),
      );
    }
  };
}

type Outside = {
  names: NameLookup;
  rules: TargetRules;
  deadlineMs: number;
  proxy: NonNullable<Config['outboundProxy']>;
};

/**
 * Opens a tunnel to the first address that the proxy reaches.
 * @returns undefined for a receiver inside our own network or an exception, which the proxy is not for
 * @throws BlockedAddressError, UnresolvedNameError, ProxyError
 */
async function openOutsideTunnel(
  { protocol, hostname, port }: buildConnector.Options,
  { names, rules, deadlineMs, proxy }: Outside,
): Promise<Socket | undefined> {
  const hosts = await findTunnelHosts(hostname, names, rules, proxy);
  let failure: unknown;
  for (const host of hosts) {
    const timeoutMs = host === hosts.at(-1) ? deadlineMs : ADDRESS_MS;
    try {
      return await openTunnel(proxy, host, getPort(protocol, port), timeoutMs);
    } catch (error) {
      failure = error;
    }
  }
  if (failure !== undefined) throw failure;
  return undefined;
}

function getPort(protocol: string, port: string): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}

/**
 * Finds the allowed addresses outside our own network that are no exceptions; only the name where the proxy resolves it.
 */
async function findTunnelHosts(
  hostname: string,
  names: NameLookup,
  rules: TargetRules,
  { resolvesNames, exceptions }: Outside['proxy'],
): Promise<string[]> {
  const isOutside = (address: string) =>
    !isBlockedAddress(address, PUBLIC_ONLY) && !isProxyException(address, exceptions);
  const literal = parseLiteralAddress(hostname);
  if (literal !== undefined) return [literal].filter(isOutside);
  if (isLocalName(hostname) || isProxyException(hostname, exceptions)) return [];
  if (resolvesNames) return [hostname];
  const allowed = await findAllowedAddresses(hostname, names, rules);
  return allowed.map(({ address }) => address).filter(isOutside);
}

/**
 * Removes the trailing dot of a name for TLS, which does not allow one (RFC 6066, section 3): receivers would respond
 * with their default certificate.
 */
function withTlsName(options: buildConnector.Options): buildConnector.Options {
  const { hostname } = options;
  return hostname.endsWith('.')
    ? { ...options, servername: hostname.replace(/\.+$/, '') }
    : options;
}

/** Creates a lookup that returns exactly the addresses connected to, so that no second lookup can return others. */
function createGuardedLookup(names: NameLookup, rules: TargetRules): LookupFunction {
  return (name, options, callback) => {
    findAllowedAddresses(name, names, rules).then(
      (allowed) => {
        const [first] = allowed;
        if (options.all) callback(null, allowed);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, ''),
    );
  };
}

/** @throws BlockedAddressError when there are only others; UnresolvedNameError */
async function findAllowedAddresses(
  name: string,
  names: NameLookup,
  rules: TargetRules,
): Promise<[ResolvedAddress, ...ResolvedAddress[]]> {
  const { addresses, isComplete } = await names.resolve(name);
  const [first, ...others] = alternateFamilies(
    addresses.filter(({ address }) => !isBlockedAddress(address, rules)),
  );
  if (first) return [first, ...others];
  throw isComplete ? new BlockedAddressError() : new UnresolvedNameError(name);
}

/** Takes the first few addresses, alternating between IPv4 and IPv6, in case one of them does not work here. */
export function alternateFamilies(addresses: ResolvedAddress[]): ResolvedAddress[] {
  const [four, six] = [4, 6].map((family) =>
    addresses.filter((address) => address.family === family),
  );
  return addresses
    .flatMap((_, i) => [four?.[i], six?.[i]])
    .filter((address) => address !== undefined)
    .slice(0, MAX_ADDRESSES);
}

const CLOSED: FailureText = ['connection', 'The connection was closed before a response arrived'];
const UNREACHABLE: FailureText = ['connection', 'The host could not be reached'];
const TIMED_OUT: FailureText = ['timeout', 'The connection timed out'];
const SELF_SIGNED: FailureText = ['tls', 'The TLS certificate is self-signed'];
const OLD_TLS: FailureText = ['tls', 'The receiver offers no safe version of TLS'];
const NO_TLS: FailureText = ['tls', 'The receiver does not speak TLS'];
const UNVERIFIED: FailureText = ['tls', 'The TLS certificate could not be verified'];

type FailureText = readonly [FailureCause, error: string];

const FAILURES: Record<string, FailureText> = {
  ENOTFOUND: ['dns', 'The name of the URL could not be resolved'],
  ECONNREFUSED: ['connection', 'The connection was refused'],
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  ETIMEDOUT: TIMED_OUT,
  PROXY_UNREACHABLE: ['connection', 'The outgoing proxy could not be reached'],
  PROXY_REFUSED: ['connection', 'The outgoing proxy refused the connection'],
  UND_ERR_CONNECT_TIMEOUT: TIMED_OUT,
  UND_ERR_SOCKET: CLOSED,
  UND_ERR_HEADERS_OVERFLOW: ['protocol', 'The response headers were too large'],
  DEPTH_ZERO_SELF_SIGNED_CERT: SELF_SIGNED,
  SELF_SIGNED_CERT_IN_CHAIN: SELF_SIGNED,
  CERT_HAS_EXPIRED: ['tls', 'The TLS certificate has expired'],
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: OLD_TLS,
  ERR_SSL_UNSUPPORTED_PROTOCOL: OLD_TLS,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  ERR_TLS_CERT_ALTNAME_INVALID: ['tls', 'The TLS certificate is for another name'],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNVERIFIED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNVERIFIED,
};

/** Matches the other codes of Node.js for a handshake or a certificate that failed. */
const TLS_CODE =
  /^(ERR_SSL_|ERR_TLS_|ERR_OSSL_|CERT_|CRL_|UNABLE_TO_|ERROR_IN_|INVALID_|PATH_LENGTH_|HOSTNAME_MISMATCH|EPROTO)/;

/** Describes an error in plain words, because the library's own messages name addresses. */
export function toRequestFailure(error: unknown): Failure {
  const [cause, text] = describeError(error);
  return { kind: 'failed', cause, error: text };
}

function describeError(error: unknown): FailureText {
  if (error instanceof DeadlineError) return ['timeout', 'No response within 10 seconds'];
  if (error instanceof InvalidResponseError) return ['protocol', 'The response was not valid HTTP'];
  const code = getErrorCode(error);
  if (code === undefined) return ['connection', 'The request failed'];
  const cause = TLS_CODE.test(code) ? 'tls' : 'connection';
  return FAILURES[code] ?? [cause, `The request failed (${code})`];
}
