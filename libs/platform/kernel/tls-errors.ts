/** What OpenSSL and Node.js find wrong with a certificate, by their codes. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet, or the clock of this machine is wrong',
};

const UNTRUSTED =
  'the authority that issued its certificate is not trusted: name its file in NODE_EXTRA_CA_CERTS, or for PostgreSQL in sslrootcert';
const UNTRUSTED_CODES = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
]);

/** Describes what is wrong with the certificate of a server; undefined for any other error. */
export function describeTlsError(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const code = String(error.code);
  const description = UNTRUSTED_CODES.has(code)
    ? UNTRUSTED
    : code === 'ERR_TLS_CERT_ALTNAME_INVALID'
      ? describeWrongHost(error)
      : DESCRIPTIONS[code];
  return description && `${description} (${code})`;
}

function describeWrongHost(error: Error): string {
  const { host = '', cert } = error as { host?: string; cert?: { subjectaltname?: string } };
  return `its certificate is for ${cert?.subjectaltname ?? 'no host'}, and not for ${host}`;
}
