import { describe, expect, it } from '@jest/globals';
import { describeTlsError } from './tls-errors.js';

const createError = (code: string, properties = {}) =>
  Object.assign(new Error('refused'), { code, ...properties });

describe('describeTlsError', () => {
  it.each([
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
  ])('says of %s which settings name the authority', (code) => {
    expect(describeTlsError(createError(code))).toMatch(
      /^the authority that issued its certificate is not trusted: .*NODE_EXTRA_CA_CERTS.*sslrootcert \([A-Z_]+\)$/,
    );
  });

  it('names the hosts that a certificate is for', () => {
    const properties = { host: 'db.example', cert: { subjectaltname: 'DNS:a, DNS:b' } };
    expect(describeTlsError(createError('ERR_TLS_CERT_ALTNAME_INVALID', properties))).toBe(
      'its certificate is for DNS:a, DNS:b, and not for db.example (ERR_TLS_CERT_ALTNAME_INVALID)',
    );
  });

  it('says that a certificate has expired', () => {
    expect(describeTlsError(createError('CERT_HAS_EXPIRED'))).toBe(
      'its certificate has expired (CERT_HAS_EXPIRED)',
    );
  });

  it('returns undefined for any other error', () => {
    for (const error of [createError('ECONNREFUSED'), new Error('refused'), 'refused', undefined])
      expect(describeTlsError(error)).toBeUndefined();
  });
});
