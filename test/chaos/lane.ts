import { isDeepStrictEqual } from 'node:util';
import { setTimeout as wait } from 'node:timers/promises';
import { spelled, type Answer, type Caller, type Request } from './caller.js';
import {
  availableRewards,
  refusesChange,
  statusOf,
  type Card,
  type Customer,
  type CustomerCard,
  type Refusal,
} from './model.js';
import type { Random } from './random.js';

export type Json = Record<string, unknown>;

/** An action under a receipt number on a customer card, and what it was answered. */
export type Receipt = { request: Request; answer: Json; card: number };

/** A pass as its page last showed it. */
export type Pass = { card: CustomerCard; path: string; tag: number; text: string };

/** A record of which only its fields are known, such as a location. */
export type Plain = { kind: string; id: number; fields: Json };

const LATE_BY_MS = 120_000;

/** The service did something else than the model. */
export class Difference extends Error {}

/**
 * Records that only this lane changes, one operation after the other, so that it knows how each must be answered. Many
 * lanes together keep the service busy.
 */
export class Lane {
  readonly cards: Card[] = [];
  readonly customers: Customer[] = [];
  readonly receipts: Receipt[] = [];
  readonly plain: Plain[] = [];
  readonly passes: Pass[] = [];
  /** The last requests, for whoever looks at a difference. */
  readonly trail: string[] = [];
  private nameCount = 0;

  constructor(
    readonly name: string,
    /** The path of the store. */
    readonly store: string,
    readonly caller: Caller,
    readonly random: Random,
    /** Whether what was just written may be read late: rows follow the events of EventStoreDB. */
    readonly isLate: boolean,
  ) {}

  /** Those who can be changed. */
  get living(): Customer[] {
    return this.customers.filter((customer) => refusesChange(customer) === undefined);
  }

  get customerCards(): CustomerCard[] {
    return this.living.flatMap(({ cards }) => cards);
  }

  /** A name that nothing else has. */
  fresh(prefix: string): string {
    return `${prefix} ${this.name}-${++this.nameCount}`;
  }

  pathOf({ id, customer }: CustomerCard): string {
    return `${this.store}/customers/${customer.id}/customer_cards/${id}`;
  }

  /**
   * A write under an Idempotency-Key, now and then twice.
   * @param refusal how the model says that it must be refused
   * @param again what cannot be done twice is refused so when it was done before; now and then it has no key
   */
  async write(
    method: string,
    path: string,
    body?: unknown,
    refusal?: Refusal,
    again?: Refusal | 'done',
  ): Promise<Answer & { body: Json }> {
    if (again && this.random.chance(0.4)) {
      const request = { method, path, ...(body !== undefined && { body }) };
      return (await this.send(request, refusal, again)) as Answer & { body: Json };
    }
    const request = { method, path, key: this.fresh('key'), ...(body !== undefined && { body }) };
    const answer = await this.send(request, refusal);
    if (this.random.chance(0.05) && refusal?.status !== 404) {
      const { replayed, text } = await this.send(request, refusal);
      this.expect(request, [replayed, text], [true, answer.text]);
    }
    return answer as Answer & { body: Json };
  }

  async send(request: Request, refusal?: Refusal, again?: Refusal | 'done'): Promise<Answer> {
    this.trail.push(spelled(request));
    if (this.trail.length > 40) this.trail.shift();
    const answer = await this.caller.settle(request);
    const code = answer.status < 300 ? undefined : (answer.body as Json)['code'];
    const outcome = answer.status < 300 ? 'done' : `${answer.status} ${String(code)}`;
    const wasDone = answer.unsure && again !== undefined && outcome === spelledRefusal(again);
    if (!wasDone) this.expect(request, outcome, spelledRefusal(refusal ?? 'done'), answer.text);
    return answer;
  }

  /** @throws Difference */
  expect(what: Request | string, actual: unknown, expected: unknown, more = ''): void {
    if (isDeepStrictEqual(actual, expected)) return;
    const where = typeof what === 'string' ? what : spelled(what);
    throw new Difference(
      `${where}\n  shown:    ${JSON.stringify(actual)}\n  expected: ${JSON.stringify(expected)}\n  ${more}`,
    );
  }

  /** Reads until it shows what the model says; where rows are written with the events, at once. */
  async expectShown(path: string, expected: Json | 404): Promise<void> {
    await this.expectRead(path, expected, ({ status, body }) =>
      status === 200 && expected !== 404 ? picked(body as Json, expected) : status,
    );
  }

  /** The same, of whatever an answer shows. */
  async expectRead(path: string, expected: unknown, shownBy: (answer: Answer) => unknown) {
    const read = () => this.caller.settle({ method: 'GET', path });
    let answer = await read();
    for (const deadline = Date.now() + LATE_BY_MS; this.isLate && Date.now() < deadline;) {
      if (isDeepStrictEqual(shownBy(answer), expected)) break;
      await wait(100);
      answer = await read();
    }
    this.expect(`GET ${path}`, shownBy(answer), expected);
    return answer;
  }

  expectCard(customerCard: CustomerCard, body: Json, what: string): void {
    const expected = shownCard(customerCard);
    this.expect(what, picked(body, expected), expected);
  }

  /** The id of one of its last events. @param sequence its place among those that are sent */
  async eventIdOf(customerCard: CustomerCard, sequence: number): Promise<string> {
    const path = `${this.pathOf(customerCard)}/events?limit=${LISTED}`;
    const expected = customerCard.events.slice(-NEWEST).map(entryOf).reverse();
    // Merging has entries of its own, of which nobody is sent anything.
    const listed = (body: unknown) => (body as Json[]).filter(({ type }) => SENT.has(String(type)));
    const shownBy = ({ body }: Answer) => listed(body).slice(0, NEWEST).map(entryOf);
    const { body } = await this.expectRead(path, expected, shownBy);
    const event = listed(body)[customerCard.events.length - 1 - sequence];
    if (!event) throw new Error(`event ${sequence} is none of the last ${NEWEST}`);
    return String(event['id']);
  }
}

const LISTED = 250;
/** Of so many, an event can be named. Many more are listed, because those of merging come on top. */
export const NEWEST = 40;
const SENT = new Set([
  'customer_card.created',
  'stamp.earned',
  'stamp.removed',
  'reward.unlocked',
  'reward.redeemed',
]);

/** Predicts the history entry of an event. */
function entryOf(event: Json): Json {
  const { type, count, balance = count } = event;
  return type === 'customer_card.created' ? { type } : { type, balance };
}

const spelledRefusal = (refusal: Refusal | 'done'): string =>
  refusal === 'done' ? refusal : `${refusal.status} ${refusal.code}`;

/** Predicts the API's response. */
export function shownCard(customerCard: CustomerCard): Json {
  return {
    id: customerCard.id,
    card_id: customerCard.card.id,
    card_name: customerCard.card.name,
    status: statusOf(customerCard),
    stamps_count: customerCard.count,
    stamps_remaining: Math.max(0, customerCard.card.required - customerCard.count),
    available_rewards: availableRewards(customerCard).map(({ id }) => id),
  };
}

/** Those fields that are expected, with ids in the place of rewards. */
function picked(body: Json, expected: Json): Json {
  const listIds = (name: string) =>
    name === 'available_rewards' ? (body[name] as Json[]).map(({ id }) => id) : body[name];
  return Object.fromEntries(Object.keys(expected).map((name) => [name, listIds(name)]));
}
