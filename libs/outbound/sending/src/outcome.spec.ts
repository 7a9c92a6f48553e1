import { describe, expect, it } from '@jest/globals';
import { getResultLabel, type Outcome } from './outcome.js';

const response = (status: number): Outcome => ({ kind: 'responded', status, retryAfter: null });

describe('getResultLabel', () => {
  const failure = (error: string): Outcome => ({ kind: 'failed', error });
  it.each([
    [response(204), '2xx'],
    [response(302), '3xx'],
    [response(404), '4xx'],
    [response(410), '410'],
    [response(429), '429'],
    [response(503), '5xx'],
    [failure('No response within 10 seconds'), 'timeout'],
    [failure('The connection timed out'), 'timeout'],
    [failure('The name of the URL could not be resolved'), 'dns'],
    [failure('The TLS certificate has expired'), 'tls'],
    [failure('The request failed (ERR_SSL_WRONG_VERSION_NUMBER)'), 'tls'],
    [failure('The signing secret cannot be decrypted: rotate it'), 'secret'],
    [failure('The response was not valid HTTP'), 'protocol'],
    [failure('The response headers were too large'), 'protocol'],
    [failure('The connection was refused'), 'connection'],
    [{ kind: 'blocked' }, 'blocked'],
    [{ kind: 'missing' }, 'missing'],
    [{ kind: 'unrendered' }, 'unrendered'],
  ] as [Outcome, string][])('labels %j as %s', (outcome, label) =>
    expect(getResultLabel(outcome)).toBe(label),
  );
});
