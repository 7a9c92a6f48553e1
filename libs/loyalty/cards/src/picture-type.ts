/** Matches the first bytes of each type, in hex; WebP is a RIFF file, whose length comes in between. */
const SIGNATURES = {
  'image/png': /^89504e470d0a1a0a/,
  'image/jpeg': /^ffd8ff/,
  'image/webp': /^52494646.{8}57454250/,
};

/** Checks the type by content: what a client says about it proves nothing. */
export function isOfType(bytes: Buffer, type: keyof typeof SIGNATURES): boolean {
  return SIGNATURES[type].test(bytes.subarray(0, 12).toString('hex'));
}
