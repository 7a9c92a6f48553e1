import { describe, expect, it } from '@jest/globals';
import { KnownErasures, type Sending } from './known-erasures.js';

const [ADA, BOB] = [31, 32];

describe('known erasures', () => {
  it('put what was read before out of date, of the erased person alone', () => {
    const erasures = new KnownErasures();
    erasures.note([ADA], 100);
    const current = (id: number, readAt: number) => erasures.isCurrent(id, readAt, 200);
    expect([current(ADA, 99), current(ADA, 100), current(ADA, 101)]).toEqual([false, false, true]);
    expect(current(BOB, 1)).toBe(true);
    erasures.note([ADA], 150);
    expect(current(ADA, 101)).toBe(false);
  });

  it('put everything out of date when one may have been missed', () => {
    const erasures = new KnownErasures();
    erasures.doubtAll(100);
    expect([99, 100, 101].map((readAt) => erasures.isCurrent(BOB, readAt, 200))).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('let nothing be used of a process that nobody waits for any more', () => {
    const erasures = new KnownErasures();
    expect(erasures.isTrusted(Number.MAX_SAFE_INTEGER)).toBe(true);
    erasures.trustUntil(100);
    expect([erasures.isTrusted(99), erasures.isTrusted(100)]).toEqual([true, false]);
    expect([erasures.isCurrent(ADA, 50, 99), erasures.isCurrent(ADA, 50, 100)]).toEqual([
      true,
      false,
    ]);
  });

  it('forget the oldest for the price of everything that was read before', () => {
    const erasures = new KnownErasures(2);
    erasures.note([1, 2], 100);
    erasures.note([3], 110);
    const current = (id: number, readAt: number) => erasures.isCurrent(id, readAt, 200);
    expect([current(1, 100), current(BOB, 100), current(BOB, 101)]).toEqual([false, false, true]);
    expect([current(3, 110), current(3, 111)]).toEqual([false, true]);
  });

  it('abort what is being sent of the erased person, and keep back what is out of date', async () => {
    const erasures = new KnownErasures();
    const aborted = ({ erased }: Sending) =>
      new Promise<string>((resolve) => {
        erased.addEventListener('abort', () => resolve('aborted'));
      });
    const ada = erasures.send({ subjectId: ADA, readAt: 90 }, () => 95, aborted);
    const bob = erasures.send(
      { subjectId: BOB, readAt: 90 },
      () => 95,
      async ({ erased }) => {
        await ada;
        return erased.aborted;
      },
    );
    erasures.note([ADA], 100);
    expect([await ada, await bob]).toEqual(['aborted', false]);
    const sent = () => Promise.resolve('sent');
    expect(await erasures.send({ subjectId: ADA, readAt: 90 }, () => 105, sent)).toBeUndefined();
    expect(await erasures.send({ subjectId: ADA, readAt: 101 }, () => 105, sent)).toBe('sent');
  });

  it('keep back what went out of date while its connection was made', async () => {
    const erasures = new KnownErasures();
    let now = 95;
    const send = (subjectId: number, happens: () => void) =>
      erasures.send(
        { subjectId, readAt: 90 },
        () => now,
        ({ mayBeSent }) => {
          const before = mayBeSent();
          happens();
          return Promise.resolve([before, mayBeSent()]);
        },
      );
    expect(await send(ADA, () => erasures.note([ADA], 100))).toEqual([true, false]);
    erasures.trustUntil(200);
    expect(await send(BOB, () => (now = 199))).toEqual([true, true]);
    expect(await send(BOB, () => (now = 200))).toEqual([true, false]);
  });

  it('abort everything that is being sent when one may have been missed', async () => {
    const erasures = new KnownErasures();
    const aborted = ({ erased }: Sending) =>
      new Promise<string>((resolve) => {
        erased.addEventListener('abort', () => resolve('aborted'));
      });
    const sending = [ADA, BOB].map((subjectId) =>
      erasures.send({ subjectId, readAt: 90 }, () => 95, aborted),
    );
    erasures.doubtAll(100);
    expect(await Promise.all(sending)).toEqual(['aborted', 'aborted']);
  });
});
