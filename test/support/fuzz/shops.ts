import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { normalizeIdentifier, normalizeNumber, normalizeText } from '#platform/kernel/text.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import type { ContractClient, Failure } from '../http/contract.js';
import type { ApiResponse } from '../services/service.js';
import { renderFile, type SentFile } from './import-files.js';
import { ImportModel } from './import-model.js';
import { jsonText, plainText, type SendContext } from './json.js';
import {
  codeOf,
  findByCode,
  isShown,
  own,
  Shop,
  without,
  type Json,
  type KnownRecord,
} from './shop.js';
import type { Step } from './steps.js';

type Request = {
  method: string;
  path: string;
  body: unknown;
  headers: Record<string, string>;
  /** The body, if it is a file. */
  file?: SentFile;
};

/** Lists whose contents are known completely, and the query that shows all of them. */
const LISTS = {
  cards: '?scope=all',
  rewards: '',
  locations: '',
  posters: '',
  webhook_subscriptions: '',
} as const;
const WRAPPERS: Record<string, string> = {
  accounts: 'account',
  cards: 'card',
  rewards: 'reward',
  customers: 'customer',
  locations: 'location',
  posters: 'poster',
};
/** Codes of the rules that the schema states, which Schemathesis knows too. */
const SCHEMA_CODES = new Set(
  JSON.parse(readFileSync(new URL('schema-codes.json', import.meta.url), 'utf8')) as string[],
);
const NOBODY = 999_999_999;
/** Paths of no store, which the token of another one may read. */
const STORELESS = new Set(['/api/v1/status', '/api/v1/accounts', '/api/v1/token']);
/** Operations that change a balance by what their bodies say, and what shares its receipt numbers. */
const DEEDS: Record<string, string> = {
  stampCustomerCard: 'stamp',
  redeemReward: 'redeem',
  stampByCode: 'stamp',
  redeemByCode: 'redeem',
  adjustCustomerCard: 'adjust',
};

/** Two stores that are sent requests in any order, and the rules that must hold for all of these. */
export class Shops {
  requests = 0;
  /** Operations by id. */
  readonly tried = new Set<string>();
  readonly imports = new ImportModel({
    read: (shop, path) => this.read(shop, path),
    upload: (shop, path, file) =>
      this.send(shop, {
        method: 'POST',
        path,
        body: file.bytes,
        headers: { 'content-type': file.type },
      }),
    expect: (holds, message) => this.expect(holds, message),
  });
  private readonly trail: string[] = [];
  /** By X-Request-Id: the store that the request may change, or none. */
  private readonly allowed = new Map<string, number | null>();

  private constructor(
    private readonly shops: readonly [Shop, Shop],
    private readonly target: string,
  ) {}

  /** @param target a URL that accepts webhooks */
  static async open(newStore: () => Promise<ContractClient>, target: string): Promise<Shops> {
    const both = new Shops([new Shop(await newStore()), new Shop(await newStore())], target);
    for (const shop of both.shops) await both.furnish(shop);
    return both;
  }

  /** @throws Error listing every request so far when a rule is broken */
  async play(steps: Step[], history: () => Promise<StoredEvent[]>): Promise<void> {
    try {
      for (const step of steps) {
        const events = step.path.includes('{event_id}') ? await history() : [];
        await this.take(step, events);
      }
      for (const shop of this.shops) await this.takeStock(shop);
      this.holdAgainst(await history());
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const trail = this.trail.slice(-80).join('\n');
      throw new Error(`${message}\n\nafter these requests:\n${trail}`, { cause: error });
    }
  }

  /** Creates some records, so that the first request of a sequence already finds something. */
  private async furnish(shop: Shop): Promise<void> {
    const { marker } = shop;
    const create = async (kind: string, body: Json) => {
      const path = `${shop.client.store}/${kind}`;
      const response = await this.send(shop, { method: 'POST', path, body, headers: {} });
      this.expect(response.status === 201, `the first of ${kind} was refused`);
      await this.learn(shop, kind, path, response.body as Json);
      return (response.body as { id: number }).id;
    };
    const card_id = await create('cards', { card: { name: `Coffee ${marker}` } });
    await create('rewards', { reward: { card_id, name: `Cup ${marker}`, stamps_required: 2 } });
    await create('locations', { location: { name: marker, address: `Way 1, ${marker}` } });
    await create('customers', {
      customer: { first_name: `Anna ${marker}`, email: `anna@${marker}.example` },
      card_id,
    });
    await create('posters', { poster: { card_id, title: marker } });
    const target_url = this.target;
    await create('webhook_subscriptions', { events: ['*'], target_url, description: marker });
  }

  private async take(step: Step, events: StoredEvent[]): Promise<void> {
    const shop = this.shops[step.store];
    const request = this.requestOf(shop, step, events);
    const by = this.callerOf(shop, step);
    const response = await this.send(by ?? shop, request, step.token);
    if (step.id === null) return;
    this.tried.add(step.id);

    const path = request.path.split('?', 1)[0] ?? '';
    const isOdd = Object.keys(step.odd).length > 0;
    if (step.token !== 'own' && !STORELESS.has(path)) {
      const denialStatus = step.token === 'other' ? 404 : 401;
      this.expect(
        response.status === denialStatus || isOdd,
        `a caller without access got ${response.status}`,
      );
      return;
    }
    const isValid = step.body.kind === 'json' && step.body.isValid && step.query.length === 0;
    if (response.status === 422 && isValid) this.expectOtherRules(response);
    if (response.status >= 300 || step.token !== 'own') return;
    const namesRecord = /\{(id|customer_id|subscription_id|code)\}/.test(step.path);
    this.expect(!(step.foreign && namesRecord && !isOdd), "another store's record was shown");
    if (request.method === 'GET') return this.collect(shop, response);

    const key = request.headers['idempotency-key'];
    const isReplayed = response.headers.get('idempotent-replayed') === 'true';
    if (key !== undefined) {
      const same = `${request.method} ${request.path} ${key.replace(/^"(.*)"$/, '$1')}`;
      const first = shop.keyed.get(same);
      const isSame =
        first?.status === response.status && isDeepStrictEqual(first.body, response.body);
      // Under a new key, a receipt number may still be an old one.
      const isOldReceipt =
        first === undefined && /\/(stamp|redeem|adjust|receipts\/reverse)(\?|$)/.test(request.path);
      this.expect(
        isOldReceipt || isReplayed === (first !== undefined),
        'a new key was treated as repeated, or a known one as new',
      );
      this.expect(isOldReceipt || !isReplayed || isSame, 'repeated with a different response');
      shop.keyed.set(same, response);
    }
    if (isReplayed) return;
    await this.follow(shop, step, path, request, response);
    if (step.twice && step.key === 'fresh') {
      const again = await this.send(shop, request);
      const isSame =
        again.status === response.status && isDeepStrictEqual(again.body, response.body);
      this.expect(
        again.headers.get('idempotent-replayed') === 'true' && isSame,
        'sent twice, with another response',
      );
    }
  }

  /** Checks that what the schema allows was rejected by rules that it does not state. */
  private expectOtherRules({ text, body }: ApiResponse): void {
    const { error_codes: codes = {} } = body as Failure;
    const stated = Object.values(codes)
      .flat()
      .filter((code) => SCHEMA_CODES.has(code));
    this.expect(stated.length === 0, `what the schema allows was rejected: ${text}`);
  }

  /** Checks what a successful write must have led to. */
  private async follow(
    shop: Shop,
    step: Step,
    path: string,
    request: Request,
    response: ApiResponse,
  ): Promise<void> {
    const body = (response.body ?? {}) as Json;
    const kind = kindOf(step.path);
    if (kind === 'imports') return this.followImport(shop, step, request, body);
    const sent = parsed(request.body);
    if (/^(un)?mergeCustomers$/.test(step.id ?? '')) shop.hasMerged = true;
    if (shop.hasMerged && /\/(customers|customer_cards|batch|receipts)(\/|$)/.test(step.path))
      return;
    if (step.id === 'executeBatch') return this.followBatch(shop, sent, response);
    if (step.id === 'reverseReceipt') return this.followReceipt(shop, body);
    if (step.id === 'createCustomer' && response.status === 200) {
      return this.followExisting(shop, body);
    }
    if (request.method === 'POST' && /^(create|enrol)/.test(step.id ?? '')) {
      const record = await this.learn(shop, kind, path, body);
      this.expectNamed(shop, kind, sent, record.body, true);
      return;
    }
    const recordPath = `${path.replace(/\/(stamp|redeem|adjust|events\/[^/]+\/reverse|archive|unarchive|test|rotate_secret|erase)\/?$/, '')}`;
    if (step.id === 'removeLogo') {
      const current = await this.read(shop, recordPath.replace(/\/logo$/, ''));
      this.expect(
        isDeepStrictEqual(current, body),
        'the store is shown differently from the response',
      );
      return;
    }
    if (step.id === 'updateAccount') {
      const current = await this.read(shop, recordPath);
      this.expect(
        isDeepStrictEqual(current, body),
        'the store is shown differently from the response',
      );
      this.expectNamed(shop, kind, sent, current, false);
      shop.timeZone = String(current['time_zone']);
      return;
    }
    const code = /\/by_code\/(\w+)$/.exec(recordPath)?.[1];
    const record =
      code === undefined
        ? shop.live(kind).find((record) => record.path === recordPath)
        : findByCode(shop, code);
    if (request.method === 'DELETE') {
      this.expect(record !== undefined, 'what was deleted was never created');
      if (record) record.deleted = true;
      const gone = await this.send(shop, {
        method: 'GET',
        path: recordPath,
        body: undefined,
        headers: {},
      });
      this.expect(gone.status === 404, 'what was deleted is still shown');
      return;
    }
    // Deliveries and the like, of which nothing is remembered.
    if (!record || step.id === 'replayWebhooks') return;
    const before = record.body;
    record.body = await this.read(shop, record.path);
    if (step.id === 'eraseCustomer') {
      const { first_name: name, email, erased_at: at } = record.body;
      const isErased = name === 'Erased' && email === null && typeof at === 'string';
      this.expect(isErased, 'the person is still shown');
      return;
    }
    if (response.headers.get('x-dry-run') === 'true') {
      this.expect(isDeepStrictEqual(own(record.body), own(before)), 'a dry run changed something');
    } else if (step.id !== null && DEEDS[step.id] !== undefined) {
      this.followDeed(shop, DEEDS[step.id] ?? '', { record, sent, body, before });
    } else if (step.id !== 'testWebhookSubscription') {
      const event = /\/events\/([^/]+)\/reverse/.exec(path)?.[1];
      if (event !== undefined) {
        shop.reversed.add(event);
        shop.corrected.add(record.id);
      }
      const [current, after] = [record.body, body].map((event) =>
        without(event, 'secret', 'event_id'),
      );
      this.expect(isDeepStrictEqual(current, after), 'shown differently from the response');
      if (request.method === 'PATCH') this.expectNamed(shop, kind, sent, record.body, false);
    }
  }

  private async followImport(
    shop: Shop,
    { id }: Step,
    { path, file }: Request,
    body: Json,
  ): Promise<void> {
    if (id === 'createImport') {
      await this.imports.followUpload(shop, path, file ?? null, body);
      return;
    }
    const record = shop.of('imports').find((record) => record.id === body['id']);
    if (!record) throw new Error('an import was changed that nobody created');
    if (id === 'startImport') await this.imports.followStart(shop, record);
    else if (id === 'discardImport') await this.imports.followDiscard(shop, record);
    else await this.imports.followUndo(shop, record);
  }

  /** Checks the customer who was returned because they exist: only a card may be new. */
  private async followExisting(shop: Shop, body: Json): Promise<void> {
    const record = shop.live('customers').find(({ id }) => id === body['id']);
    if (!record) throw new Error('a customer was returned as existing whom nobody created');
    const card = body['customer_card'] as Json | undefined;
    const before = record.body;
    record.body = await this.read(shop, record.path);
    this.expect(
      isDeepStrictEqual(record.body, without(body, 'customer_card')),
      'shown differently from the response',
    );
    const cards = ['customer_cards', 'stamp_count'];
    this.expect(
      isDeepStrictEqual(without(record.body, ...cards), without(before, ...cards)),
      'a customer who exists was changed',
    );
    if (card && !shop.of('customer_cards').some(({ id }) => id === card['id'])) {
      await this.learn(shop, 'customer_cards', `${record.path}/customer_cards`, card);
    }
  }

  /** Checks a deed of a card. @param deed `before` is the card before it, and the record's body the card after it */
  private followDeed(
    shop: Shop,
    operation: string,
    { record, sent, body, before }: { record: KnownRecord; sent: Json; body: Json; before: Json },
  ): void {
    const now = record.body;
    const { balance, isNew } = this.followUse(shop, operation, { record, sent, body, before });
    if (!isNew) {
      this.expect(isDeepStrictEqual(own(now), own(before)), 'a receipt number counted twice');
      return;
    }
    this.expect(now['stamps_count'] === balance, 'the balance is shown differently');
    if (operation === 'redeem') return;
    this.expect(
      isDeepStrictEqual(now, without(body, 'event_id')),
      'shown differently from the response',
    );
  }

  /** Checks the balance after a deed, or that a repeated receipt number got the first result. */
  private followUse(
    shop: Shop,
    operation: string,
    { record, sent, body, before }: { record: KnownRecord; sent: Json; body: Json; before: Json },
  ): { balance: number; isNew: boolean } {
    const redemption = body['redemption'] as
      | { stamps_spent: number; stamps_remaining: number }
      | undefined;
    const change = redemption ? -redemption.stamps_spent : Number(sent['stamps']);
    const balance = Number(redemption ? redemption.stamps_remaining : body['stamps_count']);
    const receipt =
      typeof sent['external_ref'] === 'string' ? normalizeIdentifier(sent['external_ref']) : '';
    const name = `${operation} ${receipt}`;
    const uses = receipt === '' ? [] : (shop.receipts.get(name) ?? []);
    const first = uses.find(({ path }) => path === record.path);
    if (first) {
      const { stamps_count, redemption: done, event_id: event } = first.body;
      const isSame =
        stamps_count === body['stamps_count'] &&
        isDeepStrictEqual(done, redemption) &&
        event === body['event_id'];
      this.expect(isSame, 'a repeated receipt number got a different response');
      return { balance: Number(before['stamps_count']), isNew: false };
    }
    this.expect(
      uses.every(({ eventId }) => shop.reversed.has(eventId)),
      'a receipt number counted on two cards',
    );
    if (receipt !== '') {
      const use = { path: record.path, body, change, eventId: String(body['event_id']) };
      shop.receipts.set(name, [...uses, use]);
    }
    this.expect(
      balance === Number(before['stamps_count']) + change,
      'the new balance is not the old one plus the change',
    );
    this.expect(balance >= 0, 'the balance is negative');
    return { balance, isNew: true };
  }

  /** Checks each result of a batch, in order, and the balances after it. */
  private async followBatch(shop: Shop, sent: Json, response: ApiResponse): Promise<void> {
    const operations = sent['operations'] as Json[];
    const { results } = response.body as { results: { status: number; body: Json }[] };
    this.expect(results.length === operations.length, 'a batch has other results than operations');
    const isDryRun = response.headers.get('x-dry-run') === 'true';
    const balances = new Map<KnownRecord, number>();
    for (const [i, { status, body }] of results.entries()) {
      this.expect(status < 500, `an operation of a batch got ${status}`);
      const operation = operations[i] ?? {};
      if (status !== 200 || isDryRun) continue;
      const { customer_card_id: id, code, operation: name } = operation;
      const record = isBlank(id)
        ? findByCode(shop, normalizeText(String(code)))
        : shop
            .live('customer_cards')
            .find((record) => record.id === Number(normalizeNumber(String(id))));
      if (!record) throw new Error('a batch changed a card that nobody created');
      const stamps_count = balances.get(record) ?? record.body['stamps_count'];
      const before = { ...record.body, stamps_count };
      const sentDetails = {
        ...operation,
        stamps: Number(normalizeNumber(String(operation['stamps']))),
      };
      const use = { record, sent: sentDetails, body, before };
      balances.set(record, this.followUse(shop, normalizeText(String(name)), use).balance);
    }
    await this.expectBalances(shop, balances);
  }

  /** Checks that a receipt was reversed on each of its cards. */
  private async followReceipt(shop: Shop, body: Json): Promise<void> {
    const balances = new Map<KnownRecord, number>();
    const uses = [...shop.receipts.values()].flat();
    for (const id of body['reversed'] as string[]) {
      this.expect(!shop.reversed.has(id), 'an event was reversed twice');
      shop.reversed.add(id);
      const use = uses.find(({ eventId }) => eventId === id);
      const record = shop.live('customer_cards').find(({ path }) => path === use?.path);
      if (!use || !record) throw new Error('a receipt was reversed that nobody used');
      const before = balances.get(record) ?? Number(record.body['stamps_count']);
      balances.set(record, before - use.change);
    }
    await this.expectBalances(shop, balances);
  }

  private async expectBalances(shop: Shop, balances: Map<KnownRecord, number>): Promise<void> {
    for (const [record, balance] of balances) {
      record.body = await this.read(shop, record.path);
      this.expect(record.body['stamps_count'] === balance, 'the balance is shown differently');
    }
  }

  /** Remembers a record that was just created, as a read shows it. */
  private async learn(shop: Shop, kind: string, path: string, body: Json): Promise<KnownRecord> {
    const attributes = without(body, 'customer_card', 'secret');
    const card = body['customer_card'];
    const record: KnownRecord = {
      id: Number(attributes['id']),
      path: `${path.replace(/\/$/, '')}/${Number(attributes['id'])}`,
      body: {},
      deleted: false,
    };
    record.body = await this.read(shop, record.path);
    this.expect(
      isDeepStrictEqual(without(record.body, 'secret'), attributes),
      'shown differently from the response',
    );
    shop.of(kind).push(record);
    if (card)
      await this.learn(shop, 'customer_cards', `${record.path}/customer_cards`, card as Json);
    return record;
  }

  private async read(shop: Shop, path: string): Promise<Json> {
    const response = await this.send(shop, { method: 'GET', path, body: undefined, headers: {} });
    this.expect(response.status === 200, `${path} cannot be read after it was written`);
    return response.body as Json;
  }

  /** Everything is there as it was last shown, and nothing else. */
  private async takeStock(shop: Shop): Promise<void> {
    const { client } = shop;
    const listed = async (path: string) => (await this.read(shop, path)) as unknown as Json[];
    const ids = (records: { id?: unknown }[]) =>
      records.map(({ id }) => Number(id)).sort((a, b) => a - b);
    const cards = shop.live('customer_cards');
    for (const [kind, query] of Object.entries(LISTS)) {
      const items = await listed(`${client.store}/${kind}${query}`);
      const liveRecords = shop.live(kind);
      this.expect(
        isDeepStrictEqual(ids(items), ids(liveRecords)),
        `the list of ${kind} is not what was created`,
      );
      for (const { id, body } of liveRecords) {
        const before = without(body, 'secret');
        const now = items.find((item) => item['id'] === id);
        this.expect(
          isDeepStrictEqual(own(now ?? {}), own(before)),
          `${kind} ${id} changed unasked`,
        );
        if (kind !== 'cards' || !now) continue;
        const rewards = shop.live('rewards').filter((reward) => reward.body['card_id'] === id);
        const issued = cards.filter((card) => card.body['card_id'] === id);
        this.expect(
          now['rewards_count'] === rewards.length &&
            (shop.hasMerged || now['customer_cards_count'] === issued.length),
          `card ${id} counts wrong`,
        );
      }
    }
    await this.imports.takeStock(shop);
    if (shop.hasMerged) return this.turnPages(shop);
    for (const { path, body, id } of shop.live('customers')) {
      const now = await this.read(shop, path);
      this.expect(isDeepStrictEqual(own(now), own(body)), `customer ${id} changed unasked`);
      const ownCards = cards.filter((card) => card.path.startsWith(`${path}/`));
      const listed = now['customer_cards'] as Json[];
      this.expect(
        isDeepStrictEqual(ids(listed), ids(ownCards)),
        `customer ${id} has other cards than expected`,
      );
      const sum = ownCards.reduce((stamps, card) => stamps + Number(card.body['stamps_count']), 0);
      this.expect(now['stamp_count'] === sum, `customer ${id} has a different sum of stamps`);
    }
    for (const { path, body, id } of cards) {
      const now = await this.read(shop, path);
      this.expect(isDeepStrictEqual(own(now), own(body)), `customer card ${id} changed unasked`);
    }
    const counts = await this.read(shop, client.store);
    for (const kind of ['cards', 'customers', 'locations', 'posters']) {
      this.expect(
        counts[`${kind}_count`] === shop.live(kind).length,
        `the store's count of ${kind} is wrong`,
      );
    }
    await this.turnPages(shop);
  }

  /** The pages of a list together are the list. */
  private async turnPages(shop: Shop): Promise<void> {
    const path = `${shop.client.store}/cards`;
    const whole = (await this.read(shop, path)) as unknown as Json[];
    const paged: Json[] = [];
    for (let at: string | undefined = `${path}?limit=2`; at !== undefined;) {
      const response: ApiResponse = await this.send(shop, {
        method: 'GET',
        path: at,
        body: undefined,
        headers: {},
      });
      paged.push(...(response.body as Json[]));
      at = /<https?:\/\/[^/]+([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
    }
    this.expect(isDeepStrictEqual(paged, whole), 'the pages of a list are not the list');
  }

  /** Checks that recorded events match the responses: actor, location and amount. */
  private holdAgainst(history: StoredEvent[]): void {
    const accounts = new Set(this.shops.map(({ client }) => client.accountId));
    const balances = new Map<string, number>();
    for (const { meta, stream, type, data } of history) {
      if (!accounts.has(meta.accountId)) continue;
      const allowed = this.allowed.get(meta.requestId);
      const isOurs = this.allowed.has(meta.requestId);
      this.expect(
        !isOurs || allowed === meta.accountId,
        `${meta.requestId} recorded ${type} in ${stream}`,
      );
      const { stamps = 0, stampsSpent = 0 } = data as { stamps?: number; stampsSpent?: number };
      if (!stream.startsWith('customer_card-')) continue;
      const change = type === 'StampsRemoved' ? -stamps : stamps - stampsSpent;
      const balance = (balances.get(stream) ?? 0) + change;
      this.expect(balance >= 0, `${stream} fell below zero`);
      balances.set(stream, balance);
    }
    const followedShops = this.shops.filter(({ hasMerged }) => !hasMerged);
    for (const card of followedShops.flatMap((shop) => shop.of('customer_cards'))) {
      const sum = balances.get(`customer_card-${card.id}`);
      this.expect(
        sum === card.body['stamps_count'],
        `customer card ${card.id} is not the sum of its events`,
      );
    }
  }

  private collect(shop: Shop, { body, headers }: ApiResponse): void {
    const cursor = /[?&]cursor=([^&>]+)/.exec(headers.get('link') ?? '')?.[1];
    if (cursor !== undefined) shop.cursors.push(decodeURIComponent(cursor));
    for (const event of Array.isArray(body) ? (body as Json[]) : []) {
      if (typeof event['id'] === 'string' && shop.events.length < 20) shop.events.push(event['id']);
    }
  }

  private expectNamed(
    { timeZone }: Shop,
    kind: string,
    sent: Json,
    body: Json,
    isNew: boolean,
  ): void {
    const inner = sent[WRAPPERS[kind] ?? ''];
    const fields = typeof inner === 'object' && inner !== null ? (inner as Json) : sent;
    for (const [name, value] of Object.entries(fields)) {
      if (!Object.hasOwn(body, name) || IMMUTABLE.has(name)) continue;
      if (name === 'card_id' && !isNew) continue;
      const isThere = isShown(name, value, body[name], isNew, timeZone);
      this.expect(
        isThere,
        `${name} was sent as ${JSON.stringify(value)} and is ${JSON.stringify(body[name])}`,
      );
    }
  }

  private callerOf(
    shop: Shop,
    { token }: Step,
  ): { client: ContractClient; marker: string } | undefined {
    const otherStore = this.shops[0] === shop ? this.shops[1] : this.shops[0];
    switch (token) {
      case 'own':
        return undefined;
      case 'other':
        return otherStore;
      case 'none':
        return { client: shop.client.as(null), marker: '' };
      case 'wrong':
        return { client: shop.client.as('ink_nonsense'), marker: '' };
    }
  }

  private requestOf(shop: Shop, step: Step, history: StoredEvent[]): Request {
    const otherStore = this.shops[0] === shop ? this.shops[1] : this.shops[0];
    const around: SendContext = {
      marker: shop.marker,
      now: Date.now(),
      find: (kind, nth, foreign) => {
        const { cursors, events, records } = foreign ? otherStore : shop;
        if (kind === 'targets') return this.target;
        if (kind === 'cursors') return cursors[nth % cursors.length] ?? 'none';
        if (kind === 'events') return events[nth % events.length] ?? 'none';
        if (kind === 'codes') return codeOf(records.get('customer_cards') ?? [], nth);
        const knownRecords = records.get(kind) ?? [];
        return knownRecords[nth % knownRecords.length]?.id ?? NOBODY;
      },
    };
    const ids = this.idsOf(step.foreign ? otherStore : shop, step);
    const own = history.filter(({ stream }) => stream === `customer_card-${ids['id']}`);
    // The newest first, because the first event of a card cannot be reversed.
    const event = own.at(-1 - (step.nth % Math.max(1, own.length)));
    const all: Record<string, number | string> = {
      ...ids,
      ...(event && { event_id: toPublicEventId(event.id) }),
    };
    const path = step.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      String(
        step.odd[name] ?? (name === 'account_id' ? shop.client.accountId : (all[name] ?? NOBODY)),
      ),
    );
    // In /accounts/{id} the id is that of the store itself.
    const isStore = step.path.startsWith('/api/v1/accounts/{id}');
    const query = step.query
      .map(([name, value]) => `${encoded(name)}=${encoded(plainText(value, around), value)}`)
      .join('&');
    const headers = { ...step.headers };
    if (step.method !== 'GET' && step.key !== 'none') {
      headers['idempotency-key'] =
        step.key === 'fresh' ? `fresh ${this.requests}` : step.key.shared;
    }
    let body: unknown;
    const file = step.body.kind === 'file' ? renderFile(step.body.file, around) : undefined;
    if (file) {
      body = file.bytes;
      headers['content-type'] = file.type;
    } else if (step.body.kind === 'bytes') {
      body = step.body.bytes;
      headers['content-type'] = step.body.type ?? '';
    } else if (step.body.kind === 'json') {
      const text = jsonText(step.body.value, around);
      body = step.body.chunked ? new Chunked(text) : text;
    }
    return {
      method: step.method,
      path:
        (isStore ? path.replace(String(NOBODY), String(shop.client.accountId)) : path) +
        (query && `?${query}`),
      body,
      headers,
      ...(file && { file }),
    };
  }

  /** The ids of one record and of the records that it belongs to. */
  private idsOf(shop: Shop, { path, nth }: Step): Record<string, number | string> {
    const pick = (kind: string) => {
      const liveRecords = shop.of(kind);
      return liveRecords[nth % liveRecords.length];
    };
    const record = pick(kindOf(path));
    const customer = /customers\/(\d+)\/customer_cards/.exec(record?.path ?? '')?.[1];
    return {
      id: record?.id ?? NOBODY,
      customer_id: Number(customer ?? pick('customers')?.id ?? NOBODY),
      subscription_id: pick('webhook_subscriptions')?.id ?? NOBODY,
      code: codeOf(shop.of('customer_cards'), nth),
    };
  }

  private async send(
    { client, marker }: { client: ContractClient; marker: string },
    { method, path, body, headers }: Request,
    token: Step['token'] = 'own',
  ): Promise<ApiResponse> {
    const responseText = textOf(body);
    const line = `${method} ${path.slice(0, 300)} ${responseText.slice(0, 1_500)} ${JSON.stringify(headers)}${token === 'own' ? '' : ` as ${token}`}`;
    this.trail.push(line);
    const response = await client.send(
      method,
      path,
      body instanceof Chunked ? body.stream() : body,
      {
        'x-request-id': `fuzz-${this.shops[0].number}-${this.requests++}`,
        ...headers,
        ...(body instanceof Chunked && { 'content-type': 'application/json' }),
      },
    );
    const { status } = response;
    this.trail[this.trail.length - 1] = `${status} ${line}`;
    this.expect(
      status < 500 && status !== 408,
      `responded with ${status}: ${response.text.slice(0, 300)}`,
    );
    const isWrite = !['GET', 'HEAD', 'OPTIONS'].includes(method);
    const isDone =
      isWrite &&
      status < 300 &&
      !response.headers.has('x-dry-run') &&
      !response.headers.has('idempotent-replayed');
    this.allowed.set(response.headers.get('x-request-id') ?? '', isDone ? client.accountId : null);
    const received = `${response.text} ${[...response.headers.values()].join(' ')}`;
    const foreign = received.match(/mk\d{6}zz/g)?.find((candidate) => candidate !== marker);
    this.expect(foreign === undefined, `what belongs to another store was shown: ${foreign}`);
    return response;
  }

  private expect(holds: boolean, message: string): void {
    if (!holds) throw new Error(`${message}\n  at ${this.trail.at(-1)}`);
  }
}

/** Sent in chunks, without a Content-Length. */
class Chunked {
  constructor(readonly text: string) {}

  stream(): ReadableStream<Uint8Array> {
    const bytes = new TextEncoder().encode(this.text);
    const half = Math.floor(bytes.length / 2);
    return new ReadableStream({
      start(controller) {
        for (const part of [bytes.subarray(0, half), bytes.subarray(half)]) {
          if (part.length > 0) controller.enqueue(part);
        }
        controller.close();
      },
    });
  }
}

/** Fields in responses that the service alone sets. */
const IMMUTABLE = new Set([
  'id',
  'account_id',
  'created_at',
  'updated_at',
  'constructor',
  'toString',
  '__proto__',
]);

function textOf(body: unknown): string {
  if (body instanceof Chunked) return body.text;
  if (body instanceof Uint8Array) return new TextDecoder().decode(body);
  if (typeof body === 'string') return body;
  return body === undefined ? '' : JSON.stringify(body);
}

/** A request's body, as the service parses it. */
function parsed(body: unknown): Json {
  const text = textOf(body);
  const value: unknown = text.trim() === '' ? {} : JSON.parse(text);
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || String(value).trim() === '';
}

/** The kind of the record that a path names, or of the records that it lists. */
function kindOf(path: string): string {
  const named = [...path.matchAll(/\/([a-z_]+)(?=\/\{id\}|\/?$)/g)].map(([, kind = '']) => kind);
  return named[0] ?? '';
}

function encoded(text: string, contentType?: unknown): string {
  const isLiteral =
    typeof contentType === 'object' && contentType !== null && 'text' in contentType;
  return isLiteral ? text : encodeURIComponent(text.toWellFormed());
}
