import { isDeepStrictEqual } from 'node:util';
import { normalizeIdentifier } from '#platform/kernel/text.js';
import { eventually } from '../jest/eventually.js';
import type { ApiResponse } from '../services/service.js';
import type { SentFile, SentRow } from './import-files.js';
import {
  isShown,
  own,
  type Json,
  type KnownImport,
  type KnownRecord,
  type RowEffect,
  type Shop,
} from './shop.js';

/** How the model asks the store, and reports a broken rule. */
export type ImportChecks = {
  read: (shop: Shop, path: string) => Promise<Json>;
  upload: (shop: Shop, path: string, file: SentFile) => Promise<ApiResponse>;
  expect: (holds: boolean, message: string) => void;
};

/** Fields of a customer that a row can change, and that are shown as they were sent. */
const TEXTS = ['first_name', 'last_name', 'email', 'phone'] as const;
const CONSENTS = ['marketing_consent', 'sms_consent'] as const;
const PERSONAL = [...TEXTS, 'birthday', ...CONSENTS] as const;
/** What can become of a row. */
const ENDS = ['created', 'updated', 'unchanged', 'failed', 'undone', 'refused'];
const YES = new Set(['ja', 'x', '1', 'vrai', 'yes', 'sí', 'true']);

/** Imports, as a store must follow them: each row does once what it says, or nothing, and an undo takes it back. */
export class ImportModel {
  private readonly counts = { done: 0, started: 0, 'done again': 0, 'taken back': 0 };
  /** By status. */
  private readonly rowCounts = new Map(ENDS.map((status) => [status, 0]));

  constructor(private readonly checks: ImportChecks) {}

  /** Lists how often what has happened, so that a run shows whether it has tested anything. */
  listCounts(): [string, number][] {
    const rows = [...this.rowCounts].map(([end, count]): [string, number] => [
      `rows ${end}`,
      count,
    ]);
    return [...Object.entries(this.counts), ...rows];
  }

  /** Waits for the end of an import that was just accepted, and checks what it did. */
  async followUpload(
    shop: Shop,
    path: string,
    file: SentFile | null,
    body: Json,
  ): Promise<KnownRecord> {
    const id = Number(body['id']);
    const record = { id, path: `${shop.client.store}/imports/${id}`, body, deleted: false };
    shop.of('imports').push(record);
    shop.imports.set(id, { file, effects: new Map() });
    if (file?.rows) {
      this.expect(body['rows_total'] === file.rows.size, 'a file has another number of rows');
      this.expect(body['format'] === file.format, 'a file was taken for another format');
      this.expect(body['encoding'] === file.encoding, 'a file was read in another encoding');
    }
    await this.waitForEnd(shop, record);
    const { state, dry_run: isDryRun } = record.body;
    this.expect(state === (isDryRun ? 'ready' : 'done'), `an import ended in the state ${state}`);
    if (isDryRun) {
      await this.checkReady(shop, record);
      return record;
    }
    await this.followRows(shop, record);
    if (file?.again) await this.importAgain(shop, path, file, record.body);
    return record;
  }

  async followStart(shop: Shop, record: KnownRecord): Promise<void> {
    const { body } = record;
    await this.waitForEnd(shop, record);
    if (body['state'] !== 'ready') return this.expectSame(record.body, body, 'started twice');
    this.expect(record.body['state'] === 'done', 'an import was started and is not done');
    this.counts.started++;
    await this.followRows(shop, record);
  }

  async followDiscard(shop: Shop, record: KnownRecord): Promise<void> {
    const { body } = record;
    await this.waitForEnd(shop, record);
    if (body['state'] === 'failed') return this.expectSame(record.body, body, 'discarded twice');
    this.expect(body['state'] === 'ready', 'an import was discarded that did not wait for a start');
    this.expect(record.body['state'] === 'failed', 'an import is not discarded');
    this.expect((await this.listRows(shop, record)).length === 0, 'a discarded import has rows');
  }

  async followUndo(shop: Shop, record: KnownRecord): Promise<void> {
    const { body } = record;
    await this.waitForEnd(shop, record);
    if (body['state'] === 'undone') return this.expectSame(record.body, body, 'undone twice');
    this.expect(record.body['state'] === 'undone', 'an import is not undone');
    this.counts['taken back']++;
    const { created, updated, undone, refused } = record.body as Record<string, number>;
    this.expect(
      created === body['created'] && updated === body['updated'],
      'an undo changed what an import has done',
    );
    this.expect(
      Number(undone) + Number(refused) === Number(created) + Number(updated),
      'an undo has left rows',
    );
    const rows = await this.listRows(shop, record);
    this.count(rows);
    if (shop.hasMerged) return;
    for (const [row, effect] of this.get(shop, record).effects) {
      const undone = rows.find((candidate) => candidate['row'] === row) ?? {};
      await this.followUndoneRow(shop, undone, effect);
    }
  }

  /** Checks that the imports are there as they were last shown, newest first. */
  async takeStock(shop: Shop): Promise<void> {
    const listed = (await this.checks.read(shop, `${shop.client.store}/imports`)) as unknown;
    const records = shop.of('imports').map(({ body }) => body);
    this.expect(isDeepStrictEqual(listed, records.toReversed()), 'an import changed unasked');
  }

  /** The same file again changes nothing. */
  private async importAgain(shop: Shop, path: string, file: SentFile, first: Json): Promise<void> {
    const { status, text, body } = await this.checks.upload(shop, path, file);
    // Others may wait for a start.
    if (status === 422 && text.includes('limit_reached')) return;
    this.expect(status === 202, 'a file was accepted once, and then refused');
    const { body: again } = await this.followUpload(
      shop,
      path,
      { ...file, again: false },
      body as Json,
    );
    const { created, updated, unchanged, failed } = again as Record<string, number>;
    this.expect(created === 0 && updated === 0, 'the same file changed something');
    this.expect(
      failed === first['failed'] && unchanged === Number(first['rows_total']) - Number(failed),
      'the same file had other errors',
    );
    this.counts['done again']++;
  }

  private async checkReady(shop: Shop, record: KnownRecord): Promise<void> {
    const { created, updated, unchanged, failed, rows_total: total } = record.body;
    const sum = Number(created) + Number(updated) + Number(failed);
    this.expect(unchanged === 0 && sum === total, 'a check counts other rows than the file has');
    const rows = await this.listRows(shop, record);
    const failures = rows.filter(({ status }) => status === 'failed').length;
    const pending = rows.filter(({ status }) => status === 'pending').length;
    this.expect(
      failures === failed && failures + pending === total,
      'a check shows other rows than it counts',
    );
  }

  /** Checks the rows of an import that is done against the customers. */
  private async followRows(shop: Shop, record: KnownRecord): Promise<void> {
    const rows = await this.listRows(shop, record);
    this.counts.done++;
    this.count(rows);
    for (const status of ['created', 'updated', 'unchanged', 'failed']) {
      const count = rows.filter((row) => row['status'] === status).length;
      this.expect(count === record.body[status], `an import has another number of rows ${status}`);
    }
    const knownImport = this.get(shop, record);
    const sent = knownImport.file?.rows ?? null;
    const numbers = rows.map(({ row }) => row);
    this.expect(
      sent === null || isDeepStrictEqual(numbers, [...sent.keys()]),
      'the rows of an import are not those of the file',
    );
    if (shop.hasMerged) return;
    for (const row of rows) {
      if (row['status'] === 'failed') continue;
      const number = Number(row['row']);
      const effect = await this.followRow(shop, record, row, sent?.get(number) ?? null);
      if (row['status'] !== 'unchanged') knownImport.effects.set(number, effect);
    }
  }

  private async followRow(
    shop: Shop,
    { body: { card_id: cardId, date_order: dateOrder } }: KnownRecord,
    { status, customer_id: customerId, customer_card_id: customerCardId }: Json,
    sent: SentRow | null,
  ): Promise<RowEffect> {
    const id = Number(customerId);
    const existing = shop.of('customers').find((record) => record.id === id);
    this.expect((status === 'created') === !existing, `a row is ${status} that is not`);
    const customer = existing ?? {
      id,
      path: `${shop.client.store}/customers/${id}`,
      body: {},
      deleted: false,
    };
    const before = existing ? customer.body : null;
    customer.body = await this.checks.read(shop, customer.path);
    if (!existing) shop.of('customers').push(customer);
    const cards = await this.readCards(shop, customer);
    const card = cards.find(({ record }) => record.id === customerCardId);
    this.expect((card === undefined) === (cardId === null), 'a row names no card, or a wrong one');
    const stamps = sent?.get('stamps');
    for (const issuedCard of cards) {
      const isOfRow = issuedCard === card && stamps !== undefined;
      const importedStamps = shop.importedStamps.get(issuedCard.record.id) ?? 0;
      const change = isOfRow ? Number(stamps) - importedStamps : 0;
      if (sent || issuedCard !== card) {
        this.expect(
          issuedCard.stamps === issuedCard.former + change,
          `a card has ${issuedCard.stamps} stamps after an import of ${stamps} instead of ${issuedCard.former + change}`,
        );
      }
      shop.importedStamps.set(
        issuedCard.record.id,
        importedStamps + issuedCard.stamps - issuedCard.former,
      );
    }
    if (sent) this.expectNamed(customer.body, before, sent, String(dateOrder));
    const isSame =
      before !== null &&
      isDeepStrictEqual(own(customer.body), own(before)) &&
      cards.every((issuedCard) => !issuedCard.isNew && issuedCard.stamps === issuedCard.former);
    this.expect((status === 'unchanged') === isSame, `a row is ${status} that is not`);
    return {
      customer,
      before,
      after: snapshot(shop, customer),
      card: card ? { record: card.record, change: card.stamps - card.former } : null,
    };
  }

  /** Reads the cards of a customer; `former` is the balance before, or with which a new card begins. */
  private async readCards(
    shop: Shop,
    { path, body }: KnownRecord,
  ): Promise<{ record: KnownRecord; former: number; stamps: number; isNew: boolean }[]> {
    const cards = [];
    for (const { id } of body['customer_cards'] as { id: number }[]) {
      const existing = shop.of('customer_cards').find((record) => record.id === id);
      const cardPath = `${path}/customer_cards/${id}`;
      const record = existing ?? { id, path: cardPath, body: {}, deleted: false };
      const formerStamps = record.body['stamps_count'];
      record.body = await this.checks.read(shop, cardPath);
      const template = shop
        .of('cards')
        .find((candidate) => candidate.id === record.body['card_id']);
      const former = Number(existing ? formerStamps : template?.body['initial_stamps']);
      cards.push({
        record,
        former,
        stamps: Number(record.body['stamps_count']),
        isNew: !existing,
      });
      if (!existing) shop.of('customer_cards').push(record);
    }
    return cards;
  }

  /** Checks that a customer has what the row says, and that blank cells changed nothing. */
  private expectNamed(body: Json, before: Json | null, sent: SentRow, dateOrder: string): void {
    for (const field of PERSONAL) {
      const text = sent.get(field);
      const former = before
        ? before[field]
        : CONSENTS.some((consent) => consent === field)
          ? false
          : null;
      const isAsSent =
        text === undefined
          ? body[field] === former
          : isShownFor(field, text, body[field], former, dateOrder);
      this.expect(
        isAsSent,
        `${field} was imported as ${JSON.stringify(text)} and is ${JSON.stringify(body[field])}`,
      );
    }
    const externalId = sent.get('external_id');
    if (externalId === undefined) return;
    const source = (sent.get('external_source') ?? 'import').toLowerCase();
    const references = body['external_references'] as Json[];
    this.expect(
      references.some(
        (reference) =>
          reference['source'] === source &&
          reference['external_id'] === normalizeIdentifier(externalId),
      ),
      `the external id ${externalId} of ${source} was not imported`,
    );
  }

  private async followUndoneRow(shop: Shop, row: Json, effect: RowEffect): Promise<void> {
    const { customer, before, card } = effect;
    const { status } = row;
    const wasErased = customer.body['erased_at'] !== null;
    const wasUsed = !wasErased && !isDeepStrictEqual(snapshot(shop, customer), effect.after);
    const former = customer.body;
    const formerStamps = Number(card?.record.body['stamps_count']);
    customer.body = await this.checks.read(shop, customer.path);
    if (card) card.record.body = await this.checks.read(shop, card.record.path);
    const change = card ? Number(card.record.body['stamps_count']) - formerStamps : 0;
    if (status === 'refused' || wasErased) {
      this.expect(wasErased || row['errors'] !== null, 'a row is refused without a reason');
      this.expectSame(own(customer.body), own(former), 'a row that was not undone');
      this.expect(change === 0, 'a row that was not undone has changed a card');
      return;
    }
    this.expect(status === 'undone', `a row is ${status} after an undo`);
    const isCorrected = card !== null && shop.corrected.has(card.record.id);
    this.expect(
      change === -(card?.change ?? 0) || (isCorrected && change === 0),
      'an undo took other stamps back than the import had added',
    );
    if (card) {
      const { id } = card.record;
      shop.importedStamps.set(id, (shop.importedStamps.get(id) ?? 0) + change);
    }
    if (before === null) {
      this.expect(!wasUsed, 'a customer was erased who was used since the import');
      const { first_name: name, email, erased_at: at } = customer.body;
      this.expect(
        name === 'Erased' && email === null && typeof at === 'string',
        'an undo shows the person still',
      );
      return;
    }
    for (const field of PERSONAL) {
      const wasChanged = effect.after[field] !== before[field];
      const expected = wasChanged ? before[field] : former[field];
      this.expect(customer.body[field] === expected, `an undo did not restore ${field}`);
    }
  }

  private async waitForEnd(shop: Shop, record: KnownRecord): Promise<void> {
    await eventually(
      () => shop.client.get<Json>(record.path),
      ({ body }) => body['state'] !== 'checking' && body['state'] !== 'running',
    );
    record.body = await this.checks.read(shop, record.path);
    const { rows_done: done, rows_total: total } = record.body;
    this.expect(done === total, 'an import came to its end before its rows');
  }

  private async listRows(shop: Shop, { path }: KnownRecord): Promise<Json[]> {
    return (await this.checks.read(shop, `${path}/rows`)) as unknown as Json[];
  }

  private count(rows: Json[]): void {
    for (const { status } of rows) {
      const end = String(status);
      this.rowCounts.set(end, (this.rowCounts.get(end) ?? 0) + 1);
    }
  }

  private get(shop: Shop, { id }: KnownRecord): KnownImport {
    const knownImport = shop.imports.get(id);
    if (!knownImport) throw new Error(`import ${id} was never created`);
    return knownImport;
  }

  private expectSame(now: Json, before: Json, what: string): void {
    this.expect(isDeepStrictEqual(now, before), `${what} has changed something`);
  }

  private expect(holds: boolean, message: string): void {
    this.checks.expect(holds, message);
  }
}

function isShownFor(
  field: (typeof PERSONAL)[number],
  text: string,
  value: unknown,
  former: unknown,
  dateOrder: string,
): boolean {
  switch (field) {
    case 'birthday':
      return value === toIsoDate(text, dateOrder);
    case 'marketing_consent':
    case 'sms_consent':
      // One that was withdrawn is not given again.
      return value === YES.has(text) || (value === false && former === false);
    case 'email':
      return String(value).toLowerCase() === text.toLowerCase();
    default:
      return isShown(field, text, value, false, 'UTC');
  }
}

function toIsoDate(text: string, order: string): string {
  const [first = '', second = '', third = ''] = text.split(/[-./]/).map((n) => n.padStart(2, '0'));
  if (text.includes('-')) return `${first}-${second}-${third}`;
  return order === 'mdy' && text.includes('/')
    ? `${third}-${first}-${second}`
    : `${third}-${second}-${first}`;
}

/** What is known of a customer and their cards, to see later whether something has happened to them. */
function snapshot(shop: Shop, { path, body }: KnownRecord): Json {
  const cards = shop.of('customer_cards').filter((card) => card.path.startsWith(`${path}/`));
  return { ...own(body), cards: cards.map((card) => [card.id, own(card.body)]) };
}
