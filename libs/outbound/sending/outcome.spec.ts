import { describe, expect, it } from '@jest/globals';
import { DeadlineError } from './deadlines.client.js';
import { InvalidResponseError, toRequestFailure } from './guarded-agent.client.js';
import { UnresolvedNameError } from './name-lookup.client.js';
import { getOutcomeLabel, type FailureCause, type Outcome } from './outcome.js';

const response = (status: number): Outcome => ({ kind: 'responded', status, retryAfter: null });

const FAILURE_CAUSES = [
  'timeout',
  'connection',
  'dns',
  'tls',
  'protocol',
  'secret',
] as const satisfies FailureCause[];

describe('getOutcomeLabel', () => {
  it.each<[Outcome, string]>([
    [response(204), '2xx'],
    [response(302), '3xx'],
    [response(404), '4xx'],
    [response(410), '410'],
    [response(429), '429'],
    [response(503), '5xx'],
    ...FAILURE_CAUSES.map((cause): [Outcome, string] => [
      { kind: 'failed', cause, error: 'In any words' },
      cause,
    ]),
    [{ kind: 'blocked' }, 'blocked'],
    [{ kind: 'missing' }, 'missing'],
    [{ kind: 'unrendered' }, 'unrendered'],
  ])('labels %j as %s', (outcome, label) => expect(getOutcomeLabel(outcome)).toBe(label));
});

describe('toRequestFailure', () => {
  const withCode = (code: string) => Object.assign(new Error('any words'), { code });
  it.each<[unknown, FailureCause]>([
    [new DeadlineError(), 'timeout'],
    [withCode('ETIMEDOUT'), 'timeout'],
    [withCode('UND_ERR_CONNECT_TIMEOUT'), 'timeout'],
    [new UnresolvedNameError('no.example'), 'dns'],
    [withCode('CERT_HAS_EXPIRED'), 'tls'],
    [withCode('CERT_NOT_YET_VALID'), 'tls'],
    [withCode('UNABLE_TO_GET_ISSUER_CERT'), 'tls'],
    [withCode('ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE'), 'tls'],
    [withCode('EPROTO'), 'tls'],
    [new InvalidResponseError(), 'protocol'],
    [withCode('UND_ERR_HEADERS_OVERFLOW'), 'protocol'],
    [withCode('ECONNREFUSED'), 'connection'],
    [withCode('UND_ERR_SOCKET'), 'connection'],
    [withCode('PROXY_REFUSED'), 'connection'],
    [new Error('TLS timed out, and the signing secret could not be resolved'), 'connection'],
    ['no error at all', 'connection'],
  ])('names the cause of %p by its class or code, whatever it says: %s', (error, cause) => {
    expect(toRequestFailure(error)).toMatchObject({ kind: 'failed', cause });
  });
});
