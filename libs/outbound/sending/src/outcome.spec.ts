import { describe, expect, it } from '@jest/globals';
import { getResultLabel, type Outcome } from './outcome.js';

const answered = (status: number): Outcome => ({ kind: 'answered', status, retryAfter: null });

describe('attemptResult', () => {
  const failed = (error: string): Outcome => ({ kind: 'failed', error });
  it.each([
    [answered(204), '2xx'],
    [answered(302), '3xx'],
    [answered(404), '4xx'],
    [answered(410), '410'],
    [answered(429), '429'],
    [answered(503), '5xx'],
    [failed('No answer within 10 seconds'), 'timeout'],
    [failed('The connection timed out'), 'timeout'],
    [failed('The name of the URL could not be resolved'), 'dns'],
    [failed('The TLS certificate has expired'), 'tls'],
    [failed('The request failed (ERR_SSL_WRONG_VERSION_NUMBER)'), 'tls'],
    [failed('The signing secret cannot be decrypted: rotate it'), 'secret'],
    [failed('The answer was not valid HTTP'), 'protocol'],
    [failed('The headers of the answer were too large'), 'protocol'],
    [failed('The connection was refused'), 'connection'],
    [{ kind: 'blocked' }, 'blocked'],
    [{ kind: 'missing' }, 'missing'],
    [{ kind: 'unrendered' }, 'unrendered'],
  ] as [Outcome, string][])('%j', (outcome, result) =>
    expect(getResultLabel(outcome)).toBe(result),
  );
});
