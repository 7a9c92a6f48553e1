import { describe, expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import {
  createOutcome,
  findProblem,
  type OutcomeInput,
  type ShownCard,
} from './counter-outcome.js';

const CARD: ShownCard = {
  id: 7,
  card_name: 'Coffee card',
  stamps_count: 6,
  status: 'active',
  available_rewards: [{ id: 3, name: 'Espresso', stamps_required: 5 }],
};

const reward = (id: number, name: string, stampsRequired: number, active = true) => ({
  id,
  name,
  description: null,
  stampsRequired,
  active,
});

const INPUT: OutcomeInput = {
  path: '/counter/1',
  card: CARD,
  template: {
    stampsRequired: 10,
    rewards: [reward(3, 'Espresso', 5), reward(4, 'Tea', 8, false), reward(5, 'Cake', 9)],
  },
  name: 'Anna',
  headline: '1 stamp added',
  eventId: 'evt_1',
  secondCode: null,
  recent: null,
  qr: '',
  close: 'Next',
  createReceipt: () => 'new',
};

const outcome = (changes: Partial<OutcomeInput> = {}, locale = 'en') =>
  createOutcome({ ...INPUT, ...changes }, getTranslations(locale));
const labels = (changes: Partial<OutcomeInput> = {}) =>
  outcome(changes).forms.map(({ label, note }) =>
    note === undefined ? label : `${label} (${note})`,
  );

describe('the outcome to a scan', () => {
  it('shows the balance, a dot for each stamp, and what is missing to the next active reward', () => {
    expect(outcome().card).toEqual({
      id: 7,
      name: 'Anna',
      cardName: 'Coffee card',
      countText: '6 of 10',
      dots: { filled: 6, total: 10 },
      more: '3 more to Cake',
    });
  });

  it('draws no dots on a card of many stamps, and fills no more than there are', () => {
    const template = { ...INPUT.template, stampsRequired: 25 };
    expect(outcome({ template }).card?.dots).toBeNull();
    const card = { ...CARD, stamps_count: 13 };
    expect(outcome({ card }).card).toMatchObject({ dots: { filled: 10, total: 10 }, more: '' });
  });

  it('offers what can be redeemed with its cost, one more stamp, and an undo', () => {
    expect(labels()).toEqual(['Redeem Espresso (uses 5 stamps)', '+1', 'Undo']);
    expect(labels({ eventId: null })).toEqual(['Redeem Espresso (uses 5 stamps)', '+1']);
    const card = { ...CARD, status: 'expired', available_rewards: [] };
    expect(labels({ card, eventId: null })).toEqual([]);
  });

  it('asks about a second card before anything can be redeemed', () => {
    const { question } = outcome({ secondCode: 'K7QX2M9P' });
    expect(question).toBe('This is a second card of Anna. Is that them?');
    expect(labels({ secondCode: 'K7QX2M9P' })).toEqual(['Yes, this is Anna', 'No, undo']);
  });

  it.each([
    ['en', 'Stamped 40 seconds ago by Mira: add another?'],
    ['de', 'Vor 40 Sekunden von Mira gestempelt: noch einen?'],
    ['fr', 'Tamponné il y a 40 secondes par Mira : en ajouter un autre ?'],
    ['es', 'Sellado hace 40 segundos por Mira: ¿añadir otro?'],
  ])('asks in %s whether to stamp again', (locale, question) => {
    const recent = { secondsAgo: 40, by: 'Mira', isOwn: false };
    expect(outcome({ recent }, locale).question).toBe(question);
  });

  it('offers nothing but the stamp that it asks about', () => {
    const recent = { secondsAgo: 0, by: null, isOwn: true };
    expect(outcome({ recent }).question).toBe('Stamped by you 1 second ago: add another?');
    expect(labels({ recent })).toEqual(['Add another']);
    expect(outcome({ recent }).close).toBe('No');
  });
});

describe('the text about a rejection', () => {
  it.each([
    [404, 'not_found', 'unknown'],
    [422, 'stamp_limit_reached', 'limit'],
    [422, 'card_unconfirmed', 'unconfirmed'],
    [403, 'forbidden', 'tooLate'],
    [422, 'toString', 'invalid'],
    [503, 'unavailable', 'unavailable'],
  ])('of %s %s is that of %s', (status, code, problem) => {
    expect(findProblem({ status, code })).toBe(problem);
  });
});
