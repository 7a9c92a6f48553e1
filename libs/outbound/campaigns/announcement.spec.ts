import { describe, expect, it } from '@jest/globals';
import { RejectedError } from '#platform/kernel/errors.js';
import {
  cancelAnnouncement,
  changeAnnouncement,
  scheduleAnnouncement,
  type Announcement,
} from './announcement.js';

const NOW = new Date('2026-07-01T12:00:00Z');
const LATER = new Date('2026-07-02T12:00:00Z');
const EVERYBODY = { cardId: null, minStamps: null, birthdayMonth: null, inactiveSince: null };

const announcement = (changes: Partial<Announcement> = {}): Announcement => ({
  id: 1,
  accountId: 1,
  state: 'draft',
  title: 'Closed on Monday',
  text: 'See you on Tuesday',
  channels: ['wallet', 'email'],
  audience: EVERYBODY,
  sendAt: null,
  createdAt: NOW,
  updatedAt: NOW,
  startedAt: null,
  finishedAt: null,
  ...changes,
});

describe('changeAnnouncement', () => {
  it('changes what is named, and leaves the rest', () => {
    const changes = { text: 'We open on Tuesday', audience: { minStamps: 3 } };
    const scheduled = announcement({ state: 'scheduled' });
    expect(changeAnnouncement(scheduled, changes)).toEqual({
      ...scheduled,
      text: 'We open on Tuesday',
      audience: { ...EVERYBODY, minStamps: 3 },
    });
  });

  it.each(['sending', 'sent', 'cancelled'] as const)(
    'refuses to change one that is %s',
    (state) => {
      expect(() => changeAnnouncement(announcement({ state }), {})).toThrow(RejectedError);
    },
  );
});

describe('scheduleAnnouncement', () => {
  it('takes the given time, and now without one', () => {
    expect(scheduleAnnouncement(announcement(), LATER, NOW)).toEqual(LATER);
    expect(scheduleAnnouncement(announcement(), null, NOW)).toEqual(NOW);
  });

  it('moves one that is scheduled, and does nothing for the same time', () => {
    const scheduled = announcement({ state: 'scheduled', sendAt: LATER });
    expect(scheduleAnnouncement(scheduled, null, NOW)).toEqual(NOW);
    expect(scheduleAnnouncement(scheduled, LATER, NOW)).toBeUndefined();
  });

  it('does nothing when it is to be sent now a second time', () => {
    expect(scheduleAnnouncement(announcement({ state: 'sending' }), null, NOW)).toBeUndefined();
    const due = announcement({ state: 'scheduled', sendAt: NOW });
    expect(scheduleAnnouncement(due, null, LATER)).toBeUndefined();
  });

  it('refuses a time that is more than a year away, and one for what was cancelled', () => {
    const inTwoYears = new Date('2028-07-01T12:00:00Z');
    expect(() => scheduleAnnouncement(announcement(), inTwoYears, NOW)).toThrow(/within the next/);
    const cancelled = announcement({ state: 'cancelled' });
    expect(() => scheduleAnnouncement(cancelled, null, NOW)).toThrow(/cancelled/);
  });
});

describe('cancelAnnouncement', () => {
  it('cancels what has not begun, once', () => {
    expect(cancelAnnouncement(announcement({ state: 'scheduled' }))).toBe(true);
    expect(cancelAnnouncement(announcement({ state: 'cancelled' }))).toBe(false);
  });

  it.each(['sending', 'sent'] as const)('refuses one that is %s', (state) => {
    expect(() => cancelAnnouncement(announcement({ state }))).toThrow(RejectedError);
  });
});
