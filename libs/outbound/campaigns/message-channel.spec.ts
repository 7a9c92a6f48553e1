import { describe, expect, it } from '@jest/globals';
import { CHANNELS, chooseChannel, countReach, type Reachability } from './message-channel.js';

const SET_UP = { email: true, sms: true };
const EVERYTHING: Reachability = {
  hasCard: true,
  hasPass: true,
  hasBrowser: true,
  hasEmail: true,
  hasPhone: true,
  marketingConsent: true,
  smsConsent: true,
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

  it('takes the consent of each channel for that channel only', () => {
    const person = { ...EVERYTHING, marketingConsent: false };
    expect(chooseChannel(person, ['email', 'sms'], SET_UP).channel).toBe('sms');
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

  it('says that the operator has set up no mail server before it says what the customer lacks', () => {
    expect(chooseChannel(NOTHING, ['email'], { email: false, sms: false }).reasons).toEqual([
      { channel: 'email', reason: 'not_set_up' },
    ]);
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
