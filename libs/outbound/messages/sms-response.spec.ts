import { describe, expect, it } from '@jest/globals';
import { parseSmsOutcome } from './sms-response.js';

const createBody = (code: number) =>
  JSON.stringify({ code, message: 'The number +15005550009 is not taken', status: 400 });

describe('parseSmsOutcome', () => {
  it('returns sent with the provider’s id, or null when there is no valid one', () => {
    const body = JSON.stringify({ sid: 'SM1', status: 'queued', error_code: null });
    expect(parseSmsOutcome(201, body, null)).toEqual({ kind: 'sent', providerId: 'SM1' });
    expect(parseSmsOutcome(200, 'ok', null)).toEqual({ kind: 'sent', providerId: null });
    expect(parseSmsOutcome(201, JSON.stringify({ sid: 'a\nb' }), null)).toEqual({
      kind: 'sent',
      providerId: null,
    });
  });

  it.each([21211, 21610, 21614])('returns refused for status 400 with code %i', (code) => {
    const outcome = parseSmsOutcome(400, createBody(code), null);
    expect(outcome).toEqual({ kind: 'refused', error: `responded with 400 (${code})` });
  });

  it('returns refused for an accepted message that is already undelivered', () => {
    const body = JSON.stringify({ sid: 'SM1', status: 'undelivered', error_code: 30003 });
    expect(parseSmsOutcome(201, body, null)).toEqual({
      kind: 'refused',
      error: 'responded with 201 (30003)',
    });
  });

  it.each([
    [401, 20003],
    [403, 20006],
    [404, 20404],
    [408, 0],
    [500, 20500],
    [503, 0],
  ])('returns failed for status %i with code %i', (status, code) => {
    expect(parseSmsOutcome(status, code ? createBody(code) : '<html>', null).kind).toBe('failed');
  });

  it.each([
    ['30', 30_000],
    [null, 0],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 0],
    ['-5', 0],
    ['999999', 3_600_000],
  ])('returns failed with the delay of Retry-After for status 429: %s', (header, retryInMs) => {
    expect(parseSmsOutcome(429, createBody(20429), header)).toEqual({
      kind: 'failed',
      error: 'responded with 429 (20429)',
      retryInMs,
    });
    expect(parseSmsOutcome(400, createBody(20429), header).kind).toBe('failed');
  });

  it('never contains the message of the provider, which contains the phone number', () => {
    expect(JSON.stringify(parseSmsOutcome(400, createBody(21211), null))).not.toContain('1500555');
  });
});
