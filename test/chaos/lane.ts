import { isDeepStrictEqual } from 'node:util';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../support/eventually.js';
import { spelled, type Answer, type Caller, type Request } from './caller.js';
import type { Inbox } from './inbox.js';
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
  /** The last requests, for whoever looks at a difference. */
  readonly trail: string[] = [];
  private made = 0;

  constructor(
    readonly name: string,
    /** The path of the store. */
    readonly store: string,
    readonly caller: Caller,
    readonly random: Random,
    readonly inbox: Inbox,
    /** Whether what was just written may be read late: rows follow the events of EventStoreDB. */
    readonly isLate: boolean,
  ) {}

  /** Those who can be changed. */
  get living(): Customer[] {
    return this.customers.filter((customer) => refusesChange(customer) === undefined);
  }

  get held(): CustomerCard[] {
    return this.living.flatMap(({ cards }) => cards);
  }

  /** A name that nothing else has. */
  fresh(prefix: string): string {
    return `${prefix} ${this.name}-${++this.made}`;
  }

  pathOf({ id, customer }: CustomerCard): string {
    return `${this.store}/customers/${customer.id}/customer_cards/${id}`;
  }

  /**
   * A write under an Idempotency-Key, now and then twice.
   * @param refusal how the model says that it must be refused
   */
  async write(
    method: string,
    path: string,
    body?: unknown,
    refusal?: Refusal,
  ): Promise<Answer & { body: Json }> {
    const request = { method, path, key: this.fresh('key'), ...(body !== undefined && { body }) };
    const answer = await this.send(request, refusal);
    if (this.random.chance(0.05) && refusal?.status !== 404) {
      const again = await this.send(request, refusal);
      this.expect(request, [again.replayed, again.text], [true, answer.text]);
    }
    return answer as Answer & { body: Json };
  }

  async send(request: Request, refusal?: Refusal): Promise<Answer> {
    this.trail.push(spelled(request));
    if (this.trail.length > 40) this.trail.shift();
    const answer = await this.caller.settle(request);
    const code = answer.status < 300 ? undefined : (answer.body as Json)['code'];
    const said = answer.status < 300 ? 'done' : `${answer.status} ${String(code)}`;
    const expected = refusal ? `${refusal.status} ${refusal.code}` : 'done';
    this.expect(request, said, expected, answer.text);
    return answer;
  }

  /** @throws Difference */
  expect(what: Request | string, shown: unknown, expected: unknown, more = ''): void {
    if (isDeepStrictEqual(shown, expected)) return;
    const where = typeof what === 'string' ? what : spelled(what);
    throw new Difference(
      `${where}\n  shown:    ${JSON.stringify(shown)}\n  expected: ${JSON.stringify(expected)}\n  ${more}`,
    );
  }

  /** Reads until it shows what the model says; where rows are written with the events, at once. */
  async expectShown(path: string, expected: Json | 404): Promise<void> {
    const read = async () => {
      const { status, body } = await this.caller.settle({ method: 'GET', path });
      return status === 200 && expected !== 404 ? picked(body as Json, expected) : status;
    };
    let shown = await read();
    for (const deadline = Date.now() + LATE_BY_MS; this.isLate && Date.now() < deadline;) {
      if (isDeepStrictEqual(shown, expected)) return;
      await wait(100);
      shown = await read();
    }
    this.expect(`GET ${path}`, shown, expected);
  }

  expectCard(held: CustomerCard, body: Json, what: string): void {
    const expected = shownCard(held);
    this.expect(what, picked(body, expected), expected);
  }

  /** The id of an event, as soon as it has been sent. @param sequence its place among those that are sent */
  async eventIdOf({ id, events }: CustomerCard, sequence: number): Promise<string> {
    const told = () => {
      this.caller.over.throwIfAborted();
      return this.inbox.about.get(`customer_cards/${id}`)?.[sequence];
    };
    const arrived = await eventually(told, (one) => one !== undefined, 240_000);
    if (!arrived) throw new Error('unreachable');
    this.expect(`event ${sequence} of customer card ${id}`, arrived.facts, events[sequence]);
    return arrived.id;
  }
}

/** What the API shows of it, as far as the model knows. */
export function shownCard(held: CustomerCard): Json {
  return {
    id: held.id,
    card_id: held.card.id,
    card_name: held.card.name,
    status: statusOf(held),
    stamps_count: held.count,
    stamps_remaining: Math.max(0, held.card.required - held.count),
    available_rewards: availableRewards(held).map(({ id }) => id),
  };
}

/** Those fields that are expected, with ids in the place of rewards. */
function picked(body: Json, expected: Json): Json {
  const shown = (name: string) =>
    name === 'available_rewards' ? (body[name] as Json[]).map(({ id }) => id) : body[name];
  return Object.fromEntries(Object.keys(expected).map((name) => [name, shown(name)]));
}
