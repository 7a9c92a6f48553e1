import { describe, expect, it } from '@jest/globals';
import {
  CHANNELS,
  chooseChannel,
  chooseRoute,
  countReach,
  findTellingReason,
  UNREACHED_REASONS,
  type Reachability,
} from './message-channel.js';

const SET_UP = { wallet: true, web_push: true, email: true, sms: true };
const EVERYTHING: Reachability = {
  hasCard: true,
  hasPass: true,
  hasBrowser: true,
  hasEmail: true,
  hasBounced: false,
  hasPhone: true,
  marketingConsent: true,
  smsConsent: true,
  isEmailUnconfirmed: false,
  isPhoneUnconfirmed: false,
  hasStopped: false,
};
const NOTHING: Reachability = {
  ...EVERYTHING,
  hasPass: false,
  hasBrowser: false,
  hasEmail: false,
  hasPhone: false,
};

describe('chooseChannel', () => {
  it('takes the first channel of the store that reaches the customer', () => {
    expect(chooseChannel(EVERYTHING, ['sms', 'wallet'], SET_UP).channel).toBe('sms');
    expect(chooseChannel({ ...NOTHING, hasBrowser: true }, CHANNELS, SET_UP).channel).toBe(
      'web_push',
    );
  });

  it('needs a consent for e-mail and SMS, and none for passes and browsers', () => {
    const person = { ...EVERYTHING, marketingConsent: false, smsConsent: false };
    expect(chooseChannel(person, ['email', 'sms'], SET_UP)).toEqual({
      channel: null,
      reasons: [
        { channel: 'email', reason: 'no_consent' },
        { channel: 'sms', reason: 'no_consent' },
      ],
    });
    expect(chooseChannel(person, ['email', 'wallet'], SET_UP).channel).toBe('wallet');
  });

  it('takes no consent that waits for the link that went to the address or number', () => {
    const person = { ...EVERYTHING, isEmailUnconfirmed: true };
    expect(chooseChannel(person, ['email', 'sms'], SET_UP).channel).toBe('sms');
    expect(
      chooseChannel({ ...person, isPhoneUnconfirmed: true }, ['email', 'sms'], SET_UP).reasons,
    ).toEqual([
      { channel: 'email', reason: 'unconfirmed' },
      { channel: 'sms', reason: 'unconfirmed' },
    ]);
  });

  it('takes the consent of each channel for that channel only', () => {
    const person = { ...EVERYTHING, marketingConsent: false };
    expect(chooseChannel(person, ['email', 'sms'], SET_UP).channel).toBe('sms');
  });

  it('tries the next channel once an e-mail to the address came back', () => {
    const person = { ...EVERYTHING, hasBounced: true };
    expect(chooseChannel(person, ['email', 'sms'], SET_UP).channel).toBe('sms');
    expect(chooseChannel(person, ['email'], SET_UP).reasons).toEqual([
      { channel: 'email', reason: 'bounced' },
    ]);
  });

  it('reaches nobody who has stopped messages, whatever they agreed to before', () => {
    const choice = chooseChannel({ ...EVERYTHING, hasStopped: true }, CHANNELS, SET_UP);
    expect(choice.reasons.map(({ reason }) => reason)).toEqual(CHANNELS.map(() => 'stopped'));
  });

  it('reaches nobody without a card, because its page is where messages are stopped', () => {
    expect(chooseChannel({ ...EVERYTHING, hasCard: false }, ['email'], SET_UP)).toEqual({
      channel: null,
      reasons: [{ channel: 'email', reason: 'no_card' }],
    });
  });

  it.each(['wallet', 'email', 'sms'] as const)(
    'says that the operator has not set up %s before it says what the customer lacks',
    (channel) => {
      const setUp = { ...SET_UP, [channel]: false };
      expect(chooseChannel(NOTHING, [channel], setUp).reasons).toEqual([
        { channel, reason: 'not_set_up' },
      ]);
    },
  );
});

describe('findTellingReason', () => {
  it.each(UNREACHED_REASONS)('finds %s where it is the only reason', (reason) => {
    const reasons = [{ channel: 'email' as const, reason }];
    expect(findTellingReason({ channel: null, reasons })).toBe(reason);
  });

  it('finds a consent that waits for its link rather than one that is missing, and either rather than a pass', () => {
    const person = { ...NOTHING, hasEmail: true, hasPhone: true, smsConsent: false };
    const find = (isEmailUnconfirmed: boolean, marketingConsent: boolean) =>
      findTellingReason(
        chooseChannel({ ...person, isEmailUnconfirmed, marketingConsent }, CHANNELS, SET_UP),
      );
    expect(find(true, true)).toBe('unconfirmed');
    expect(find(false, false)).toBe('no_consent');
  });
});

describe('countReach', () => {
  it('counts people by channel, and the unreached by the reason of each channel', () => {
    const groups = [
      { people: 3, person: EVERYTHING },
      { people: 2, person: { ...NOTHING, hasEmail: true } },
      { people: 4, person: { ...NOTHING, hasEmail: true, marketingConsent: false } },
    ];
    expect(countReach(groups, ['wallet', 'email'], SET_UP)).toEqual({
      people: 9,
      reached: 5,
      byChannel: { wallet: 3, web_push: 0, email: 2, sms: 0 },
      reasons: [
        { channel: 'wallet', reason: 'no_pass', people: 4 },
        { channel: 'email', reason: 'no_consent', people: 4 },
      ],
    });
  });
});

describe('chooseRoute', () => {
  const email = 'a@x.example';
  const phone = '+4915112345678';
  const smsCountries = ['DE'];
  const both = { ...SET_UP, smsCountries };

  it('sends by e-mail when there is an address', () => {
    expect(chooseRoute({ email, phone }, both)).toEqual({
      kind: 'send',
      channel: 'email',
      to: email,
    });
  });

  it('sends by SMS when there is no address, the mail server refuses it, or none is set up', () => {
    const sms = { kind: 'send', channel: 'sms', to: phone };
    expect(chooseRoute({ email: null, phone }, both)).toEqual(sms);
    expect(chooseRoute({ email, phone }, both, ['email'])).toEqual(sms);
    expect(chooseRoute({ email, phone }, { ...both, email: false })).toEqual(sms);
  });

  it('sends no e-mail to an address from which one came back', () => {
    const bounced = { email, hasBounced: true };
    const sms = { kind: 'send', channel: 'sms', to: phone };
    expect(chooseRoute({ ...bounced, phone }, both)).toEqual(sms);
    const dropped = { kind: 'drop', reason: 'bounced' };
    expect(chooseRoute({ ...bounced, phone: null }, both)).toEqual(dropped);
  });

  it('holds a message while nothing is set up that reaches the customer', () => {
    const none = { ...SET_UP, email: false, sms: false, smsCountries };
    const byMail = {
      kind: 'hold',
      channel: 'email',
      reason: 'mail_not_set_up',
    };
    expect(chooseRoute({ email, phone }, none)).toEqual(byMail);
    expect(chooseRoute({ email: null, phone }, none)).toEqual({
      kind: 'hold',
      channel: 'sms',
      reason: 'sms_not_set_up',
    });
    expect(chooseRoute({ email, phone: null }, { ...none, sms: true })).toEqual(byMail);
  });

  it('sends SMS to the countries of the store only, and never to a number that costs more', () => {
    const abroad = { email: null, phone: '+18762101234' };
    const expectedHold = {
      kind: 'hold',
      channel: 'sms',
      reason: 'country_not_allowed JM',
    };
    expect(chooseRoute(abroad, both)).toEqual(expectedHold);
    expect(chooseRoute(abroad, { ...both, smsCountries: [] })).toEqual(expectedHold);
    expect(chooseRoute(abroad, { ...both, smsCountries: ['DE', 'JM'] })).toMatchObject({
      kind: 'send',
    });
    expect(chooseRoute({ email: null, phone: '+881641234567' }, both)).toEqual({
      kind: 'drop',
      reason: 'number_without_sms',
    });
    // A message that cannot go by SMS waits for the mail server.
    const noMail = { ...both, email: false };
    expect(chooseRoute({ ...abroad, email }, noMail)).toMatchObject({ channel: 'email' });
    expect(chooseRoute({ ...abroad, email }, both, ['email'])).toEqual(expectedHold);
  });

  it('drops a message to a customer without a usable address or number', () => {
    expect(chooseRoute({ email: null, phone: '015112345678' }, both)).toEqual({
      kind: 'drop',
      reason: 'no_country_code',
    });
    expect(chooseRoute({ email, phone: null }, both, ['email'])).toMatchObject({ kind: 'drop' });
    expect(chooseRoute({ email: null, phone: null }, both)).toMatchObject({ kind: 'drop' });
  });
});
