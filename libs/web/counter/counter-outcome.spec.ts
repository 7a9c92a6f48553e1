import { describe, expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import {
  createOutcome,
  describeAction,
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
  isRedemption: false,
  eventId: 'evt_1',
  isOnlyLocal: false,
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
      full: '',
      countText: '6 of 10',
      dots: { filled: 6, total: 10 },
      ready: 'Espresso is ready',
      more: '3 more to Cake',
    });
  });

  it('draws no dots on a card of many stamps, and fills no more than there are', () => {
    const template = { ...INPUT.template, stampsRequired: 25 };
    expect(outcome({ template }).card?.dots).toBeNull();
    const card = { ...CARD, stamps_count: 13 };
    expect(outcome({ card }).card).toMatchObject({ dots: { filled: 3, total: 10 }, more: '' });
  });

  it.each([
    [10, '', '10 of 10', 10],
    [13, '1 full card', '3 of 10', 3],
    [20, '', '2 full cards', 10],
  ])('counts the full cards of %d stamps apart', (stamps, full, countText, filled) => {
    const card = { ...CARD, stamps_count: stamps };
    expect(outcome({ card }).card).toMatchObject({ full, countText, dots: { filled } });
  });

  it.each([
    ['en', 14, 'Espresso and Cake are ready'],
    ['en', 13, 'Espresso or Cake is ready'],
    ['de', 14, 'Espresso und Cake sind bereit'],
    ['de', 13, 'Espresso oder Cake ist bereit'],
    ['fr', 14, 'Récompenses à offrir\u202f: Espresso et Cake'],
    ['fr', 13, 'Récompense à offrir\u202f: Espresso ou Cake'],
    ['es', 14, 'Premios listos: Espresso y Cake'],
    ['es', 13, 'Premio listo: Espresso o Cake'],
    ['nl', 14, 'Espresso en Cake liggen klaar'],
    ['nl', 13, 'Espresso of Cake ligt klaar'],
  ])('says in %s which rewards are ready with %i stamps', (locale, stamps_count, ready) => {
    const cake = { id: 5, name: 'Cake', stamps_required: 9 };
    const card = {
      ...CARD,
      stamps_count,
      available_rewards: [...CARD.available_rewards, cake],
    };
    expect(outcome({ card }, locale).card?.ready).toBe(ready);
    expect(outcome({ card, secondCode: 'K7QX2M9P' }, locale).card?.ready).toBe('');
  });

  it('says what an event did, as long as it is not undone', () => {
    const { t } = getTranslations('en');
    const action = { stamps: 2, reward: null, isReversed: false };
    expect(describeAction(action, t)).toEqual({ headline: '2 stamps added', isRedemption: false });
    expect(describeAction({ ...action, reward: 'Cake' }, t)).toEqual({
      headline: 'Cake redeemed. Hand it over.',
      isRedemption: true,
    });
    expect(describeAction({ ...action, isReversed: true }, t).headline).toBe('Undone');
  });

  it('offers what can be redeemed with its cost, one more stamp, and an undo', () => {
    expect(labels()).toEqual(['Redeem Espresso (uses 5 stamps)', '+1', 'Undo']);
    expect(labels({ eventId: null })).toEqual(['Redeem Espresso (uses 5 stamps)', '+1']);
    const card = { ...CARD, status: 'expired', available_rewards: [] };
    expect(labels({ card, eventId: null })).toEqual([]);
  });

  it('asks about a second card before anything can be redeemed', () => {
    const { question } = outcome({ secondCode: 'K7QX2M9P' });
    expect(question).toBe('This may be a second card of Anna. Is that them?');
    expect(labels({ secondCode: 'K7QX2M9P' })).toEqual(['Yes, this is Anna', 'No, undo']);
  });

  it.each([
    ['en', 'Stamped 40 seconds ago by Mira: add another?'],
    ['de', 'Vor 40 Sekunden von Mira gestempelt: noch einen?'],
    ['fr', 'Tamponné il y a 40 secondes par Mira\u202f: en ajouter un autre\u202f?'],
    ['es', 'Sellado hace 40 segundos por Mira: ¿añadir otro?'],
  ])('asks in %s whether to stamp again', (locale, question) => {
    const recent = { secondsAgo: 40, by: 'Mira', isOwn: false };
    expect(outcome({ recent }, locale).question).toBe(question);
  });

  it('offers the rewards that are ready and the stamp that it asks about, and after a no the card', () => {
    const recent = { secondsAgo: 0, by: null, isOwn: true };
    const input = { recent, eventId: null };
    expect(outcome(input).question).toBe('Stamped by you 1 second ago: add another?');
    expect(outcome(input).card?.ready).toBe('Espresso is ready');
    expect(labels(input)).toEqual(['Redeem Espresso (uses 5 stamps)', 'Add another']);
    expect(outcome(input)).toMatchObject({ close: 'No', closePath: '/counter/1/cards/7' });
    expect(outcome().closePath).toBe('/counter/1');
  });

  it('asks about a second card again, before another stamp', () => {
    const recent = { secondsAgo: 9, by: null, isOwn: true };
    const input = { recent, secondCode: 'K7QX2M9P', eventId: null };
    expect(outcome(input).question).toBe('This may be a second card of Anna. Is that them?');
    expect(labels(input)).toEqual(['Yes, this is Anna']);
    expect(outcome(input)).toMatchObject({ close: 'No', closePath: '/counter/1' });
  });
});

describe('the text about a rejection', () => {
  it.each([
    [404, 'not_found', false, 'unknown'],
    [404, 'not_found', true, 'reward'],
    [422, 'stamp_limit_reached', true, 'limit'],
    [422, 'card_unconfirmed', true, 'unconfirmed'],
    [403, 'forbidden', true, 'tooLate'],
    [422, 'toString', true, 'invalid'],
    [503, 'unavailable', true, 'unavailable'],
  ])('of %s %s, where the card was found: %s, is that of %s', (status, code, hasCard, problem) => {
    expect(findProblem({ status, code }, hasCard)).toBe(problem);
  });
});
