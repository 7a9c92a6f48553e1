import { describe, expect, it } from '@jest/globals';
import { parseSmsOutcome } from './sms-response.js';

const refusal = (code: number) =>
  JSON.stringify({ code, message: 'The number +15005550009 is not taken', status: 400 });

describe('the answer of an SMS provider', () => {
  it('is taken with the provider’s id', () => {
    const body = JSON.stringify({ sid: 'SM1', status: 'queued', error_code: null });
    expect(parseSmsOutcome(201, body, null)).toEqual({ kind: 'sent', providerId: 'SM1' });
    expect(parseSmsOutcome(200, 'ok', null)).toEqual({ kind: 'sent', providerId: null });
    expect(parseSmsOutcome(201, JSON.stringify({ sid: 'a\nb' }), null)).toEqual({
      kind: 'sent',
      providerId: null,
    });
  });

  it.each([21211, 21610, 21614])('is final for this message with 400 and %i', (code) => {
    const outcome = parseSmsOutcome(400, refusal(code), null);
    expect(outcome).toEqual({ kind: 'refused', error: `answered 400 (${code})` });
  });

  it('is final when the message was taken and already lost', () => {
    const body = JSON.stringify({ sid: 'SM1', status: 'undelivered', error_code: 30003 });
    expect(parseSmsOutcome(201, body, null)).toEqual({
      kind: 'refused',
      error: 'answered 201 (30003)',
    });
  });

  it.each([
    [401, 20003],
    [403, 20006],
    [404, 20404],
    [408, 0],
    [500, 20500],
    [503, 0],
  ])('is no reason to give up with %i', (status, code) => {
    expect(parseSmsOutcome(status, code ? refusal(code) : '<html>', null).kind).toBe('failed');
  });

  it.each([
    ['30', 30_000],
    [null, 0],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 0],
    ['-5', 0],
    ['999999', 3_600_000],
  ])('asks for patience with 429 and Retry-After %s', (header, retryInMs) => {
    expect(parseSmsOutcome(429, refusal(20429), header)).toEqual({
      kind: 'failed',
      error: 'answered 429 (20429)',
      retryInMs,
    });
    expect(parseSmsOutcome(400, refusal(20429), header).kind).toBe('failed');
  });

  it('never repeats what the provider says, which has the number in it', () => {
    expect(JSON.stringify(parseSmsOutcome(400, refusal(21211), null))).not.toContain('1500555');
  });
});
