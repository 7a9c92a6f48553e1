/** As much of DER (X.690) as a detached CMS signature needs. */
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

export function der(tag: number, ...contents: Uint8Array[]): Buffer {
  const length = contents.reduce((sum, { byteLength }) => sum + byteLength, 0);
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(length)]), ...contents]);
}

export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number);
  return der(TAG.objectId, Buffer.from([first * 40 + second, ...others.flatMap(base128)]));
}

/** Two digits of the year, so right until 2049. */
export function utcTime(at: Date): Buffer {
  const text = at.toISOString().slice(2, 19).replaceAll(/[-:T]/g, '');
  return der(TAG.utcTime, Buffer.from(`${text}Z`));
}

/** DER wants the members of a SET in the order of their bytes. */
export function setOf(...members: Buffer[]): Buffer {
  return der(TAG.set, ...members.sort(Buffer.compare));
}

/** Of a certificate: its issuer and serial number, as they stand there. @throws RangeError unless it is DER */
export function issuerAndSerial(certificate: Buffer): Buffer {
  const tbs = read(read(certificate, 0).contents, 0).contents;
  const first = read(tbs, 0);
  const serial = first.tag === TAG.first ? read(tbs, first.end) : first;
  const algorithm = read(tbs, serial.end);
  const issuer = read(tbs, algorithm.end);
  return der(TAG.sequence, issuer.whole, serial.whole);
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}

function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff);
  return [0x80 | bytes.length, ...bytes];
}

function read(bytes: Buffer, at: number) {
  const tag = bytes.readUInt8(at);
  const short = bytes.readUInt8(at + 1);
  const long = short & 0x80 ? short & 0x7f : 0;
  const length = long === 0 ? short : bytes.readUIntBE(at + 2, long);
  const start = at + 2 + long;
  const end = start + length;
  if (end > bytes.length) throw new RangeError('the certificate ends too early');
  return { tag, end, contents: bytes.subarray(start, end), whole: bytes.subarray(at, end) };
}
