import ipaddr from 'ipaddr.js';
import { isIP } from 'node:net';
import { parseAbsoluteUrl } from '#platform/kernel/absolute-url.js';
import type { Config } from '#configuration/config.js';
import { isListedName, isProxyException } from '#configuration/host-lists.js';
import { isInRanges } from '#configuration/setting-decorators.js';
import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

/** The targets that the operator allows beyond the public internet. They apply to writes and to deliveries. */
export type TargetRules = Pick<
  Config,
  'webhookAllowInsecureTargets' | 'webhookAllowedCidrs' | 'outboundProxy'
> & {
  /** The only names that may be reached; undefined: any public one. */
  onlyNames?: readonly string[] | undefined;
};

export const PUBLIC_ONLY: TargetRules = {
  webhookAllowInsecureTargets: false,
  webhookAllowedCidrs: [],
  outboundProxy: null,
};

/** No setting can allow what these rules refuse. */
export const MOST_PERMISSIVE: TargetRules = {
  webhookAllowInsecureTargets: true,
  webhookAllowedCidrs: ['0.0.0.0/0', '::/0'].map((range) => ipaddr.parseCIDR(range)),
  outboundProxy: null,
};

/** Everything but public unicast: the IANA special-purpose registries. */
const BLOCKED_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
].map((range) => ipaddr.IPv4.parseCIDR(range));

const PUBLIC_V6 = ipaddr.IPv6.parseCIDR('2000::/3');
const BLOCKED_V6 = ['2001::/23', '2001:db8::/32', '3fff::/20'].map((range) =>
  ipaddr.IPv6.parseCIDR(range),
);

/**
 * This machine, and the metadata services of clouds, which offer credentials to callers from inside. A range that an
 * operator allows may contain one by accident. All link-local addresses are among them: besides 169.254.169.254 there
 * are those of tasks and pods on AWS (169.254.170.2 and .23), of Tencent (169.254.0.23), Scaleway (169.254.42.42) and
 * OpenStack (fe80::a9fe:a9fe).
 */
const NEVER_ALLOWED = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  // Alibaba, Azure, Oracle Cloud Classic
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  '::/128',
  '::1/128',
  'fe80::/10',
  // AWS: instances and pods; Google; Scaleway; Linode
  'fd00:ec2::254/128',
  'fd00:ec2::23/128',
  'fd20:ce::254/128',
  'fd00:42::42/128',
  'fd00:a9fe:a9fe::1/128',
].map((range) => ipaddr.parseCIDR(range));

const MAX_URL_LENGTH = 2048;

/**
 * Tells whether a delivery must not connect to this address. One that embeds an IPv4 address is judged by that, because
 * translators and tunnels send the packets there.
 * @param address as a resolver or a socket gives it; anything that is not an address is blocked
 */
export function isBlockedAddress(address: string, rules: TargetRules): boolean {
  if (!ipaddr.isValid(address)) return true;
  // process() turns ::ffff:a.b.c.d into a.b.c.d, which is where the packets go.
  const parsed = ipaddr.process(address);
  if (rules.webhookAllowInsecureTargets && parsed.range() === 'loopback') return false;
  const { replaced, mentioned } = findEmbeddedAddresses(parsed);
  const judged = replaced.length > 0 ? replaced : [parsed];
  return (
    [parsed, ...mentioned].some((candidate) => isInRanges(candidate, NEVER_ALLOWED)) ||
    judged.some((candidate) => !isAllowed(candidate, rules))
  );
}

function isAllowed(address: IpAddress, { webhookAllowedCidrs }: TargetRules): boolean {
  if (isInRanges(address, webhookAllowedCidrs)) return true;
  if (address instanceof ipaddr.IPv4) return !isInRanges(address, BLOCKED_V4);
  return address.match(PUBLIC_V6) && !isInRanges(address, BLOCKED_V6);
}

/** Returns the address if the host is one rather than a name. URL has normalised every notation. */
export function parseLiteralAddress(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) !== 0 || ipaddr.isValid(bare) ? bare : undefined;
}

/** Tells whether a name means this machine, whatever a resolver says (RFC 6761). */
export function isLocalName(hostname: string): boolean {
  return /(^|\.)localhost\.?$/i.test(hostname);
}

/**
 * Names without a dot, and domains that lead nowhere on the public internet: RFC 6762 and its appendix G, RFC 8375,
 * ICANN's .internal, and those of containers and routers.
 */
const INTERNAL_NAME =
  /^[^.]+$|\.(local|localdomain|localhost|internal|intranet|private|corp|home|lan|home\.arpa|svc|docker)$/;

/** Tells whether a name can only lead into our own network, which a resolver inside or the proxy may know. */
function isInternalName(hostname: string): boolean {
  return INTERNAL_NAME.test(hostname.toLowerCase().replace(/\.+$/, ''));
}

export const LOCAL_ADDRESSES = ['127.0.0.1', '::1'];

/** Finds the addresses of a host, as far as they are known without a resolver. */
function findKnownAddresses(hostname: string): string[] | undefined {
  if (isLocalName(hostname)) return LOCAL_ADDRESSES;
  const literal = parseLiteralAddress(hostname);
  return literal === undefined ? undefined : [literal];
}

/** The parts of a URL that decide whether it may be reached. The port is empty where it is that of the protocol. */
type TargetHost = { protocol: string; hostname: string; port: string };

/**
 * Tells whether nothing may be sent to this URL, as far as that is known without a resolver. Once the name is resolved,
 * `isBlockedAddress` decides about the rest.
 */
export function isBlockedHost(target: TargetHost, rules: TargetRules): boolean {
  const { protocol, hostname } = target;
  if (protocol !== 'https:' && !rules.webhookAllowInsecureTargets) return true;
  if (rules.onlyNames && !(isUsualPort(target) && isListedName(hostname, rules.onlyNames))) {
    return true;
  }
  const addresses = findKnownAddresses(hostname);
  if (addresses) return addresses.every((address) => isBlockedAddress(address, rules));
  return isBlockedName(target, rules);
}

/** Nobody here sees the address of a name that the proxy resolves, so no other port may be tried there. */
function isBlockedName(target: TargetHost, rules: TargetRules): boolean {
  const { outboundProxy: proxy, webhookAllowInsecureTargets, webhookAllowedCidrs } = rules;
  const { hostname } = target;
  if (webhookAllowInsecureTargets) return false;
  if (proxy?.resolvesNames === true && !isProxyException(hostname, proxy.exceptions)) {
    return isInternalName(hostname) || !isUsualPort(target);
  }
  return webhookAllowedCidrs.length === 0 && isInternalName(hostname);
}

function isUsualPort({ protocol, port }: TargetHost): boolean {
  return protocol === 'https:' && (port === '' || port === '443');
}

/**
 * Finds what is wrong with a target URL, as far as that is known without a resolver (HOOK-21). Never names an address,
 * so that the error does not help anybody to map our network.
 */
export function findTargetUrlIssue(text: string, rules: TargetRules): Issue | undefined {
  if (text.length > MAX_URL_LENGTH) return ISSUES.too_long({ max: MAX_URL_LENGTH });
  const url = parseAbsoluteUrl(text);
  if (!url) return ISSUES.url_invalid;
  const { protocol, username, password, href } = url;
  if (href.length > MAX_URL_LENGTH) return ISSUES.too_long({ max: MAX_URL_LENGTH });
  if (protocol !== 'https:' && !(rules.webhookAllowInsecureTargets && protocol === 'http:')) {
    return ISSUES.url_not_https;
  }
  if (username !== '' || password !== '') return ISSUES.url_with_credentials;
  if (!isBlockedHost(url, rules)) return undefined;
  return rules.onlyNames ? ISSUES.url_not_listed : ISSUES.url_not_public;
}

type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * The IPv4 addresses in an IPv6 address.
 * @property replaced those that packets go to in its place
 * @property mentioned those that any reading of it finds, even if packets go to the IPv6 address itself
 */
type Embedded = { replaced: IpAddress[]; mentioned: IpAddress[] };

const COMPATIBLE = ipaddr.IPv6.parseCIDR('::/96');
const MAPPED = ipaddr.IPv6.parseCIDR('::ffff:0:0/96');
const TRANSLATED = ipaddr.IPv6.parseCIDR('::ffff:0:0:0/96');
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
const LOCAL_NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b:1::/48');
const TEREDO = ipaddr.IPv6.parseCIDR('2001::/32');
const SIX_TO_FOUR = ipaddr.IPv6.parseCIDR('2002::/16');

/**
 * The positions of the IPv4 address behind each length of prefix (RFC 6052, section 2.2): byte 8 is left out, and the
 * rest is zero.
 */
const NAT64_LAYOUTS = [
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
  [12, 13, 14, 15],
] as const;

/**
 * Finds the IPv4 addresses that an address embeds: IPv4-mapped and -compatible (RFC 4291, section 2.5.5), IPv4-translated
 * (RFC 2765), NAT64 (RFC 6052, and RFC 8215 for networks of one's own), 6to4 (RFC 3056), Teredo (RFC 4380, section 4) and
 * ISATAP (RFC 5214, section 6.1).
 */
function findEmbeddedAddresses(address: IpAddress): Embedded {
  if (address instanceof ipaddr.IPv4) return { replaced: [], mentioned: [] };
  const bytes = address.toByteArray();
  const at = (...places: readonly number[]) =>
    new ipaddr.IPv4(places.map((place) => bytes[place] ?? 0));
  const replacedBy = (...embedded: IpAddress[]) => ({ replaced: embedded, mentioned: embedded });
  const isIn = (range: [ipaddr.IPv6, number]) => address.match(range);

  if ([MAPPED, TRANSLATED, NAT64].some(isIn)) return replacedBy(at(12, 13, 14, 15));
  if (isIn(COMPATIBLE)) {
    const isOwn = ['unspecified', 'loopback'].includes(address.range());
    return isOwn ? { replaced: [], mentioned: [] } : replacedBy(at(12, 13, 14, 15));
  }
  if (isIn(SIX_TO_FOUR)) return replacedBy(at(2, 3, 4, 5));
  if (isIn(TEREDO)) {
    const client = bytes.slice(12).map((byte) => byte ^ 0xff);
    return replacedBy(at(4, 5, 6, 7), new ipaddr.IPv4(client));
  }
  if (isIn(LOCAL_NAT64)) {
    const readings = NAT64_LAYOUTS.map((places) => {
      const rest = bytes.slice(Math.max(...places) + 1);
      return { ipv4: at(...places), fits: bytes[8] === 0 && rest.every((byte) => byte === 0) };
    });
    const last = at(12, 13, 14, 15);
    // Only its network knows the prefix: every reading that fits has to be allowed.
    const fitting = readings.slice(0, -1).filter(({ fits }) => fits);
    const replaced = fitting.map(({ ipv4 }) => ipv4).filter((candidate) => !isZero(candidate));
    if (!isZero(last) || replaced.length === 0) replaced.push(last);
    const mentioned = readings.map(({ ipv4 }) => ipv4).filter(({ octets }) => octets[0] !== 0);
    return { replaced, mentioned };
  }
  // The bit of globally unique IPv4 addresses may be set or not.
  const isIsatap = (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0;
  if (isIsatap && bytes[10] === 0x5e && bytes[11] === 0xfe) {
    return { replaced: [address, at(12, 13, 14, 15)], mentioned: [at(12, 13, 14, 15)] };
  }
  return { replaced: [], mentioned: [] };
}

function isZero(address: ipaddr.IPv4): boolean {
  return address.octets.every((octet) => octet === 0);
}
