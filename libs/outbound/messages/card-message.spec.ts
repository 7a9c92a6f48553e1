import { describe, expect, it } from '@jest/globals';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { chooseRoute, findMessageRequests } from './card-message.js';

const AT = '2026-03-01T10:00:00.000Z';
let events = 0;

function event(type: string, data: object, minutes = 0): StoredEvent {
  const recordedAt = new Date(Date.parse(AT) + minutes * 60_000).toISOString();
  const meta = { accountId: 1, recordedAt };
  return { id: `event-${++events}`, type, data, meta } as unknown as StoredEvent;
}

const createCustomer = (customerId: number, sendCardLinks = true) =>
  event('CustomerCreated', { customerId, sendCardLinks });
const issueCard = (id: number, customerId: number) =>
  event('CustomerCardIssued', { id, customerId });
const requestLinks = (customerId: number, customerCardId: number, minutes: number) =>
  event('CardLinksRequested', { customerId, customerCardId }, minutes);

const listCards = (batch: StoredEvent[]) =>
  findMessageRequests(batch).requests.map(({ customerId, customerCardId }) => [
    customerId,
    customerCardId,
  ]);

describe('findMessageRequests', () => {
  it('finds customers created with a request, and the first card issued to each', () => {
    const batch = [
      createCustomer(3),
      createCustomer(4, false),
      issueCard(8, 4),
      issueCard(7, 3),
      issueCard(9, 3),
    ];
    expect(listCards(batch)).toEqual([[3, 7]]);
    expect(findMessageRequests(batch).issued).toEqual([
      { customerId: 4, customerCardId: 8 },
      { customerId: 3, customerCardId: 9 },
    ]);
  });

  it('leaves the card open when it is issued in a later batch', () => {
    expect(listCards([createCustomer(3)])).toEqual([[3, null]]);
    expect(findMessageRequests([issueCard(7, 3), issueCard(9, 3)]).issued).toEqual([
      { customerId: 3, customerCardId: 7 },
    ]);
  });

  it('takes the id and the time of a request from its event', () => {
    const request = requestLinks(3, 7, 5);
    expect(findMessageRequests([request]).requests).toEqual([
      {
        id: request.id,
        accountId: 1,
        customerId: 3,
        customerCardId: 7,
        at: new Date('2026-03-01T10:05:00Z'),
        causationId: null,
      },
    ]);
  });

  it('returns what has caused it, whatever id its request has', () => {
    const findCause = (causationId?: string) => {
      const event = createCustomer(3);
      const meta = { ...event.meta, requestId: 'till-1', ...(causationId && { causationId }) };
      return findMessageRequests([{ ...event, meta } as StoredEvent]).requests[0]?.causationId;
    };
    expect([findCause('signup-1'), findCause()]).toEqual(['signup-1', null]);
  });

  it('merges requests for the same card within ten minutes', () => {
    expect(listCards([createCustomer(3), issueCard(7, 3), requestLinks(3, 7, 9)])).toEqual([
      [3, 7],
    ]);
    expect(
      listCards([requestLinks(3, 7, 0), requestLinks(3, 8, 1), requestLinks(3, 7, 10)]),
    ).toEqual([
      [3, 7],
      [3, 8],
      [3, 7],
    ]);
  });
});

describe('chooseRoute', () => {
  const email = 'a@x.example';
  const phone = '+4915112345678';
  const smsCountries = ['DE'];
  const both = { email: true, sms: true, smsCountries };

  it('sends by e-mail when there is an address', () => {
    expect(chooseRoute({ email, phone }, both, false)).toEqual({
      kind: 'send',
      channel: 'email',
      to: email,
    });
  });

  it('sends by SMS when there is no address, the mail server refuses it, or none is set up', () => {
    const sms = { kind: 'send', channel: 'sms', to: phone };
    expect(chooseRoute({ email: null, phone }, both, false)).toEqual(sms);
    expect(chooseRoute({ email, phone }, both, true)).toEqual(sms);
    expect(chooseRoute({ email, phone }, { ...both, email: false }, false)).toEqual(sms);
  });

  it('sends no e-mail to an address from which one came back', () => {
    const bounced = { email, hasBounced: true };
    const sms = { kind: 'send', channel: 'sms', to: phone };
    expect(chooseRoute({ ...bounced, phone }, both, false)).toEqual(sms);
    const dropped = { kind: 'drop', reason: 'bounced' };
    expect(chooseRoute({ ...bounced, phone: null }, both, false)).toEqual(dropped);
  });

  it('holds a message while nothing is set up that reaches the customer', () => {
    const none = { email: false, sms: false, smsCountries };
    const byMail = {
      kind: 'hold',
      channel: 'email',
      reason: 'mail_not_set_up',
    };
    expect(chooseRoute({ email, phone }, none, false)).toEqual(byMail);
    expect(chooseRoute({ email: null, phone }, none, false)).toEqual({
      kind: 'hold',
      channel: 'sms',
      reason: 'sms_not_set_up',
    });
    expect(chooseRoute({ email, phone: null }, { ...none, sms: true }, false)).toEqual(byMail);
  });

  it('sends SMS to the countries of the store only, and never to a number that costs more', () => {
    const abroad = { email: null, phone: '+18762101234' };
    const expectedHold = {
      kind: 'hold',
      channel: 'sms',
      reason: 'country_not_allowed JM',
    };
    expect(chooseRoute(abroad, both, false)).toEqual(expectedHold);
    expect(chooseRoute(abroad, { ...both, smsCountries: [] }, false)).toEqual(expectedHold);
    expect(chooseRoute(abroad, { ...both, smsCountries: ['DE', 'JM'] }, false)).toMatchObject({
      kind: 'send',
    });
    expect(chooseRoute({ email: null, phone: '+881641234567' }, both, false)).toEqual({
      kind: 'drop',
      reason: 'number_without_sms',
    });
    // A message that cannot go by SMS waits for the mail server.
    const noMail = { ...both, email: false };
    expect(chooseRoute({ ...abroad, email }, noMail, false)).toMatchObject({ channel: 'email' });
    expect(chooseRoute({ ...abroad, email }, both, true)).toEqual(expectedHold);
  });

  it('drops a message to a customer without a usable address or number', () => {
    expect(chooseRoute({ email: null, phone: '015112345678' }, both, false)).toEqual({
      kind: 'drop',
      reason: 'no_country_code',
    });
    expect(chooseRoute({ email, phone: null }, both, true)).toMatchObject({ kind: 'drop' });
    expect(chooseRoute({ email: null, phone: null }, both, false)).toMatchObject({ kind: 'drop' });
  });
});
