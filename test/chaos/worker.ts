import { isDeepStrictEqual } from 'node:util';
import { setTimeout as wait } from 'node:timers/promises';
import {
  renderRequest,
  type FinalResponse,
  type RetryingClient,
  type Request,
} from './retrying-client.js';
import {
  availableRewards,
  findChangeRejection,
  getStatus,
  type Card,
  type Customer,
  type CustomerCard,
  type ReceiptNumber,
  type Rejection,
} from './model.js';
import type { Random } from './random.js';

export type Json = Record<string, unknown>;

/** A request with a receipt number for a customer card, and its response. */
export type Receipt = { request: Request; response: Json; card: number };

/** A pass, as its page last showed it. */
export type Pass = { card: CustomerCard; path: string; tag: number; text: string };

/** A record that consists of fields only, such as a location. */
export type SimpleRecord = { kind: string; id: number; fields: Json };

/** An event of a record other than a customer or a customer card, as receivers get it. */
export type RecordEvent = { type: string; name: string };

const MAX_LAG_MS = 120_000;

/** The service behaves differently from the model. */
export class Difference extends Error {}

/**
 * Plays one operation after the other on records that only it changes, so that it knows each response in advance. Many
 * workers together keep the service busy.
 */
export class Worker {
  readonly cards: Card[] = [];
  readonly customers: Customer[] = [];
  readonly receipts: Receipt[] = [];
  readonly receiptNumbers: ReceiptNumber[] = [];
  /** The response to the reversal of a receipt, until the number is used again. */
  readonly reversedReceipts = new Map<ReceiptNumber, Json>();
  readonly simpleRecords: SimpleRecord[] = [];
  /** The events of cards, rewards, locations, posters and the store that must be sent, by what they are about. */
  readonly recordEvents = new Map<string, RecordEvent[]>();
  readonly passes: Pass[] = [];
  /** The last requests, for debugging a difference. */
  readonly recentRequests: string[] = [];
  private nameCount = 0;

  constructor(
    readonly name: string,
    /** The path of the store. */
    readonly store: string,
    readonly client: RetryingClient,
    readonly random: Random,
    /** Whether reads may lag behind writes: with EventStoreDB, read models follow the events. */
    readonly readsMayLag: boolean,
  ) {}

  /** The customers who are neither erased nor merged. */
  get changeableCustomers(): Customer[] {
    return this.customers.filter((customer) => findChangeRejection(customer) === undefined);
  }

  get customerCards(): CustomerCard[] {
    return this.changeableCustomers.flatMap(({ cards }) => cards);
  }

  /** Creates a unique name. */
  createName(prefix: string): string {
    return `${prefix} ${this.name}-${++this.nameCount}`;
  }

  /** Notes an event that must be sent. @param about such as `cards/4` */
  noteEvent(about: string, event: RecordEvent): void {
    const others = this.recordEvents.get(about);
    if (others) others.push(event);
    else this.recordEvents.set(about, [event]);
  }

  getPath({ id, customer }: CustomerCard): string {
    return `${this.store}/customers/${customer.id}/customer_cards/${id}`;
  }

  /**
   * Sends a write with an Idempotency-Key, now and then twice.
   * @param rejection the expected rejection
   * @param rejectionWhenDone the rejection of a repetition, for a write that cannot be done twice; it is sent without a key now and then
   */
  async write(
    method: string,
    path: string,
    body?: unknown,
    rejection?: Rejection,
    rejectionWhenDone?: Rejection | 'done',
  ): Promise<FinalResponse & { body: Json }> {
    if (rejectionWhenDone && this.random.chance(0.4)) {
      const request = { method, path, ...(body !== undefined && { body }) };
      return (await this.send(request, rejection, rejectionWhenDone)) as FinalResponse & {
        body: Json;
      };
    }
    const request = {
      method,
      path,
      key: this.createName('key'),
      ...(body !== undefined && { body }),
    };
    const response = await this.send(request, rejection);
    if (this.random.chance(0.05) && rejection?.status !== 404) {
      const { replayed, text } = await this.send(request, rejection);
      this.expect(request, [replayed, text], [true, response.text]);
    }
    return response as FinalResponse & { body: Json };
  }

  async send(
    request: Request,
    rejection?: Rejection,
    rejectionWhenDone?: Rejection | 'done',
  ): Promise<FinalResponse> {
    this.recentRequests.push(renderRequest(request));
    if (this.recentRequests.length > 40) this.recentRequests.shift();
    const response = await this.client.sendUntilDone(request);
    const code = response.status < 300 ? undefined : (response.body as Json)['code'];
    const outcome = response.status < 300 ? 'done' : `${response.status} ${String(code)}`;
    const wasDone =
      response.hasUnknownAttempt &&
      rejectionWhenDone !== undefined &&
      outcome === renderRejection(rejectionWhenDone);
    if (!wasDone)
      this.expect(request, outcome, renderRejection(rejection ?? 'done'), response.text);
    return response;
  }

  /** @throws Difference */
  expect(what: Request | string, actual: unknown, expected: unknown, more = ''): void {
    if (isDeepStrictEqual(actual, expected)) return;
    const where = typeof what === 'string' ? what : renderRequest(what);
    throw new Difference(
      `${where}\n  shown:    ${JSON.stringify(actual)}\n  expected: ${JSON.stringify(expected)}\n  ${more}`,
    );
  }

  /** Reads a record until its fields are as expected; once, where reads do not lag. */
  async expectFields(path: string, expected: Json | 404): Promise<void> {
    await this.expectResponse(path, expected, ({ status, body }) =>
      status === 200 && expected !== 404 ? pickFields(body as Json, expected) : status,
    );
  }

  /** Reads a path until what `select` takes from the response is as expected; once, where reads do not lag. */
  async expectResponse(
    path: string,
    expected: unknown,
    select: (response: FinalResponse) => unknown,
  ) {
    const read = () => this.client.sendUntilDone({ method: 'GET', path });
    let response = await read();
    for (const deadline = Date.now() + MAX_LAG_MS; this.readsMayLag && Date.now() < deadline;) {
      if (isDeepStrictEqual(select(response), expected)) break;
      await wait(100);
      response = await read();
    }
    this.expect(`GET ${path}`, select(response), expected);
    return response;
  }

  expectCard(customerCard: CustomerCard, body: Json, what: string): void {
    const expected = toCardJson(customerCard);
    this.expect(what, pickFields(body, expected), expected);
  }

  /** Finds the id of one of the card's last events. @param sequence its index among the public events */
  async findEventId(customerCard: CustomerCard, sequence: number): Promise<string> {
    const path = `${this.getPath(customerCard)}/events?limit=${PAGE_SIZE}`;
    const expected = customerCard.events.slice(-RECENT_EVENTS).map(toHistoryEntry).reverse();
    // Merging adds entries that are not sent to anybody.
    const listPublic = (body: unknown) =>
      (body as Json[]).filter(({ type }) => PUBLIC_TYPES.has(String(type)));
    // A card whose read model lags is not found yet.
    const selectRecent = ({ status, body }: FinalResponse) =>
      status === 200 ? listPublic(body).slice(0, RECENT_EVENTS).map(toHistoryEntry) : status;
    const { body } = await this.expectResponse(path, expected, selectRecent);
    const event = listPublic(body)[customerCard.events.length - 1 - sequence];
    if (!event) throw new Error(`event ${sequence} is none of the last ${RECENT_EVENTS}`);
    return String(event['id']);
  }
}

const PAGE_SIZE = 250;
/** How many of the last events can be found. A page has many more, because of the entries of merging. */
export const RECENT_EVENTS = 40;
const PUBLIC_TYPES = new Set([
  'customer_card.created',
  'stamp.earned',
  'stamp.removed',
  'reward.unlocked',
  'reward.redeemed',
]);

/** Predicts the history entry of an event. */
function toHistoryEntry(event: Json): Json {
  const { type, count, balance = count } = event;
  return type === 'customer_card.created' ? { type } : { type, balance };
}

const renderRejection = (rejection: Rejection | 'done'): string =>
  rejection === 'done' ? rejection : `${rejection.status} ${rejection.code}`;

/** Predicts the API's response. */
export function toCardJson(customerCard: CustomerCard): Json {
  return {
    id: customerCard.id,
    card_id: customerCard.card.id,
    card_name: customerCard.card.name,
    status: getStatus(customerCard),
    stamps_count: customerCard.count,
    stamps_remaining: Math.max(0, customerCard.card.required - customerCard.count),
    available_rewards: availableRewards(customerCard).map(({ id }) => id),
  };
}

/** Picks the expected fields, with ids in place of rewards. */
function pickFields(body: Json, expected: Json): Json {
  const listIds = (name: string) =>
    name === 'available_rewards' ? (body[name] as Json[]).map(({ id }) => id) : body[name];
  return Object.fromEntries(Object.keys(expected).map((name) => [name, listIds(name)]));
}
