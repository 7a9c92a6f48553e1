const MARKER = 0xff;
const START_OF_SCAN = 0xda;
const END_OF_IMAGE = 0xd9;
/** From SOF0 on, markers are followed by a length (ITU-T T.81, table B.1). */
const FIRST_WITH_LENGTH = 0xc0;
/** Tells whether a marker has no length: RST0 to RST7 and SOI stand alone, as are those below SOF0. */
const isStandalone = (code: number) => code < FIRST_WITH_LENGTH || (code >= 0xd0 && code <= 0xd8);

/**
 * Counts the scans of a JPEG as libjpeg finds them, without decoding any. A progressive one may have any number, and each
 * is another pass over the whole picture: two megabytes hold enough for minutes.
 *
 * Where libjpeg would fail, this counts on: what is counted must never be less than what is decoded. So a length of less
 * than its own two bytes skips nothing, and neither do reserved markers, which libjpeg passes over within a scan.
 *
 * @param limit counts no further
 */
export function countScans(jpeg: Uint8Array, limit: number): number {
  let count = 0;
  let offset = 0;
  while (count < limit) {
    offset = jpeg.indexOf(MARKER, offset);
    if (offset < 0) break;
    // Any number of fill bytes may precede a marker (ITU-T T.81, section B.1.1.2).
    while (jpeg[offset] === MARKER) offset++;
    const code = jpeg[offset++];
    if (code === undefined || code === END_OF_IMAGE) break;
    if (isStandalone(code)) continue;
    if (code === START_OF_SCAN) count++;
    const length = (jpeg[offset] ?? 0) * 256 + (jpeg[offset + 1] ?? 0);
    offset += Math.max(length, 2);
  }
  return count;
}
