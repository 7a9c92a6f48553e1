export const SECRET_BYTES = 32;

/** Padded standard base64: libraries of some receivers read no other form. */
export function signingSecret(random: Buffer): string {
  return `whsec_${random.toString('base64')}`;
}
