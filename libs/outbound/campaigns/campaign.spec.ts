import { describe, expect, it } from '@jest/globals';
import { InvalidFieldsError, NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import {
  cancelAnnouncement,
  changeCampaign,
  createCampaign,
  deleteRule,
  scheduleAnnouncement,
  type Announcement,
  type MessageRule,
  type Occasion,
} from './campaign.js';

const NOW = new Date('2026-07-01T12:00:00Z');
const LATER = new Date('2026-07-02T12:00:00Z');
const EVERYBODY = { cardId: null, minStamps: null, birthdayMonth: null, inactiveSince: null };
const SENDER = { type: 'user', id: 7 } as const;

const RECORD = {
  id: 1,
  accountId: 1,
  title: 'Closed on Monday',
  text: 'See you on Tuesday',
  channels: ['wallet' as const, 'email' as const],
  sendAt: null,
  actor: null,
  createdAt: NOW,
  updatedAt: NOW,
  startedAt: null,
  finishedAt: null,
};

const announcement = (changes: Partial<Announcement> = {}): Announcement => ({
  ...RECORD,
  kind: 'announcement',
  state: 'draft',
  trigger: EVERYBODY,
  ...changes,
});

const rule = (changes: Partial<MessageRule> = {}): MessageRule => ({
  ...RECORD,
  kind: 'rule',
  state: 'disabled',
  trigger: { kind: 'inactive', threshold: 60, cardId: null },
  ...changes,
});

describe('createCampaign', () => {
  it.each<[Occasion['kind'], number | null]>([
    ['stamps_away', 1],
    ['stamps_away', 10],
    ['reward_unused', 365],
    ['inactive', 730],
    ['birthday', null],
  ])('accepts a rule about %s with %s', (kind, threshold) => {
    const trigger = { kind, threshold, cardId: null };
    const created = createCampaign(rule({ trigger, state: 'enabled' }), LATER);
    expect(created).toEqual({
      campaign: rule({ trigger, state: 'enabled', createdAt: LATER, updatedAt: LATER }),
      details: { kind, threshold, enabled: true },
    });
  });

  it.each<[Occasion['kind'], number | null, RegExp]>([
    ['stamps_away', 0, /1 to 10 stamps/],
    ['stamps_away', 11, /1 to 10 stamps/],
    ['reward_unused', 366, /1 to 365 days/],
    ['inactive', null, /1 to 730 days/],
    ['birthday', 3, /must be null/],
  ])('refuses a rule about %s with %s', (kind, threshold, message) => {
    const trigger = { kind, threshold, cardId: null };
    expect(() => createCampaign(rule({ trigger }), NOW)).toThrow(message);
  });
});

describe('changeCampaign', () => {
  it('changes of an announcement what is named, and leaves the rest', () => {
    const changes = { text: 'We open on Tuesday', trigger: { minStamps: 3 } };
    const scheduled = announcement({ state: 'scheduled' });
    const trigger = { ...EVERYBODY, minStamps: 3 };
    expect(changeCampaign(scheduled, changes)).toEqual({
      campaign: { ...scheduled, text: 'We open on Tuesday', trigger },
      details: {
        changes: {
          text: { from: RECORD.text, to: 'We open on Tuesday' },
          minStamps: { from: null, to: 3 },
        },
      },
    });
  });

  it.each(['sending', 'sent', 'cancelled'] as const)(
    'refuses to change an announcement that is %s',
    (state) => {
      expect(() => changeCampaign(announcement({ state }), {})).toThrow(RejectedError);
    },
  );

  it('changes of a rule what is named, and leaves the rest', () => {
    const changes = { state: 'enabled' as const, trigger: { threshold: 30 } };
    const trigger = { kind: 'inactive' as const, threshold: 30, cardId: null };
    expect(changeCampaign(rule(), changes)).toEqual({
      campaign: rule({ state: 'enabled', trigger }),
      details: { changes: { threshold: { from: 60, to: 30 }, enabled: { from: false, to: true } } },
    });
  });

  it('refuses a threshold that does not suit the rule, and to change a rule that was deleted', () => {
    expect(() => changeCampaign(rule(), { trigger: { threshold: null } })).toThrow(
      InvalidFieldsError,
    );
    expect(() => changeCampaign(rule({ state: 'deleted' }), {})).toThrow(NotFoundError);
  });

  it('does nothing when nothing differs', () => {
    expect(changeCampaign(rule(), { text: RECORD.text, state: 'disabled' })).toBeUndefined();
    expect(changeCampaign(announcement(), { trigger: { cardId: null } })).toBeUndefined();
  });
});

describe('scheduleAnnouncement', () => {
  const schedule = (current: Announcement, sendAt: Date | null, now = NOW) =>
    scheduleAnnouncement(current, { sendAt, actor: SENDER }, now);

  it('takes the given time, and now without one', () => {
    expect(schedule(announcement(), LATER)).toEqual({
      campaign: announcement({ state: 'scheduled', sendAt: LATER, actor: SENDER }),
      details: { send_at: LATER.toISOString() },
    });
    expect(schedule(announcement(), null)?.campaign.sendAt).toEqual(NOW);
  });

  it('moves one that is scheduled, and does nothing for the same time', () => {
    const scheduled = announcement({ state: 'scheduled', sendAt: LATER });
    expect(schedule(scheduled, null)?.campaign.sendAt).toEqual(NOW);
    expect(schedule(scheduled, LATER)).toBeUndefined();
  });

  it('does nothing when it is to be sent now a second time', () => {
    expect(schedule(announcement({ state: 'sending' }), null)).toBeUndefined();
    const due = announcement({ state: 'scheduled', sendAt: NOW });
    expect(schedule(due, null, LATER)).toBeUndefined();
  });

  it('refuses a time that is more than a year away, and one for what was cancelled', () => {
    const inTwoYears = new Date('2028-07-01T12:00:00Z');
    expect(() => schedule(announcement(), inTwoYears)).toThrow(/within the next/);
    const cancelled = announcement({ state: 'cancelled' });
    expect(() => schedule(cancelled, null)).toThrow(/cancelled/);
  });
});

describe('cancelAnnouncement', () => {
  it('cancels what is not sent yet, once', () => {
    for (const state of ['draft', 'scheduled', 'sending'] as const) {
      const current = announcement({ state });
      expect(cancelAnnouncement(current, LATER)).toEqual({
        campaign: { ...current, state: 'cancelled', finishedAt: LATER },
        details: {},
      });
    }
    expect(cancelAnnouncement(announcement({ state: 'cancelled' }), LATER)).toBeUndefined();
  });

  it('refuses one that was sent', () => {
    expect(() => cancelAnnouncement(announcement({ state: 'sent' }), NOW)).toThrow(RejectedError);
  });
});

describe('deleteRule', () => {
  it('deletes a rule once', () => {
    const { campaign } = deleteRule(rule({ state: 'enabled' }), LATER);
    expect(campaign).toEqual(rule({ state: 'deleted', finishedAt: LATER }));
    expect(() => deleteRule(campaign, LATER)).toThrow(NotFoundError);
  });
});
