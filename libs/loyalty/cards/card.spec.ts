import { describe, expect, it } from '@jest/globals';
import { InvalidFieldsError, NotFoundError } from '#platform/kernel/errors.js';
import { readFields } from '#platform/http/dtos.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import {
  archiveCard,
  card,
  createCard,
  isExpired,
  setStripImage,
  unarchiveCard,
  updateCard,
} from './card.js';
import { CreateCardDto, UpdateCardDto, toCardAttributes } from './card.dto.js';
import type { CardEvent } from './card.events.js';

const attributes = toCardAttributes(
  readFields(CreateCardDto, { name: 'Coffee', stamps_required: 5 }),
);
const cardCreated: CardEvent = {
  type: 'CardCreated',
  data: { id: 1, accountId: 1, ...attributes },
};
const cardArchived: CardEvent = { type: 'CardArchived', data: {} };
const PICTURE = 'c'.repeat(64);
const stripImageSet: CardEvent = { type: 'CardStripImageSet', data: { picture: PICTURE } };
const LATER = '2026-03-02T10:00:00.000Z';

describe('createCard', () => {
  it('records every attribute', () => {
    scenario(card)
      .when(() => createCard(1, 1, attributes))
      .then(cardCreated);
  });

  it('refuses welcome stamps that fill the card', () => {
    scenario(card)
      .when(() => createCard(1, 1, { ...attributes, initialStamps: 5 }))
      .thenRejected({ fields: ['initial_stamps'] });
  });
});

describe('updateCard', () => {
  it('records only what changes', () => {
    scenario(card, cardCreated)
      .when((state) => updateCard(state, { name: 'Coffee', headerText: 'Hello' }))
      .then({ type: 'CardUpdated', data: { headerText: 'Hello' } });
  });

  it('records nothing when nothing changes, not even in a list', () => {
    scenario(card, cardCreated)
      .when((state) => updateCard(state, { name: 'Coffee', auxiliaryFields: [] }))
      .then();
  });

  it('checks the welcome stamps against the stamps required after the update', () => {
    const withThree: CardEvent = {
      type: 'CardCreated',
      data: { ...cardCreated.data, initialStamps: 3 } as typeof cardCreated.data & {
        initialStamps: number;
      },
    } as CardEvent;
    scenario(card, withThree)
      .when((state) => updateCard(state, { stampsRequired: 3 }))
      .thenRejected({ fields: ['initial_stamps'] });
    scenario(card, withThree)
      .when((state) => updateCard(state, { stampsRequired: 3, initialStamps: 2 }))
      .thenState({ stampsRequired: 3, initialStamps: 2 });
  });

  it('throws NotFoundError when there is no card', () => {
    scenario(card)
      .when((state) => updateCard(state, {}))
      .thenThrows(NotFoundError);
  });
});

describe('a card', () => {
  it('has the name of existing streams, and the times of its events', () => {
    expect(card.name).toBe('card');
    const later: CardEvent[] = [
      { type: 'CardUpdated', data: { name: 'Tea' } },
      cardArchived,
      { type: 'CardUnarchived', data: {} },
    ];
    for (const event of later) {
      expect(scenario(card, cardCreated, { ...event, at: LATER }).state()).toMatchObject({
        createdAt: AT,
        updatedAt: LATER,
      });
    }
  });

  it('expires at its expiry time, or never without one', () => {
    const now = new Date(AT);
    expect(isExpired({ expiresAt: null }, now)).toBe(false);
    expect(isExpired({ expiresAt: AT }, now)).toBe(true);
    expect(isExpired({ expiresAt: LATER }, now)).toBe(false);
  });
});

describe('archiveCard', () => {
  it('archives an active card, and records nothing for an archived one', () => {
    scenario(card, cardCreated).when(archiveCard).thenState({ archivedAt: AT });
    scenario(card, cardCreated, cardArchived).when(archiveCard).then();
  });
});

describe('unarchiveCard', () => {
  it('unarchives an archived card, and records nothing for an active one', () => {
    scenario(card, cardCreated, cardArchived).when(unarchiveCard).thenState({ archivedAt: null });
    scenario(card, cardCreated).when(unarchiveCard).then();
  });
});

describe('CreateCardDto', () => {
  it('has the documented defaults', () => {
    expect(toCardAttributes(readFields(CreateCardDto, { name: ' Coffee ' }))).toEqual({
      name: 'Coffee',
      cardColor: '#6B4226',
      textColor: '#FFFFFF',
      stampIcon: 'coffee',
      stampColor: '#6B4226',
      stampBackgroundColor: '#FFFFFF',
      stampsRequired: 10,
      initialStamps: 0,
      showMemberField: true,
      showStampsToRewardField: true,
      auxiliaryFields: [],
      stripType: 'color',
      stripColor: null,
      stripOpacity: 100,
      stripPreset: null,
      headerText: null,
      expiresAt: null,
      maxStampsPerRequest: null,
      maxStampsPerDay: null,
      minSecondsBetweenStamps: null,
      barcodeFormat: 'qr',
      stampMessage: null,
      rewardMessage: null,
      redemptionMessage: null,
    });
  });

  it('reads null as the default', () => {
    const fields = readFields(CreateCardDto, {
      name: 'C',
      stamps_required: null,
      card_color: null,
    });
    expect(fields).toMatchObject({ stamps_required: 10, card_color: '#6B4226' });
  });

  it('accepts numbers as strings, 0 for false, short colours, blank texts and days', () => {
    const fields = readFields(CreateCardDto, {
      name: 'C',
      stamps_required: '7',
      show_member_field: 0,
      card_color: '#abc',
      strip_opacity: '12.5',
      header_text: '  ',
      expires_at: '2030-01-01',
      auxiliary_fields: [{}, { label: '', value: null }, { label: 'Tel', value: '1' }],
    });
    expect(fields).toMatchObject({
      stamps_required: 7,
      show_member_field: false,
      card_color: '#AABBCC',
      strip_opacity: 12.5,
      header_text: null,
      expires_at: '2030-01-01T23:59:59.999Z',
      auxiliary_fields: [{ key: 'aux_1', label: 'Tel', value: '1' }],
    });
  });

  it.each([
    ['name', { name: ' ' }],
    ['name', { name: 'x'.repeat(256) }],
    ['name', { name: 'a\0b' }],
    ['name', { name: '\ud800' }],
    ['name', { name: 3 }],
    ['card_color', { card_color: 'red' }],
    ['stamp_icon', { stamp_icon: 'spaceship' }],
    ['stamps_required', { stamps_required: 22 }],
    ['stamps_required', { stamps_required: 2.5 }],
    ['stamps_required', { stamps_required: 'many' }],
    ['initial_stamps', { initial_stamps: -1 }],
    ['show_member_field', { show_member_field: 'yes' }],
    ['auxiliary_fields', { auxiliary_fields: [{ label: 'alone' }] }],
    ['auxiliary_fields', { auxiliary_fields: [{ value: 'a' }, { value: 'b' }, { value: 'c' }] }],
    ['strip_type', { strip_type: 'video' }],
    ['strip_opacity', { strip_opacity: 100.1 }],
    ['strip_preset', { strip_preset: 'Über' }],
    ['expires_at', { expires_at: '2026-02-30' }],
    ['max_stamps_per_day', { max_stamps_per_day: 0 }],
  ])('refuses an invalid %s: %j', (field, wrong) => {
    expect(findErrors(CreateCardDto, { name: 'C', ...wrong })).toEqual([field]);
  });

  it('limits a name by its characters, not its code units', () => {
    expect(findErrors(CreateCardDto, { name: '☕'.repeat(255) })).toEqual([]);
    expect(findErrors(CreateCardDto, { name: '👩'.repeat(255) })).toEqual([]);
  });
});

describe('UpdateCardDto', () => {
  it('accepts null only for fields that may be empty, and ignores unknown ones', () => {
    expect(readFields(UpdateCardDto, { header_text: null })).toEqual({ header_text: null });
    expect(findErrors(UpdateCardDto, { name: null })).toEqual(['name']);
    expect(toCardAttributes(readFields(UpdateCardDto, { unknown: 1 }))).toEqual({});
  });
});

function findErrors(dto: typeof CreateCardDto | typeof UpdateCardDto, input: object): string[] {
  try {
    readFields(dto, { ...input });
    return [];
  } catch (error) {
    if (error instanceof InvalidFieldsError) return Object.keys(error.errors);
    throw error;
  }
}

describe('a strip picture', () => {
  it('is shown in the strip once it is set', () => {
    scenario(card, cardCreated)
      .when((state) => setStripImage(state, PICTURE))
      .then(stripImageSet);
    scenario(card, cardCreated, stripImageSet)
      .when(() => [])
      .thenState({ stripType: 'image', stripPicture: PICTURE });
  });

  it('is kept while the strip shows a colour', () => {
    scenario(card, cardCreated, stripImageSet)
      .when((state) => updateCard(state, { stripType: 'color' }))
      .thenState({ stripType: 'color', stripPicture: PICTURE });
  });

  it('is recorded only when it differs from the one shown', () => {
    scenario(card, cardCreated, stripImageSet)
      .when((state) => setStripImage(state, PICTURE))
      .then();
    scenario(card, cardCreated, stripImageSet)
      .when((state) => setStripImage(state, 'd'.repeat(64)))
      .then({ type: 'CardStripImageSet', data: { picture: 'd'.repeat(64) } });
  });

  it('is recorded again when the strip shows a colour', () => {
    const plain: CardEvent = { type: 'CardUpdated', data: { stripType: 'color' } };
    scenario(card, cardCreated, stripImageSet, plain)
      .when((state) => setStripImage(state, PICTURE))
      .then(stripImageSet);
  });

  it('cannot be set when there is no card', () => {
    scenario(card)
      .when((state) => setStripImage(state, PICTURE))
      .thenThrows(NotFoundError);
  });
});
