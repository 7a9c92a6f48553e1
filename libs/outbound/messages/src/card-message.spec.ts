import { describe, expect, it } from '@jest/globals';
import type { StoredEvent } from '#event-store/port/event-store.js';
import { chooseRoute, findMessageRequests } from './card-message.js';

const AT = '2026-03-01T10:00:00.000Z';
let events = 0;

function event(type: string, data: object, minutes = 0): StoredEvent {
  const recordedAt = new Date(Date.parse(AT) + minutes * 60_000).toISOString();
  const meta = { accountId: 1, recordedAt };
  return { id: `event-${++events}`, type, data, meta } as unknown as StoredEvent;
}

const created = (customerId: number, sendCardLinks = true) =>
  event('CustomerCreated', { customerId, sendCardLinks });
const issued = (id: number, customerId: number) => event('CustomerCardIssued', { id, customerId });
const createRequest = (customerId: number, customerCardId: number, minutes: number) =>
  event('CardLinksRequested', { customerId, customerCardId }, minutes);

const cards = (batch: StoredEvent[]) =>
  findMessageRequests(batch).requests.map(({ customerId, customerCardId }) => [
    customerId,
    customerCardId,
  ]);

describe('the requests in the log', () => {
  it('are of customers who were created with one, for the card that is issued next', () => {
    const batch = [created(3), created(4, false), issued(8, 4), issued(7, 3), issued(9, 3)];
    expect(cards(batch)).toEqual([[3, 7]]);
    expect(findMessageRequests(batch).issued).toEqual([
      { customerId: 4, customerCardId: 8 },
      { customerId: 3, customerCardId: 9 },
    ]);
  });

  it('wait for a card that comes in a later batch', () => {
    expect(cards([created(3)])).toEqual([[3, null]]);
    expect(findMessageRequests([issued(7, 3), issued(9, 3)]).issued).toEqual([
      { customerId: 3, customerCardId: 7 },
    ]);
  });

  it('are known by their event', () => {
    const request = createRequest(3, 7, 5);
    expect(findMessageRequests([request]).requests).toEqual([
      {
        id: request.id,
        accountId: 1,
        customerId: 3,
        customerCardId: 7,
        at: new Date('2026-03-01T10:05:00Z'),
        signupRequestId: null,
      },
    ]);
  });

  it('are known by the request of the signup that asks for them, and by no other request', () => {
    const requestIdOf = (channel: string) => {
      const event = created(3);
      const meta = { ...event.meta, channel, requestId: 'till-1' };
      return findMessageRequests([{ ...event, meta } as StoredEvent]).requests[0]?.signupRequestId;
    };
    expect([requestIdOf('poster'), requestIdOf('api')]).toEqual(['till-1', null]);
  });

  it('count once within ten minutes for the same card', () => {
    expect(cards([created(3), issued(7, 3), createRequest(3, 7, 9)])).toEqual([[3, 7]]);
    expect(
      cards([createRequest(3, 7, 0), createRequest(3, 8, 1), createRequest(3, 7, 10)]),
    ).toEqual([
      [3, 7],
      [3, 8],
      [3, 7],
    ]);
  });
});

describe('a message goes', () => {
  const email = 'a@x.example';
  const phone = '+4915112345678';
  const smsCountries = ['DE'];
  const both = { email: true, sms: true, smsCountries };

  it('by e-mail where there is an address', () => {
    expect(chooseRoute({ email, phone }, both, false)).toEqual({
      kind: 'send',
      channel: 'email',
      to: email,
    });
  });

  it('by SMS where there is none, or the server does not know it, or no server is set up', () => {
    const sms = { kind: 'send', channel: 'sms', to: phone };
    expect(chooseRoute({ email: null, phone }, both, false)).toEqual(sms);
    expect(chooseRoute({ email, phone }, both, true)).toEqual(sms);
    expect(chooseRoute({ email, phone }, { ...both, email: false }, false)).toEqual(sms);
  });

  it('nowhere yet while nothing is set up that reaches the customer', () => {
    const none = { email: false, sms: false, smsCountries };
    const byMail = {
      kind: 'hold',
      channel: 'email',
      reason: 'no mail server is set up (SMTP_URL)',
    };
    expect(chooseRoute({ email, phone }, none, false)).toEqual(byMail);
    expect(chooseRoute({ email: null, phone }, none, false)).toEqual({
      kind: 'hold',
      channel: 'sms',
      reason: 'no SMS provider is set up (SMS_URL)',
    });
    expect(chooseRoute({ email, phone: null }, { ...none, sms: true }, false)).toEqual(byMail);
  });

  it('by SMS to the countries of the store only, and to no number that costs more', () => {
    const abroad = { email: null, phone: '+18762101234' };
    const heldContact = {
      kind: 'hold',
      channel: 'sms',
      reason: 'the store sends no SMS to Jamaica (Settings, Other countries)',
    };
    expect(chooseRoute(abroad, both, false)).toEqual(heldContact);
    expect(chooseRoute(abroad, { ...both, smsCountries: [] }, false)).toEqual(heldContact);
    expect(chooseRoute(abroad, { ...both, smsCountries: ['DE', 'JM'] }, false)).toMatchObject({
      kind: 'send',
    });
    expect(chooseRoute({ email: null, phone: '+881641234567' }, both, false)).toEqual({
      kind: 'drop',
      reason: 'the phone number is of a kind that gets no SMS',
    });
    // A message that cannot go by SMS waits for the mail server.
    const noMail = { ...both, email: false };
    expect(chooseRoute({ ...abroad, email }, noMail, false)).toMatchObject({ channel: 'email' });
    expect(chooseRoute({ ...abroad, email }, both, true)).toEqual(heldContact);
  });

  it('to nobody without an address that can be used', () => {
    expect(chooseRoute({ email: null, phone: '015112345678' }, both, false)).toEqual({
      kind: 'drop',
      reason: 'the phone number has no country code',
    });
    expect(chooseRoute({ email, phone: null }, both, true)).toMatchObject({ kind: 'drop' });
    expect(chooseRoute({ email: null, phone: null }, both, false)).toMatchObject({ kind: 'drop' });
  });
});
