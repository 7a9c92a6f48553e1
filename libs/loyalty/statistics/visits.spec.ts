import { describe, expect, it } from '@jest/globals';
import { LocalClock } from './local-clock.js';
import {
  addJoined,
  COUNTS,
  HourCounts,
  VisitCounter,
  type Count,
  type Step,
  type Visit,
} from './visits.js';

const BERLIN = new LocalClock('Europe/Berlin');

let serial = 0;
const visit = (at: string, more: Partial<Visit> = {}): Visit => ({
  cardId: 1,
  locationId: null,
  userId: null,
  at: Date.parse(at),
  stamps: 1,
  isRedemption: false,
  seq: ++serial,
  reversedSeq: null,
  ...more,
});

/** Counts a step with all visits of the customer. */
function addVisits(counts: HourCounts, visits: Visit[], step: Step): void {
  const counter = new VisitCounter(counts, BERLIN, step);
  for (const next of visits.toSorted((a, b) => a.at - b.at || a.seq - b.seq)) counter.add(next);
}

function count(visits: Visit[], upTo = serial + 1): [string, Partial<Record<Count, number>>][] {
  const counts = new HourCounts();
  addVisits(counts, visits, { after: -1, upTo });
  return counts.list().map(({ hour, counts: numbers }) => {
    const entries = COUNTS.map((name, i) => [name, numbers[i] ?? 0] as const);
    return [
      `${hour.cardId}/${hour.locationId}/${hour.userId} ${hour.day} ${hour.hour}`,
      Object.fromEntries(entries.filter(([, number]) => number !== 0)),
    ];
  });
}

const FIRST = { first_of_day: 1, first_of_week: 1, first_of_month: 1, first_of_all: 1 };

it('tells customers whom an import added from those who joined', () => {
  const counts = new HourCounts();
  const at = Date.parse('2026-03-30T10:00:00Z');
  for (const isImported of [true, false, true])
    addJoined(counts, { cardId: 0, at, isImported }, BERLIN);
  const [numbers = []] = counts.list().map((hour) => hour.counts);
  expect([numbers[COUNTS.indexOf('joined')], numbers[COUNTS.indexOf('imported')]]).toEqual([1, 2]);
});

describe('the visits of a customer', () => {
  it('count in the hours of the store, for the store and the card', () => {
    const [all, ofCard] = count([visit('2026-03-28T23:30:00Z', { stamps: 3 })]);
    expect(all).toEqual(['0/0/0 2026-03-29 0', { visits: 1, stamps: 3, ...FIRST }]);
    expect(ofCard).toEqual(['1/0/0 2026-03-29 0', { visits: 1, stamps: 3, ...FIRST }]);
  });

  it('count for their location too, alone and with the card', () => {
    const places = count([visit('2026-03-28T10:00:00Z', { locationId: 5 })]);
    expect(places.map(([place]) => place.split(' ')[0])).toEqual([
      '0/0/0',
      '1/0/0',
      '0/5/0',
      '1/5/0',
    ]);
  });

  it('count for their user too, alone and with the card and the location', () => {
    const places = count([visit('2026-03-28T10:00:00Z', { locationId: 5, userId: 7 })]);
    expect(places.map(([place]) => place.split(' ')[0])).toEqual([
      '0/0/0',
      '1/0/0',
      '0/5/0',
      '1/5/0',
      '0/0/7',
      '1/0/7',
      '0/5/7',
      '1/5/7',
    ]);
  });

  it('count the customer once a day, week and month', () => {
    const hours = count([
      visit('2026-03-30T10:00:00Z'),
      visit('2026-03-30T11:00:00Z'),
      visit('2026-04-01T10:00:00Z'),
      visit('2026-04-06T10:00:00Z'),
    ]).filter(([place]) => place.startsWith('0/0/0'));
    expect(hours.map(([, numbers]) => numbers)).toEqual([
      { visits: 1, stamps: 1, ...FIRST },
      { stamps: 1 },
      { visits: 1, stamps: 1, first_of_day: 1, first_of_month: 1 },
      { visits: 1, stamps: 1, first_of_day: 1, first_of_week: 1 },
    ]);
  });

  it('count one visit a day with each card, where it began', () => {
    const hours = count([
      visit('2026-03-30T10:00:00Z', { locationId: 5 }),
      visit('2026-03-30T10:05:00Z', { locationId: 6 }),
      visit('2026-03-30T12:00:00Z', { cardId: 2 }),
    ]);
    const sums = Object.fromEntries(hours.map(([place, { visits = 0 }]) => [place, visits]));
    expect(sums).toMatchObject({
      '0/0/0 2026-03-30 12': 1,
      '0/0/0 2026-03-30 14': 1,
      '0/5/0 2026-03-30 12': 1,
      '0/6/0 2026-03-30 12': 0,
      '2/0/0 2026-03-30 14': 1,
    });
  });

  it('moves to where the day goes on when its beginning is undone', () => {
    const undone = visit('2026-03-30T10:00:00Z', { locationId: 5 });
    const next = visit('2026-03-30T10:30:00Z', { locationId: 6 });
    const [after, upTo] = [serial, serial + 1];
    const counts = new HourCounts();
    addVisits(counts, [{ ...undone, reversedSeq: upTo }, next], { after, upTo });
    const visits = counts.list().map(({ hour, counts: [first] }) => [hour.locationId, first]);
    expect(visits.filter(([locationId]) => locationId !== 0)).toEqual([
      [5, -1],
      [5, -1],
      [6, 1],
      [6, 1],
    ]);
  });

  it('count no more once they are undone, and the next one is the first', () => {
    const undone = visit('2026-03-30T10:00:00Z', { reversedSeq: 1_000 });
    const next = visit('2026-03-30T12:00:00Z', { isRedemption: true, stamps: 0 });
    expect(count([undone, next], 999)).toHaveLength(4);
    expect(count([undone, next], 1_000)).toEqual([
      ['0/0/0 2026-03-30 14', { visits: 1, redemptions: 1, ...FIRST }],
      ['1/0/0 2026-03-30 14', { visits: 1, redemptions: 1, ...FIRST }],
    ]);
  });

  it('that came late take over from those that had been the first', () => {
    const visits = [visit('2026-03-30T10:00:00Z'), visit('2026-03-30T08:00:00Z')];
    const counts = new HourCounts();
    const [after = 0, upTo = 0] = visits.map(({ seq }) => seq);
    addVisits(counts, visits, { after, upTo });
    const changes = counts.list().filter(({ hour }) => hour.cardId === 0);
    expect(changes.map(({ hour, counts: numbers }) => [hour.hour, numbers])).toEqual([
      [10, [1, 1, 0, 0, 0, 1, 1, 1, 1]],
      [12, [-1, 0, 0, 0, 0, -1, -1, -1, -1]],
    ]);
  });

  it.each(
    [undefined, 2_000].flatMap((reversedSeq) =>
      ['2026-03-29T09:00:00Z', '2026-03-30T10:30:00Z', '2026-04-05T22:30:00Z'].flatMap((at) =>
        [1, 2].map((cardId) => ({ at, cardId, reversedSeq })),
      ),
    ),
  )(
    'count the same from all of them and from those near a change at $at on card $cardId',
    ({ at, cardId, reversedSeq }) => {
      const oldVisits = Array.from({ length: 200 }, (_, i) =>
        visit(new Date(Date.parse('2026-03-01T00:00:00Z') + i * 6 * 3_600_000).toISOString(), {
          cardId: i % 3 === 0 ? 2 : 1,
          seq: i,
          reversedSeq: i % 7 === 0 ? 900 : null,
        }),
      );
      const changedVisit = visit(at, { cardId, seq: reversedSeq ? 500 : 1_999 });
      const visits = [...oldVisits, { ...changedVisit, reversedSeq: reversedSeq ?? null }];
      const step = { after: 1_000, upTo: 2_500 };
      const expected = new HourCounts();
      addVisits(expected, visits, step);

      const counts = new HourCounts();
      const counter = new VisitCounter(counts, BERLIN, step, [changedVisit]);
      let readCount = 0;
      const inOrder = visits.toSorted((a, b) => a.at - b.at || a.seq - b.seq);
      const index = inOrder.findIndex(({ seq }) => seq === changedVisit.seq);
      for (let i = index - 1; i >= 0 && counter.needsEarlier(); i--, readCount++) {
        counter.readEarlier(inOrder[i] ?? changedVisit);
      }
      for (let i = index; i < inOrder.length && counter.needsLater(); i++, readCount++) {
        counter.add(inOrder[i] ?? changedVisit);
      }
      expect(counts.list()).toEqual(expected.list());
      expect(counts.list()).not.toEqual([]);
      expect(readCount).toBeLessThan(15);
    },
  );
});
