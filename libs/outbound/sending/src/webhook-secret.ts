export const WEBHOOK_SECRET_BYTES = 32;

/** Formats a secret as padded standard base64, because the libraries of some receivers accept no other form. */
export function formatSigningSecret(random: Buffer): string {
  return `whsec_${random.toString('base64')}`;
}
