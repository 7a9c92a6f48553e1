import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { getNowMs } from './clock.js';
import { parsePublicEventId, readIdTime, toPublicEventId } from './public-id.js';
import { createId } from './randomness.js';

describe('the public id of an event', () => {
  it('parses to the id of the event', () => {
    const ids = [
      '00000000-0000-0000-0000-000000000000',
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
      '018f3c1e-1111-7222-8333-444455556666',
      createId(),
    ];
    expect(ids.map((id) => parsePublicEventId(toPublicEventId(id)))).toEqual(ids);
  });

  it('is the id of the event in base 32', () => {
    fc.assert(
      fc.property(fc.uuid(), (id) => {
        const digits = Array.from(toPublicEventId(id).slice('evt_'.length));
        const number = digits.reduce(
          (sum, digit) => 32n * sum + BigInt('0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(digit)),
          0n,
        );
        expect([digits.length, number]).toEqual([26, BigInt(`0x${id.replaceAll('-', '')}`)]);
      }),
    );
  });

  it('cannot be parsed from any other text', () => {
    const publicId = toPublicEventId('018f3c1e-1111-7222-8333-444455556666');
    for (const text of [
      '',
      'evt_',
      '1',
      publicId.toLowerCase(),
      publicId.slice(0, -1),
      `${publicId}0`,
      ` ${publicId}`,
      `${publicId}\n`,
      publicId.replace('evt_', 'whd_'),
      publicId.replace('evt_0', 'evt_8'),
      publicId.replace(/.$/, 'U'),
      '018f3c1e-1111-7222-8333-444455556666',
    ]) {
      expect([text, parsePublicEventId(text)]).toEqual([text, undefined]);
    }
  });

  it('has the time at which it was made', () => {
    // RFC 9562, appendix A.6.
    const example = readIdTime('017f22e2-79b0-7cc3-98c4-dc0c0c07398f');
    expect(example.toISOString()).toBe('2022-02-22T19:22:22.000Z');
    const before = getNowMs();
    const at = Number(readIdTime(createId()));
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(getNowMs());
  });
});
