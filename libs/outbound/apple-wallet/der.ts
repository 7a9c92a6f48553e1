/** The tags of DER (X.690) that a detached CMS signature needs. */
export const TAG = {
  integer: 0x02,
  octetString: 0x04,
  null: 0x05,
  objectId: 0x06,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
  /** Context-specific and constructed: [0]. */
  first: 0xa0,
} as const;

export function encodeDer(tag: number, ...contents: Uint8Array[]): Buffer {
  const length = contents.reduce((sum, { byteLength }) => sum + byteLength, 0);
  return Buffer.concat([Buffer.from([tag, ...encodeLength(length)]), ...contents]);
}

export function encodeObjectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number);
  return encodeDer(
    TAG.objectId,
    Buffer.from([first * 40 + second, ...others.flatMap(encodeBase128)]),
  );
}

/** Encodes a UTCTime. Its year has two digits, so it is valid until 2049. */
export function encodeUtcTime(time: Date): Buffer {
  const text = time.toISOString().slice(2, 19).replaceAll(/[-:T]/g, '');
  return encodeDer(TAG.utcTime, Buffer.from(`${text}Z`));
}

/** Encodes a SET, whose members DER sorts by their bytes. */
export function encodeSet(...members: Buffer[]): Buffer {
  return encodeDer(TAG.set, ...members.sort(Buffer.compare));
}

/** Extracts the issuer and serial number of a certificate, byte for byte. @throws RangeError unless it is DER */
export function extractIssuerAndSerial(certificate: Buffer): Buffer {
  const tbs = readElement(readElement(certificate, 0).contents, 0).contents;
  const first = readElement(tbs, 0);
  const serial = first.tag === TAG.first ? readElement(tbs, first.end) : first;
  const algorithm = readElement(tbs, serial.end);
  const issuer = readElement(tbs, algorithm.end);
  return encodeDer(TAG.sequence, issuer.whole, serial.whole);
}

function encodeBase128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}

function encodeLength(length: number): number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff);
  return [0x80 | bytes.length, ...bytes];
}

function readElement(bytes: Buffer, offset: number) {
  const tag = bytes.readUInt8(offset);
  const firstByte = bytes.readUInt8(offset + 1);
  const lengthByteCount = firstByte & 0x80 ? firstByte & 0x7f : 0;
  const length = lengthByteCount === 0 ? firstByte : bytes.readUIntBE(offset + 2, lengthByteCount);
  const start = offset + 2 + lengthByteCount;
  const end = start + length;
  if (end > bytes.length) throw new RangeError('the certificate ends too early');
  return { tag, end, contents: bytes.subarray(start, end), whole: bytes.subarray(offset, end) };
}
