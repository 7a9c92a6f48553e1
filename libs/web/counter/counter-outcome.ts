import type { Localization } from '#translations/translations.js';
import { formatAgo } from './counter-time.js';
import { coversAll, type Milestone } from '#loyalty/stamping/unlocked-rewards.js';
import { capitalize } from '#web/pages/capitalize.js';

/** More stamps than this are counted, and not drawn. */
const MAX_DOTS = 24;
/** More rewards than this do not fit beside a thumb. */
const MAX_REWARDS = 3;

/** The fields of a customer card that the counter shows, by their names in the API. */
export type ShownCard = {
  id: number;
  card_name: string;
  status: string;
  stamps_count: number;
  available_rewards: readonly { id: number; name: string; stamps_required: number }[];
};

/** A customer's card as the counter shows it. */
export type CounterCard = {
  id: number;
  name: string;
  cardName: string;
  /** How many cards are full besides the one that is counted; empty without one. */
  full: string;
  countText: string;
  /** Null: there are too many. */
  dots: { filled: number; total: number } | null;
  /** The rewards that can be redeemed now; empty without one. */
  ready: string;
  /** What is missing to the next reward or a full card; empty when nothing is. */
  more: string;
};

/** A form below the outcome. @property action from the path of the store's counter */
export type OutcomeForm = {
  action: '/stamp' | '/redeem' | '/undo' | '/confirm';
  fields: Record<string, string>;
  label: string;
  /** In brackets after the label. */
  note?: string;
  kind: 'add' | 'redeem' | 'undo' | 'confirm';
};

/** The data of views/outcome.eta. */
export type OutcomeView = {
  path: string;
  headline: string;
  /** Whether the headline tells staff to hand over a reward. */
  isRedemption: boolean;
  card: CounterCard | null;
  question: string;
  problem: string;
  /** A code that no card has; empty where there is a card. */
  unknownCode: string;
  forms: OutcomeForm[];
  /** The QR code with the link to the card, as the address of a picture; empty unless the guest is to take it. */
  qr: string;
  /** What to do with that code. */
  qrHint: string;
  /** The label of the link back to the scanner; empty where a script closes the outcome. */
  close: string;
  /** Where that link leads: after a question about another stamp first to the card as it is. */
  closePath: string;
};

/** The parts of a template that the counter shows. */
export type CounterTemplate = { stampsRequired: number; rewards: Milestone[] };

export type OutcomeInput = {
  path: string;
  card: ShownCard;
  template: CounterTemplate;
  /** Of the customer. */
  name: string;
  headline: string;
  isRedemption: boolean;
  /** Of the event that may be undone. */
  eventId: string | null;
  /** The code of a second card that nobody has confirmed. */
  secondCode: string | null;
  /** The last stamping, if it was a moment ago and nothing was added now. */
  recent: { secondsAgo: number; by: string | null; isOwn: boolean } | null;
  qr: string;
  /** Whether links open on this computer only. */
  isOnlyLocal: boolean;
  close: string;
  createReceipt: () => string;
};

export function createOutcome(input: OutcomeInput, localization: Localization): OutcomeView {
  const { path, card, headline, isRedemption, recent, qr, isOnlyLocal, close } = input;
  const { t } = localization;
  const isSecond = input.secondCode !== null;
  const question = isSecond
    ? t.counter.outcome.second({ name: input.name })
    : recent
      ? describeRecent(recent, localization)
      : '';
  return {
    path,
    headline,
    isRedemption,
    card: toCounterCard(input, localization),
    question,
    problem: '',
    unknownCode: '',
    forms: listForms(input, card, localization),
    qr,
    qrHint: isOnlyLocal ? t.words.localOnly : t.counter.find.take,
    close: recent && close !== '' ? t.counter.outcome.no : close,
    // Whoever wants no other stamp may still have a reward; nothing is offered to somebody unconfirmed.
    closePath: recent && !isSecond ? `${path}/cards/${card.id}` : path,
  };
}

/** What an event did. @property reward the name; null of a stamping */
export type Action = { stamps: number; reward: string | null; isReversed: boolean };

/** Describes what an event did, as it stands now: it may have been undone meanwhile. */
export function describeAction(
  { stamps, reward, isReversed }: Action,
  { stamps: texts, counter: { outcome } }: Localization['t'],
): Pick<OutcomeInput, 'headline' | 'isRedemption'> {
  if (isReversed) return { headline: outcome.undone, isRedemption: false };
  return reward === null
    ? { headline: texts.added({ count: stamps }), isRedemption: false }
    : { headline: outcome.redeemed({ reward }), isRedemption: true };
}

/** Creates the outcome where there is nothing but a problem. @param code that no card has, or nothing */
export function createProblemOutcome(
  { path, close }: Pick<OutcomeView, 'path' | 'close'>,
  problem: string,
  code = '',
): OutcomeView {
  return {
    path,
    headline: '',
    isRedemption: false,
    card: null,
    question: '',
    problem,
    unknownCode: code,
    forms: [],
    qr: '',
    qrHint: '',
    close,
    closePath: path,
  };
}

/** Counts full cards apart from the stamps on the next one. @returns `filled`: the dots of that */
export function describeBalance(
  have: number,
  goal: number,
  { outcome }: Localization['t']['counter'],
): { full: string; countText: string; filled: number } {
  if (have <= goal) return { full: '', countText: outcome.of({ have, goal }), filled: have };
  const full = outcome.full({ cards: Math.floor(have / goal) });
  const rest = have % goal;
  return rest === 0
    ? { full: '', countText: full, filled: goal }
    : { full, countText: outcome.of({ have: rest, goal }), filled: rest };
}

function toCounterCard(
  { card, template, name, secondCode }: OutcomeInput,
  { t, locale }: Localization,
): CounterCard {
  const have = card.stamps_count;
  const { stampsRequired: goal } = template;
  const { filled, ...balance } = describeBalance(have, goal, t.counter);
  const offered = secondCode === null ? listRewards(card) : [];
  const rewards = offered.map((reward) => reward.name);
  const isForAll = coversAll(
    have,
    offered.map((reward) => reward.stamps_required),
  );
  const next = template.rewards.find(
    ({ active, stampsRequired }) => active && stampsRequired > have && stampsRequired <= goal,
  );
  const { outcome } = t.counter;
  return {
    id: card.id,
    name,
    cardName: card.card_name,
    ...balance,
    dots: goal <= MAX_DOTS ? { filled, total: goal } : null,
    ready:
      rewards.length === 0
        ? ''
        : outcome.ready({
            count: isForAll ? rewards.length : 1,
            rewards: new Intl.ListFormat(locale, {
              type: isForAll ? 'conjunction' : 'disjunction',
            }).format(rewards),
          }),
    more: next
      ? outcome.toGo({ count: next.stampsRequired - have, reward: next.name })
      : have < goal
        ? outcome.toFull({ count: goal - have })
        : '',
  };
}

/** Lists the rewards that are offered: the dearest of them. */
const listRewards = (card: ShownCard) => card.available_rewards.slice(-MAX_REWARDS);

function listForms(
  { eventId, secondCode, recent, name, createReceipt }: OutcomeInput,
  card: ShownCard,
  { t }: Localization,
): OutcomeForm[] {
  const { outcome } = t.counter;
  const customer_card_id = String(card.id);
  const undo = (label: string): OutcomeForm[] =>
    eventId === null
      ? []
      : [
          {
            action: '/undo',
            fields: { customer_card_id, event_id: eventId },
            label,
            kind: 'undo',
          },
        ];
  const add: OutcomeForm = {
    action: '/stamp',
    fields: { customer_card_id, external_ref: createReceipt(), again: 'yes' },
    label: recent ? outcome.addAnother : outcome.plusOne,
    kind: 'add',
  };
  if (secondCode !== null) {
    const confirm: OutcomeForm = {
      action: '/confirm',
      fields: { customer_card_id, code: secondCode },
      label: outcome.yes({ name }),
      kind: 'confirm',
    };
    return [confirm, ...undo(outcome.notThem)];
  }
  const redeem = ({
    id,
    name: reward,
    stamps_required,
  }: ShownCard['available_rewards'][number]): OutcomeForm => ({
    action: '/redeem',
    fields: { customer_card_id, reward_id: String(id), external_ref: createReceipt() },
    label: outcome.redeem({ reward }),
    note: outcome.uses({ count: stamps_required }),
    kind: 'redeem',
  });
  const rewards = listRewards(card).map(redeem);
  return [...rewards, ...(card.status === 'expired' ? [] : [add]), ...undo(t.words.undo)];
}

function describeRecent(
  { secondsAgo, by, isOwn }: NonNullable<OutcomeInput['recent']>,
  { t, locale }: Localization,
): string {
  const ago = formatAgo(secondsAgo, locale);
  const { outcome } = t.counter;
  const text = isOwn
    ? outcome.recentOwn({ ago })
    : outcome.recent({ ago, who: by ?? outcome.somebody });
  return capitalize(text, locale);
}

/** The texts of problems, by their name. */
export type Problem = keyof Localization['t']['counter']['problems'];

const PROBLEMS: Readonly<Record<string, Problem>> = {
  stamp_limit_reached: 'limit',
  card_expired: 'expired',
  insufficient_stamps: 'tooFew',
  reward_inactive: 'reward',
  customer_erased: 'erased',
  card_unconfirmed: 'unconfirmed',
  forbidden: 'tooLate',
};

/** Finds the text about a refused stamping or redemption, for staff. @param hasCard whether the card was found */
export function findProblem(
  { status, code }: { status: number; code: string },
  hasCard: boolean,
): Problem {
  if (status === 404) return hasCard ? 'reward' : 'unknown';
  if (status >= 500) return 'unavailable';
  return Object.hasOwn(PROBLEMS, code) ? (PROBLEMS[code] ?? 'invalid') : 'invalid';
}
