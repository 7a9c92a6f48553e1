import { createHash, randomInt } from 'node:crypto';

/** A test is no event of the store, but a receiver that has seen one may continue after it (DELIV-71). */
type TestPlace = {
  /** The place in the feed of the event that was the last one then; 0: there was none. */
  position: number;
  sentAt: Date;
};

const RANDOM_BITS = 9n;
const CHECK_BITS = 12n;
const LOW_BITS = 62n;
/** RFC 9562, section 5.8: a layout of one's own. Events have version 7. */
const VERSION = 8n;
const VARIANT = 2n;

/**
 * Creates the id of a test: a UUID that begins with its time, as those of events do, and holds its place in the feed.
 * So nothing has to be stored for it.
 */
export function createTestEventId({
  accountId,
  position,
  sentAt,
}: TestPlace & { accountId: number }): string {
  const time = BigInt(sentAt.getTime());
  const place = (BigInt(position) << RANDOM_BITS) | BigInt(randomInt(1 << Number(RANDOM_BITS)));
  const rest = (place << CHECK_BITS) | calculateCheck(accountId, time, place);
  const bits =
    (time << 80n) |
    (VERSION << 76n) |
    ((rest >> LOW_BITS) << 64n) |
    (VARIANT << LOW_BITS) |
    BigInt.asUintN(Number(LOW_BITS), rest);
  const hex = bits.toString(16).padStart(32, '0');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Reads the id of a test of a store. Undefined when it is none: an event, or a test of another store. */
export function readTestEventId(uuid: string, accountId: number): TestPlace | undefined {
  const bits = BigInt(`0x${uuid.replaceAll('-', '')}`);
  if (BigInt.asUintN(4, bits >> 76n) !== VERSION) return undefined;
  const time = bits >> 80n;
  const rest =
    (BigInt.asUintN(12, bits >> 64n) << LOW_BITS) | BigInt.asUintN(Number(LOW_BITS), bits);
  const place = rest >> CHECK_BITS;
  const check = BigInt.asUintN(Number(CHECK_BITS), rest);
  if (check !== calculateCheck(accountId, time, place)) return undefined;
  return { position: Number(place >> RANDOM_BITS), sentAt: new Date(Number(time)) };
}

function calculateCheck(accountId: number, time: bigint, place: bigint): bigint {
  const digest = createHash('sha256').update(`${accountId}:${time}:${place}`).digest();
  return BigInt.asUintN(Number(CHECK_BITS), BigInt(digest.readUInt16BE()));
}
