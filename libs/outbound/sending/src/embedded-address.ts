import ipaddr from 'ipaddr.js';

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * The IPv4 addresses in an IPv6 address.
 * @property replaced those that packets go to in its place
 * @property mentioned those that any reading of it finds, even if packets go to the IPv6 address itself
 */
export type Embedded = { replaced: IpAddress[]; mentioned: IpAddress[] };

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
export function findEmbeddedAddresses(address: IpAddress): Embedded {
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
    const replaced = fitting.map(({ ipv4 }) => ipv4).filter((one) => !isZero(one));
    if (!isZero(last) || replaced.length === 0) replaced.push(last);
    const mentioned = readings.map(({ ipv4 }) => ipv4).filter((one) => one.octets[0] !== 0);
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
