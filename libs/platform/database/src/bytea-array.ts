const BYTEA_OID = 17;
const HEADER_BYTES = 20;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;

/**
 * A value for a parameter of type bytea[], as PostgreSQL's `array_recv` reads it. The driver would send each item as
 * hexadecimal text, twice as long, with every character looked at for escapes on both sides.
 */
export function byteaArray(items: readonly (Buffer | null)[]): Buffer {
  const bytes = items.reduce((sum, item) => sum + LENGTH_BYTES + (item?.length ?? 0), 0);
  const array = Buffer.allocUnsafe(HEADER_BYTES + bytes);
  // dimensions, whether there are nulls, type of the items, their number, the index of the first
  const header = [1, items.includes(null) ? 1 : 0, BYTEA_OID, items.length, 1];
  let at = 0;
  for (const number of header) at = array.writeInt32BE(number, at);
  for (const item of items) {
    at = array.writeInt32BE(item?.length ?? NULL_LENGTH, at);
    if (item) at += item.copy(array, at);
  }
  return array;
}
