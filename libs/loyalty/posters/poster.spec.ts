import { describe, expect, it } from '@jest/globals';
import { NotFoundError, type FieldErrors } from '#platform/kernel/errors.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import { createPoster, deletePoster, poster, updatePoster, type NewPoster } from './poster.js';
import { toPosterJson } from './poster.dto.js';
import type { PosterAttributes, PosterEvent } from './poster.events.js';

const ids = { id: 7, accountId: 1, slug: 'Slug' };
const card = {
  id: 2,
  name: 'Coffee',
  cardColor: '#111111',
  textColor: '#222222',
  stampBackgroundColor: '#333333',
};
const newPoster: NewPoster = {
  cardId: 2,
  title: null,
  paperSize: 'a4',
  primaryColor: null,
  textColor: null,
  secondaryColor: null,
  active: true,
  contactCollectionMode: 'email_and_phone',
  requireEmail: null,
  requirePhone: null,
  requireBirthday: false,
  minimumAge: null,
};
const attributes: PosterAttributes = {
  title: 'Coffee',
  paperSize: 'a4',
  primaryColor: '#111111',
  textColor: '#222222',
  secondaryColor: '#333333',
  active: true,
  contactCollectionMode: 'email_and_phone',
  requireEmail: true,
  requirePhone: false,
  requireBirthday: false,
  minimumAge: null,
};
const posterCreated = (changes: Partial<PosterAttributes> = {}): PosterEvent => ({
  type: 'PosterCreated',
  data: { ...ids, cardId: 2, ...attributes, ...changes },
});
const posterDeleted: PosterEvent = { type: 'PosterDeleted', data: {} };
const emailOnly = {
  contactCollectionMode: 'email_only',
  requireEmail: true,
  requirePhone: false,
} as const;
const phoneOnly = {
  contactCollectionMode: 'phone_only',
  requireEmail: false,
  requirePhone: true,
} as const;

describe('createPoster', () => {
  it('takes a missing title and missing colours from the card', () => {
    scenario(poster)
      .when(() => createPoster(ids, card, newPoster))
      .then(posterCreated());
    scenario(poster)
      .when(() => createPoster(ids, card, { ...newPoster, title: 'Join', textColor: '#FFFFFF' }))
      .then(posterCreated({ title: 'Join', textColor: '#FFFFFF' }));
    const own = { primaryColor: '#AAAAAA', secondaryColor: '#BBBBBB' };
    scenario(poster)
      .when(() => createPoster(ids, card, { ...newPoster, ...own }))
      .then(posterCreated(own));
  });

  it.each([emailOnly, phoneOnly])('requires the only contact collected: %j', (contacts) => {
    const { contactCollectionMode } = contacts;
    scenario(poster)
      .when(() => createPoster(ids, card, { ...newPoster, contactCollectionMode }))
      .then(posterCreated(contacts));
    scenario(poster)
      .when(() => createPoster(ids, card, { ...newPoster, ...contacts }))
      .then(posterCreated(contacts));
  });

  it('lets both contacts be required, or neither', () => {
    for (const required of [true, false]) {
      const both = { requireEmail: required, requirePhone: required };
      scenario(poster)
        .when(() => createPoster(ids, card, { ...newPoster, ...both }))
        .then(posterCreated(both));
    }
  });

  it.each<[FieldErrors, Partial<NewPoster>]>([
    [
      { require_phone: ['must be false: with email_only it is not collected'] },
      { contactCollectionMode: 'email_only', requirePhone: true },
    ],
    [
      { require_email: ['must be true: with email_only nothing else is collected'] },
      { contactCollectionMode: 'email_only', requireEmail: false },
    ],
    [
      { require_email: ['must be false: with phone_only it is not collected'] },
      { contactCollectionMode: 'phone_only', requireEmail: true },
    ],
    [
      { require_phone: ['must be true: with phone_only nothing else is collected'] },
      { contactCollectionMode: 'phone_only', requirePhone: false },
    ],
    [{ minimum_age: ['needs require_birthday, or must be null'] }, { minimumAge: 18 }],
    [
      {
        require_email: ['must be false: with phone_only it is not collected'],
        require_phone: ['must be true: with phone_only nothing else is collected'],
        minimum_age: ['needs require_birthday, or must be null'],
      },
      {
        contactCollectionMode: 'phone_only',
        requireEmail: true,
        requirePhone: false,
        minimumAge: 18,
      },
    ],
  ])('refuses contradictions: %j', (errors, contradiction) => {
    scenario(poster)
      .when(() => createPoster(ids, card, { ...newPoster, ...contradiction }))
      .thenRejected({ errors });
  });
});

const LATER = '2026-03-02T10:00:00.000Z';

describe('a poster', () => {
  it('has the name of existing streams, and the times of its events', () => {
    expect(poster.name).toBe('poster');
    const posterUpdated: PosterEvent = { type: 'PosterUpdated', data: { title: 'Tea' } };
    expect(scenario(poster, posterCreated()).state()).toMatchObject({
      deletedAt: null,
      createdAt: AT,
    });
    for (const event of [posterUpdated, posterDeleted]) {
      expect(scenario(poster, posterCreated(), { ...event, at: LATER }).state()).toMatchObject({
        createdAt: AT,
        updatedAt: LATER,
      });
    }
    expect(
      scenario(poster, posterCreated(), { ...posterDeleted, at: LATER }).state().deletedAt,
    ).toBe(LATER);
  });

  it('records only what changes', () => {
    scenario(poster, posterCreated())
      .when((state) => updatePoster(state, { title: 'Coffee', active: false }))
      .then({ type: 'PosterUpdated', data: { active: false } });
    scenario(poster, posterCreated())
      .when((state) => updatePoster(state, { title: 'Tea' }))
      .thenState({ title: 'Tea', active: true });
    scenario(poster, posterCreated())
      .when((state) => updatePoster(state, attributes))
      .then();
    scenario(poster, posterCreated(phoneOnly))
      .when((state) => updatePoster(state, { contactCollectionMode: 'phone_only' }))
      .then();
  });

  it('requires the only contact that a changed mode collects', () => {
    scenario(poster, posterCreated({ requireEmail: false, requirePhone: true }))
      .when((state) => updatePoster(state, { contactCollectionMode: 'email_only' }))
      .then({ type: 'PosterUpdated', data: emailOnly });
    scenario(poster, posterCreated(emailOnly))
      .when((state) => updatePoster(state, { contactCollectionMode: 'phone_only' }))
      .then({ type: 'PosterUpdated', data: phoneOnly });
  });

  it('keeps the required contact when both contacts are collected again', () => {
    const contactCollectionMode = 'email_and_phone';
    scenario(poster, posterCreated(phoneOnly))
      .when((state) => updatePoster(state, { contactCollectionMode }))
      .then({ type: 'PosterUpdated', data: { contactCollectionMode } });
    scenario(poster, posterCreated(phoneOnly))
      .when((state) => updatePoster(state, { contactCollectionMode, requirePhone: false }))
      .then({ type: 'PosterUpdated', data: { contactCollectionMode, requirePhone: false } });
  });

  it.each<[string, Partial<PosterAttributes>, Partial<PosterAttributes>]>([
    ['require_phone', emailOnly, { requirePhone: true }],
    ['require_email', emailOnly, { requireEmail: false }],
    ['require_phone', {}, { contactCollectionMode: 'email_only', requirePhone: true }],
    ['minimum_age', {}, { minimumAge: 16 }],
    ['minimum_age', { requireBirthday: true, minimumAge: 16 }, { requireBirthday: false }],
  ])('refuses %s when %j is updated with %j', (field, attributesBefore, changes) => {
    scenario(poster, posterCreated(attributesBefore))
      .when((state) => updatePoster(state, changes))
      .thenRejected({ fields: [field] });
  });

  it('accepts a minimum age together with a required birthday, and the removal of both', () => {
    const adult = { requireBirthday: true, minimumAge: 18 };
    scenario(poster, posterCreated())
      .when((state) => updatePoster(state, adult))
      .then({ type: 'PosterUpdated', data: adult });
    const anyone = { requireBirthday: false, minimumAge: null };
    scenario(poster, posterCreated(adult))
      .when((state) => updatePoster(state, anyone))
      .then({ type: 'PosterUpdated', data: anyone });
  });

  it('is not found once deleted', () => {
    scenario(poster, posterCreated())
      .when((state) => deletePoster(state))
      .then(posterDeleted);
    scenario(poster, posterCreated(), posterDeleted)
      .when((state) => deletePoster(state))
      .thenThrows(NotFoundError);
    scenario(poster, posterCreated(), posterDeleted)
      .when((state) => updatePoster(state, { title: 'Tea' }))
      .thenThrows(NotFoundError);
  });
});

describe('toPosterJson', () => {
  it.each([
    ['email_and_phone', true, true],
    ['email_only', true, false],
    ['phone_only', false, true],
  ] as const)(
    'renders the contacts that the mode %s collects, and the URLs',
    (contactCollectionMode, collect_email, collect_phone) => {
      const state = scenario(poster, posterCreated({ contactCollectionMode })).state();
      expect(
        toPosterJson(state, { publicUrl: 'https://cards.example', illegible: [] }),
      ).toMatchObject({
        collect_email,
        collect_phone,
        signup_url: 'https://cards.example/join/Slug',
        qr_code_url: 'https://cards.example/join/Slug?src=qr',
        display_url: 'https://cards.example/posters/Slug',
      });
    },
  );
});
