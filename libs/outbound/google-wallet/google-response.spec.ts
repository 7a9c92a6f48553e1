import { describe, expect, it } from '@jest/globals';
import { parseGoogleResponse } from './google-response.js';

const NOW = new Date('2026-03-01T10:00:00Z');
const body = (reason: string, message = 'why') =>
  JSON.stringify({ error: { code: 0, message, errors: [{ reason }] } });
const parse = (status: number, text = '', retryAfter: string | null = null) =>
  parseGoogleResponse(status, text, retryAfter, NOW);

describe('parseGoogleResponse', () => {
  it.each([
    [409, body('existingResource'), { kind: 'exists' }],
    [404, body('resourceNotFound'), { kind: 'missing' }],
    [404, body('classNotFound'), { kind: 'refused', classIsMissing: true }],
    [400, body('classNotFound'), { kind: 'refused', classIsMissing: true }],
    [
      400,
      body('invalid'),
      { kind: 'refused', error: 'responded with 400: why', classIsMissing: false },
    ],
    [401, body('authError'), { kind: 'unauthorized' }],
    [403, body('QuotaExceededException'), { kind: 'over_quota' }],
    [403, body('rateLimitExceeded'), { kind: 'limited', retryInMs: 2_000 }],
    [403, body('permissionDenied'), { kind: 'failed', retryInMs: 600_000 }],
    [429, '', { kind: 'limited', retryInMs: 2_000 }],
    [408, '', { kind: 'failed' }],
    [500, body('backendError'), { kind: 'failed', error: 'responded with 500: why' }],
    [502, '<html>Bad gateway</html>', { kind: 'failed', error: 'responded with 502' }],
  ])('parses status %i with body %s', (status, text, expected) => {
    expect(parse(status, text)).toMatchObject(expected);
  });

  it('returns the body of a successful response', () => {
    expect(parse(200, '{"id":"a"}')).toEqual({ kind: 'ok', body: { id: 'a' } });
    expect(parse(200, '')).toEqual({ kind: 'ok', body: {} });
  });

  it.each([
    ['5', 5_000],
    ['Sun, 01 Mar 2026 10:00:30 GMT', 30_000],
    ['Sun, 01 Mar 2026 09:00:00 GMT', 0],
    ['99999999', 3600_000],
  ])('follows Retry-After: %s', (retryAfter, retryInMs) => {
    expect(parse(503, '', retryAfter)).toMatchObject({ kind: 'failed', retryInMs });
    expect(parse(429, '', retryAfter)).toMatchObject({ kind: 'limited', retryInMs });
  });

  it('limits the length of the error, and ignores a Retry-After that cannot be parsed', () => {
    const response = parse(500, body('backendError', 'x'.repeat(10_000)));
    expect(JSON.stringify(response).length).toBeLessThan(500);
    expect(parse(503, '', 'soon')).toEqual({ kind: 'failed', error: 'responded with 503' });
  });
});
