import { describe, expect, it } from '@jest/globals';
import { KnownErasures, type SendGuard } from './known-erasures.js';

const [ADA, BOB] = [31, 32];

describe('KnownErasures', () => {
  it('treats what was read before an erasure as out of date, for the erased person alone', () => {
    const erasures = new KnownErasures();
    erasures.note([ADA], 100);
    const isCurrent = (id: number, readAt: number) => erasures.isCurrent(id, readAt, 200);
    expect([isCurrent(ADA, 99), isCurrent(ADA, 100), isCurrent(ADA, 101)]).toEqual([
      false,
      false,
      true,
    ]);
    expect(isCurrent(BOB, 1)).toBe(true);
    erasures.note([ADA], 150);
    expect(isCurrent(ADA, 101)).toBe(false);
  });

  it('treats everything as out of date when an erasure may have been missed', () => {
    const erasures = new KnownErasures();
    erasures.doubtAll(100);
    expect([99, 100, 101].map((readAt) => erasures.isCurrent(BOB, readAt, 200))).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('trusts nothing from the time given to trustUntil on', () => {
    const erasures = new KnownErasures();
    expect(erasures.isTrusted(Number.MAX_SAFE_INTEGER)).toBe(true);
    erasures.trustUntil(100);
    expect([erasures.isTrusted(99), erasures.isTrusted(100)]).toEqual([true, false]);
    expect([erasures.isCurrent(ADA, 50, 99), erasures.isCurrent(ADA, 50, 100)]).toEqual([
      true,
      false,
    ]);
  });

  it('forgets the oldest erasures when it is full, and then treats everything read before as out of date', () => {
    const erasures = new KnownErasures(2);
    erasures.note([1, 2], 100);
    erasures.note([3], 110);
    const isCurrent = (id: number, readAt: number) => erasures.isCurrent(id, readAt, 200);
    expect([isCurrent(1, 100), isCurrent(BOB, 100), isCurrent(BOB, 101)]).toEqual([
      false,
      false,
      true,
    ]);
    expect([isCurrent(3, 110), isCurrent(3, 111)]).toEqual([false, true]);
  });

  it('aborts what is being sent about the erased person, and does not send what is out of date', async () => {
    const erasures = new KnownErasures();
    const waitForAbort = ({ erased }: SendGuard) =>
      new Promise<string>((resolve) => {
        erased.addEventListener('abort', () => resolve('aborted'));
      });
    const ada = erasures.send({ subjectId: ADA, readAt: 90 }, () => 95, waitForAbort);
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
    const sendNow = () => Promise.resolve('sent');
    expect(await erasures.send({ subjectId: ADA, readAt: 90 }, () => 105, sendNow)).toBeUndefined();
    expect(await erasures.send({ subjectId: ADA, readAt: 101 }, () => 105, sendNow)).toBe('sent');
  });

  it('keeps what went out of date while the connection opened from being sent', async () => {
    const erasures = new KnownErasures();
    let now = 95;
    const send = (subjectId: number, meanwhile: () => void) =>
      erasures.send(
        { subjectId, readAt: 90 },
        () => now,
        ({ mayBeSent }) => {
          const couldBeSent = mayBeSent();
          meanwhile();
          return Promise.resolve([couldBeSent, mayBeSent()]);
        },
      );
    expect(await send(ADA, () => erasures.note([ADA], 100))).toEqual([true, false]);
    erasures.trustUntil(200);
    expect(await send(BOB, () => (now = 199))).toEqual([true, true]);
    expect(await send(BOB, () => (now = 200))).toEqual([true, false]);
  });

  it('aborts everything that is being sent when an erasure may have been missed', async () => {
    const erasures = new KnownErasures();
    const waitForAbort = ({ erased }: SendGuard) =>
      new Promise<string>((resolve) => {
        erased.addEventListener('abort', () => resolve('aborted'));
      });
    const sends = [ADA, BOB].map((subjectId) =>
      erasures.send({ subjectId, readAt: 90 }, () => 95, waitForAbort),
    );
    erasures.doubtAll(100);
    expect(await Promise.all(sends)).toEqual(['aborted', 'aborted']);
  });
});
