import { describe, expect, it } from '@jest/globals';
import type { OutboxEntry } from '#outbound/messages/card-message.js';
import { getTranslations } from '#translations/translations.js';
import { createTimeFormats } from '#web/pages/local-time.js';
import { explainState, toOutboxLine } from './outbox-page.js';

const entry: OutboxEntry = {
  id: '01a1ff5c-02e4-749b-9839-d72c9d71752e',
  state: 'sent',
  channel: 'email',
  requestedAt: new Date('2026-03-01T23:30:00Z'),
  finishedAt: new Date('2026-03-01T23:31:00Z'),
  dueAt: null,
  attempts: 1,
  reason: null,
  providerId: null,
  arrival: null,
  customer: 'Grace Hopper',
};
const english = getTranslations('en');
const { minute } = createTimeFormats('en', 'Europe/Paris');
const explain = (overrides: Partial<OutboxEntry>) =>
  explainState({ ...entry, ...overrides }, minute, english);

describe('a message in the outbox', () => {
  it('says in the list why it waits', () => {
    const waiting: OutboxEntry = { ...entry, state: 'held', reason: 'mail_not_set_up' };
    const { why } = toOutboxLine(waiting, '/app/stores/1/messages', minute, english);
    expect(why).toBe(english.t.outbox.reasons.mail_not_set_up);
  });

  it('is listed with its time in the time zone of the store', () => {
    expect(toOutboxLine(entry, '/app/stores/1/messages', minute, english)).toEqual({
      path: '/app/stores/1/messages/01a1ff5c-02e4-749b-9839-d72c9d71752e',
      customer: 'Grace Hopper',
      recipient: 'Grace Hopper',
      channel: 'E-mail',
      at: '2 Mar 2026, 00:30',
      state: 'Sent',
      why: '',
      mood: 'good',
    });
  });

  it.each([
    ['en', 'No longer a customer', 'Message to somebody who is no longer a customer'],
    ['de', 'Nicht mehr Kunde', 'Nachricht an jemanden, der nicht mehr Kunde ist'],
    ['fr', 'N’est plus client', 'Message à une personne qui n’est plus cliente'],
    ['es', 'Ya no es cliente', 'Mensaje para alguien que ya no es cliente'],
  ] as const)(
    'says in %s that it was for somebody who is no longer a customer',
    (language, cell, title) => {
      const localization = getTranslations(language);
      const line = toOutboxLine({ ...entry, customer: null }, '', minute, localization);
      expect(line.customer).toBe(cell);
      expect(localization.t.outbox.title({ customer: line.recipient })).toBe(title);
    },
  );

  it('explains its state and what happens next', () => {
    expect(explain({})).toContain('Handed to the mail server on 2 Mar 2026, 00:31');
    expect(explain({ channel: 'sms' })).toContain('the SMS provider');
    const undeliveredSms = { channel: 'sms', arrival: { arrived: false, code: 30003 } } as const;
    expect(explain(undeliveredSms)).toContain(
      'could not be delivered. Please check the customer’s number. Details for your administrator: error 30003.',
    );
    expect(toOutboxLine({ ...entry, ...undeliveredSms }, '', minute, english)).toMatchObject({
      state: 'Not delivered',
    });
    const deliveredSms = { channel: 'sms', arrival: { arrived: true, code: null } } as const;
    expect(explain(deliveredSms)).toContain('The SMS provider reports that it arrived.');
    const dueAt = new Date('2026-03-01T23:40:00Z');
    expect(explain({ state: 'queued', dueAt })).toContain('in a moment');
    const explanation = explain({
      state: 'queued',
      dueAt,
      reason: 'responded with 503',
      attempts: 2,
    });
    expect(explanation).toMatch(
      /after 2 attempts[^]*Details for your administrator: responded with 503\.$/,
    );
    expect(explain({ state: 'failed', reason: 'responded with 400 (21610)' })).toContain('21610');
    expect(explain({ state: 'held', reason: 'mail_not_set_up' })).toContain(
      'because no mail server is set up. Once',
    );
    expect(explain({ state: 'dropped', reason: 'erased' })).toContain(
      'this person is no longer a customer',
    );
    expect(explain({ state: 'dropped', reason: 'no_address' })).toContain('no address');
  });

  it('says why it was not sent in the language of the page, with the name of a country', () => {
    const unsent = { state: 'held', reason: 'too_many_emails' } as const;
    const abroad = { ...unsent, reason: 'country_not_allowed AT' };
    for (const [language, country] of [
      ['en', 'Austria'],
      ['de', 'Österreich'],
      ['fr', 'Autriche'],
      ['es', 'Austria'],
      ['nl', 'Oostenrijk'],
    ] as const) {
      const localization = getTranslations(language);
      const text = explainState({ ...entry, ...unsent }, minute, localization);
      expect(text).not.toContain(unsent.reason);
      expect(text === explain(unsent)).toBe(language === 'en');
      expect(explainState({ ...entry, ...abroad }, minute, localization)).toContain(country);
    }
  });

  it('is shown with the words of another version of the service', () => {
    const unsent = { state: 'held', reason: 'the moon is full' } as const;
    expect(explain(unsent)).toContain('the moon is full');
    expect(explain({ ...unsent, reason: null })).toBeTruthy();
  });
});
