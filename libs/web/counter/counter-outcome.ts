import type { Localization } from '#translations/translations.js';
import type { Milestone } from '#loyalty/stamping/unlocked-rewards.js';
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
  countText: string;
  /** Null: there are too many. */
  dots: { filled: number; total: number } | null;
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
  card: CounterCard | null;
  question: string;
  problem: string;
  forms: OutcomeForm[];
  /** The QR code with the link to the card, as the address of a picture; empty unless the guest is to take it. */
  qr: string;
  /** The label of the link back to the scanner; empty where a script closes the outcome. */
  close: string;
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
  /** Of the event that may be undone. */
  eventId: string | null;
  /** The code of a second card that nobody has confirmed. */
  secondCode: string | null;
  /** The last stamping, if it was a moment ago and nothing was added now. */
  recent: { secondsAgo: number; by: string | null; isOwn: boolean } | null;
  qr: string;
  close: string;
  createReceipt: () => string;
};

export function createOutcome(input: OutcomeInput, localization: Localization): OutcomeView {
  const { path, card, headline, recent, qr, close } = input;
  const { t } = localization;
  const question = recent
    ? describeRecent(recent, localization)
    : input.secondCode === null
      ? ''
      : t.counter.outcome.second({ name: input.name });
  return {
    path,
    headline,
    card: toCounterCard(input, localization),
    question,
    problem: '',
    forms: listForms(input, card, localization),
    qr,
    close: recent && close !== '' ? t.counter.outcome.no : close,
  };
}

/** Creates the outcome where there is nothing but a problem. */
export function createProblemOutcome(path: string, problem: string, close: string): OutcomeView {
  return { path, headline: '', card: null, question: '', problem, forms: [], qr: '', close };
}

function toCounterCard({ card, template, name }: OutcomeInput, { t }: Localization): CounterCard {
  const have = card.stamps_count;
  const { stampsRequired: goal } = template;
  const next = template.rewards.find(
    ({ active, stampsRequired }) => active && stampsRequired > have && stampsRequired <= goal,
  );
  const { outcome } = t.counter;
  return {
    id: card.id,
    name,
    cardName: card.card_name,
    countText: outcome.of({ have, goal }),
    dots: goal <= MAX_DOTS ? { filled: Math.min(have, goal), total: goal } : null,
    more: next
      ? outcome.toGo({ count: next.stampsRequired - have, reward: next.name })
      : have < goal
        ? outcome.toFull({ count: goal - have })
        : '',
  };
}

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
  if (recent) return [add];
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
  const rewards = card.available_rewards.slice(-MAX_REWARDS).map(redeem);
  return [...rewards, ...(card.status === 'expired' ? [] : [add]), ...undo(t.words.undo)];
}

function describeRecent(
  { secondsAgo, by, isOwn }: NonNullable<OutcomeInput['recent']>,
  { t, locale }: Localization,
): string {
  const ago = new Intl.RelativeTimeFormat(locale).format(-Math.max(1, secondsAgo), 'second');
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

/** Finds the text about a refused stamping or redemption, for staff. */
export function findProblem({ status, code }: { status: number; code: string }): Problem {
  if (status === 404) return 'unknown';
  if (status >= 500) return 'unavailable';
  return Object.hasOwn(PROBLEMS, code) ? (PROBLEMS[code] ?? 'invalid') : 'invalid';
}
