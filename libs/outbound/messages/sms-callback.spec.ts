import { describe, expect, it } from '@jest/globals';
import {
  isSignedSms,
  parseSmsArrival,
  createSmsCallbackUrl,
  signSmsCallback,
} from './sms-callback.js';

describe('isSignedSms', () => {
  // From Twilio's documentation of webhook security.
  const url = 'https://mycompany.com/myapp.php?foo=1&bar=2';
  const form = {
    CallSid: 'CA1234567890ABCDE',
    Caller: '+14158675309',
    Digits: '1234',
    From: '+14158675309',
    To: '+18005551212',
  };
  const signature = 'RSOYDt4T1cUTdK1PDd93/VVr8B8=';

  it('accepts the documented signature of the provider, which signSmsCallback returns too', () => {
    expect(signSmsCallback(url, form, '12345').toString('base64')).toBe(signature);
    expect(isSignedSms(url, form, '12345', signature)).toBe(true);
  });

  it.each([
    ['another token', url, form, '12346', signature],
    ['another URL', `${url}3`, form, '12345', signature],
    ['another field', url, { ...form, Digits: '1235' }, '12345', signature],
    ['one more field', url, { ...form, Extra: '' }, '12345', signature],
    ['a missing signature', url, form, '12345', undefined],
    ['another signature', url, form, '12345', 'AA=='],
  ])('refuses %s', (_, at, fields, token, signature) => {
    expect(isSignedSms(at, fields, token, signature)).toBe(false);
  });
});

describe('parseSmsArrival', () => {
  it('returns whether a message has arrived, or undefined before that is known', () => {
    const parse = (form: object) => parseSmsArrival({ MessageSid: 'SM1', ...form });
    expect(parse({ MessageStatus: 'sent' })).toBeUndefined();
    expect(parse({ MessageStatus: 'constructor' })).toBeUndefined();
    expect(parse({ MessageStatus: 'delivered' })).toEqual({
      providerId: 'SM1',
      arrival: 'delivered',
      code: null,
    });
    expect(parse({ MessageStatus: 'undelivered', ErrorCode: '30003' })).toMatchObject({
      arrival: 'undelivered',
      code: 30003,
    });
    expect(parse({ MessageStatus: 'failed', ErrorCode: 'x' })).toMatchObject({ code: null });
  });
});

describe('createSmsCallbackUrl', () => {
  it('returns a URL only when the provider can reach the service', () => {
    const id = '01a1ff5c-02e4-749b-9839-d72c9d71752e';
    expect(createSmsCallbackUrl('https://shop.example/inkpad', id)).toBe(
      `https://shop.example/inkpad/sms/status/${id}`,
    );
    for (const local of ['http://shop.example', 'https://localhost', 'https://cards.localhost']) {
      expect(createSmsCallbackUrl(local, id)).toBeUndefined();
    }
  });
});
