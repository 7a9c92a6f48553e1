const BYTEA_OID = 17;
const HEADER_BYTES = 20;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;

/**
 * Encodes a parameter of type bytea[] as PostgreSQL's `array_recv` reads it. The driver would send each item as
 * hexadecimal text, twice as long, with every character checked for escapes on both sides.
 */
export function encodeByteaArray(items: readonly (Buffer | null)[]): Buffer {
  const bytes = items.reduce((sum, item) => sum + LENGTH_BYTES + (item?.length ?? 0), 0);
  const array = Buffer.allocUnsafe(HEADER_BYTES + bytes);
  // dimensions, whether there are nulls, type of the items, their number, the index of the first
  const header = [1, items.includes(null) ? 1 : 0, BYTEA_OID, items.length, 1];
  let offset = 0;
  for (const number of header) offset = array.writeInt32BE(number, offset);
  for (const item of items) {
    offset = array.writeInt32BE(item?.length ?? NULL_LENGTH, offset);
    if (item) offset += item.copy(array, offset);
  }
  return array;
}
