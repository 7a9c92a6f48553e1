import { parsePositiveInteger } from '#web/pages/page-query.js';

/** Limits what one request may bring; the rest follows in the next. */
export const MAX_OPERATIONS = 50;
/** As long as the script waits: a clock that is no further behind is right, and the request was under way. */
const MAX_TRAVEL_MS = 10_000;

/**
 * An operation as the script sends it: those of a batch of the API, which checks them further.
 * @property asks whether to ask first when the card was stamped a moment ago
 * @property session_id with which the user was signed in on the phone
 * @property is_confirmed whether the user has said that it is theirs, though nobody was signed in
 */
export type CounterOperation = {
  operation: string;
  code?: string;
  customer_card_id?: number;
  stamps?: number;
  reward_id?: number;
  external_ref: string;
  occurred_at?: string;
  session_id?: number;
  asks: boolean;
  is_confirmed?: true;
};

/**
 * Reads the operations of a request. Their times are those of a phone, whose clock may be wrong: `sent_at` says what it
 * showed as the request was sent.
 * @returns undefined when it is not a list of operations
 */
export function readOperations(body: unknown, now: Date): CounterOperation[] | undefined {
  const { operations, sent_at } = (body ?? {}) as { operations?: unknown; sent_at?: unknown };
  if (!Array.isArray(operations) || operations.length > MAX_OPERATIONS) return undefined;
  const sentAt = typeof sent_at === 'string' ? Date.parse(sent_at) : NaN;
  const differenceMs = Number.isNaN(sentAt) ? 0 : sentAt - now.getTime();
  const aheadMs = differenceMs < 0 && differenceMs > -MAX_TRAVEL_MS ? 0 : differenceMs;
  const read = operations.map((operation) => readOperation(operation, { now, aheadMs }));
  return read.every((operation) => operation !== undefined) ? read : undefined;
}

function readOperation(
  value: unknown,
  clock: { now: Date; aheadMs: number },
): CounterOperation | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const input = value as Record<string, unknown>;
  const { operation, external_ref, code } = input;
  if (typeof operation !== 'string' || typeof external_ref !== 'string') return undefined;
  const occurred_at = correctTime(input['occurred_at'], clock);
  const [customer_card_id, stamps, reward_id, session_id] = [
    'customer_card_id',
    'stamps',
    'reward_id',
    'session_id',
  ].map((name) => (Number.isSafeInteger(input[name]) ? Number(input[name]) : undefined));
  return {
    operation,
    external_ref,
    asks: input['asks'] === true,
    ...(typeof code === 'string' && { code }),
    ...(occurred_at !== undefined && { occurred_at }),
    ...(customer_card_id !== undefined && { customer_card_id }),
    ...(stamps !== undefined && { stamps }),
    ...(reward_id !== undefined && { reward_id }),
    ...(session_id !== undefined && { session_id }),
    ...(input['is_confirmed'] === true && { is_confirmed: true }),
  };
}

/** Corrects a time by how far the clock of the phone is ahead. @returns undefined: now */
function correctTime(
  time: unknown,
  { now, aheadMs }: { now: Date; aheadMs: number },
): string | undefined {
  const at = new Date(typeof time === 'string' ? Date.parse(time) - aheadMs : NaN).getTime();
  // Also of a time that no Date can hold.
  if (Number.isNaN(at)) return undefined;
  return new Date(Math.min(at, now.getTime())).toISOString();
}

/** Reads the operation of a form without a script. */
export function readFormOperation(
  operation: 'stamp' | 'redeem',
  form: Readonly<Record<string, string | undefined>>,
  createReceipt: () => string,
): CounterOperation {
  const { code, customer_card_id: cardId, reward_id: rewardId, external_ref: receipt } = form;
  return {
    operation,
    external_ref: receipt === undefined || receipt === '' ? createReceipt() : receipt,
    asks: operation === 'stamp' && form['again'] !== 'yes',
    ...(cardId === undefined ? { code: code ?? '' } : { customer_card_id: readId(cardId) }),
    ...(operation === 'stamp' ? { stamps: 1 } : { reward_id: readId(rewardId) }),
  };
}

/** Reads an id from a form. @returns 0, which no record has, when it is none */
export function readId(text: string | undefined): number {
  return parsePositiveInteger(text) ?? 0;
}
