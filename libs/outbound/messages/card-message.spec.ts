import { describe, expect, it } from '@jest/globals';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { findMessageRequests } from './card-message.js';

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
        asksForSms: false,
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
