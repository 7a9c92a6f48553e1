import { Injectable } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import type { DomainEvent } from '#platform/kernel/aggregate.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import { awaitQuery, query } from '#platform/database/connection.js';
import { ReportDatabase } from '#platform/database/report-database.service.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { PastStates, type PointInTime } from '#platform/event-store/log/past-states.service.js';
import { toStreamName, type ReadModel } from '#platform/event-store/read-models/read-models.js';
import type { PageRange } from '#platform/http/page.js';
import { toCustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import type { CustomerCard, ShownTemplate } from '#loyalty/stamping/customer-card.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { toCustomerJson } from '#loyalty/customers/customer.dto.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import type { Customer } from '#loyalty/customers/customer.js';
import { toHistoryEntryJson, type DetailedEntry } from '#loyalty/history/history-entry.dto.js';
import { NO_FILTER, toCursorKey } from '#loyalty/history/history-query.js';
import { HistoryService, type DatabaseChoice } from '#loyalty/history/history.service.js';
import { toListedRedemptionJson } from '#loyalty/history/redemption.dto.js';
import { NO_REDEMPTION_FILTER, toRedemptionKey } from '#loyalty/history/redemption-query.js';
import { RedemptionsService } from '#loyalty/history/redemptions.service.js';
import type { ExportKind } from './export-file.js';

const PAGE_SIZE = 250;
const READABLE_WITHIN_MS = 2_000;

/** Narrows what has a time. @property to exclusive */
export type ExportRange = { from: Date | null; to: Date | null };

const CUSTOMERS = {
  name: 'exports_customers',
  // One statement, so that a merge is seen in all of its records or in none.
  text: `select c.id, c.revision, c.state, coalesce((
           select jsonb_agg(jsonb_build_object('id', k.id, 'revision', k.revision, 'state', k.state))
           from customer_cards k where k.customer_id = c.id), '[]') as cards
         from customers c where c.account_id = $1 and c.id > $2 order by c.id limit $3`,
};

const CUSTOMER_CARDS = {
  name: 'exports_customer_cards',
  text: `select id, revision, state from customer_cards
         where account_id = $1 and id > $2 order by id limit $3`,
};

type Row<S> = { id: number; revision: number; state: S };
type CustomerRow = Row<Customer> & { cards: Row<CustomerCard>[] };

/** Leaves consents blank that wait for a link: an import that reads the file back changes nothing, and records none. */
function blankUnconfirmed({ unconfirmedConsents }: Customer): object {
  return {
    ...(unconfirmedConsents.includes('marketing') && { marketing_consent: null }),
    ...(unconfirmedConsents.includes('sms') && { sms_consent: null }),
  };
}

/** Reads a page of records, in an order that never changes. */
type ReadPage = (after: object | null) => Promise<{ records: object[]; last: object | null }>;

/**
 * Reads all records of a store as they were at one moment, page by page. No transaction lasts longer than a page, so a
 * client that reads slowly holds back nobody: the moment is a position of the log. A record that has changed since is
 * projected from its events up to there (ADR-0034).
 */
@Injectable()
export class ExportedRecords {
  constructor(
    private readonly reports: ReportDatabase,
    private readonly eventStore: EventStore,
    private readonly pastStates: PastStates,
    private readonly customerCards: CustomerCardsService,
    private readonly templates: TemplatesService,
    private readonly history: HistoryService,
    private readonly redemptions: RedemptionsService,
  ) {}

  /**
   * Finds the moment of an export.
   * @returns what reads its pages one after another
   * @throws UnavailableError
   */
  async open(kind: ExportKind, accountId: number, range: ExportRange): Promise<ReadPage> {
    switch (kind) {
      case 'customers':
        return this.openCustomers(accountId);
      case 'customer_cards':
        return this.openCustomerCards(accountId);
      case 'history': {
        const find = await this.history.list(
          accountId,
          { ...NO_FILTER, ...range },
          null,
          this.readReplica,
        );
        return readEntries(find, toHistoryEntryJson, toCursorKey);
      }
      case 'redemptions': {
        const filter = { ...NO_REDEMPTION_FILTER, ...range };
        const find = await this.redemptions.list(accountId, filter, null, this.readReplica);
        return readEntries(find, toListedRedemptionJson, toRedemptionKey);
      }
    }
  }

  private readonly readReplica: DatabaseChoice = (work) => this.reports.read(work);

  private async openCustomers(accountId: number): Promise<ReadPage> {
    const moment = await this.findMoment();
    return (after) =>
      readRows(after, async (lastId) => {
        const values = [accountId, lastId, PAGE_SIZE];
        const rows = await this.reports.read((pool) =>
          query<CustomerRow>(pool, { ...CUSTOMERS, values }),
        );
        const { states, changed } = await this.findStates(customerReadModel, rows, moment);
        const stamps = await this.countStamps(rows, changed, moment);
        const records = states
          .filter(({ mergedInto }) => !mergedInto)
          .map((customer) => ({
            ...toCustomerJson(customer, []),
            ...blankUnconfirmed(customer),
            stamp_count: stamps.get(customer.id) ?? 0,
          }));
        return { rows, records };
      });
  }

  private async openCustomerCards(accountId: number): Promise<ReadPage> {
    const moment = await this.findMoment();
    const templates = new Map<number, ShownTemplate>();
    return (after) =>
      readRows(after, async (lastId) => {
        const values = [accountId, lastId, PAGE_SIZE];
        const rows = await this.reports.read((pool) =>
          query<Row<CustomerCard>>(pool, { ...CUSTOMER_CARDS, values }),
        );
        const { states } = await this.findStates(customerCardReadModel, rows, moment);
        const cards = states.filter(({ mergedInto }) => !mergedInto);
        const missing = new Set(
          cards.map(({ cardId }) => cardId).filter((id) => !templates.has(id)),
        );
        if (missing.size > 0) {
          const loaded = await this.templates.findPast([...missing], moment);
          for (const [id, template] of loaded) templates.set(id, template);
        }
        const ids = cards.map(({ id }) => id);
        const installed = await this.customerCards.findInstalled(ids, moment.time);
        const records = cards.map((card) => {
          const template = templates.get(card.cardId);
          if (!template)
            throw new Error(`card ${card.cardId} had customer cards before it existed`);
          const isInstalled = installed.has(card.id);
          return toCustomerCardDetailJson(
            card,
            this.customerCards.createRenderContext(template, moment.time, isInstalled),
          );
        });
        return { rows, records };
      });
  }

  /** Finds a position of the log that has everything acknowledged so far, and below which nothing is added any more. */
  private async findMoment(): Promise<PointInTime> {
    const position = await awaitQuery(this.eventStore.head());
    if (!(await awaitQuery(this.eventStore.reaches(position, READABLE_WITHIN_MS)))) {
      throw new UnavailableError('A transaction is still open in the database');
    }
    return { time: getNow(), position };
  }

  /**
   * Finds the states at a moment. Leaves out records that did not exist yet.
   * @returns `changed` are the ids of those that have changed since
   */
  private async findStates<S extends { id: number; accountId: number }, E extends DomainEvent>(
    readModel: ReadModel<S, E>,
    rows: Row<S>[],
    moment: PointInTime,
  ): Promise<{ states: S[]; changed: Set<number> }> {
    const streams = rows.map(({ id }) => toStreamName(readModel, id));
    const revisions = await awaitQuery(this.eventStore.findRevisions(streams, moment.position));
    const isChanged = ({ revision }: Row<S>, i: number) =>
      revisions.get(streams[i] ?? '') !== revision;
    const changed = new Set(rows.filter(isChanged).map(({ id }) => id));
    const past = await this.pastStates.projectAll(readModel, [...changed], moment);
    const pastById = new Map(past.map((state) => [state.id, state]));
    const states = rows.flatMap(({ id, state }) => {
      const exportedState = changed.has(id) ? pastById.get(id) : state;
      return exportedState ? [exportedState] : [];
    });
    return { states, changed: new Set(pastById.keys()) };
  }

  /**
   * Counts the stamps of each customer at a moment.
   * @param changedCustomers whose cards may be in the hands of others now: whoever is merged or unmerged has changed
   */
  private async countStamps(
    rows: CustomerRow[],
    changedCustomers: Set<number>,
    moment: PointInTime,
  ): Promise<Map<number, number>> {
    const unchanged = rows.filter(({ id }) => !changedCustomers.has(id));
    const stamps = new Map(unchanged.map(({ id }) => [id, 0]));
    const cards = unchanged.flatMap((row) => row.cards);
    const { states } = await this.findStates(customerCardReadModel, cards, moment);
    for (const { customerId, stampsCount, mergedInto } of states) {
      const count = stamps.get(customerId);
      if (count !== undefined && !mergedInto) stamps.set(customerId, count + stampsCount);
    }
    for (const id of changedCustomers) {
      const own = await this.customerCards.listPastAt(id, moment);
      stamps.set(
        id,
        own.reduce((total, card) => total + card.stamps_count, 0),
      );
    }
    return stamps;
  }
}

type PagePart = { rows: { id: number }[]; records: object[] };

async function readRows(
  after: object | null,
  read: (lastId: number) => Promise<PagePart>,
): ReturnType<ReadPage> {
  const { rows, records } = await read((after as { id: number } | null)?.id ?? 0);
  const last = rows.at(-1);
  return { records, last: rows.length === PAGE_SIZE && last ? { id: last.id } : null };
}

function readEntries(
  find: (range: PageRange) => Promise<DetailedEntry[]>,
  toJson: (entry: DetailedEntry) => object,
  toKey: (entry: DetailedEntry['entry']) => PageRange['after'] & object,
): ReadPage {
  return async (after) => {
    const range = { after: after as PageRange['after'], limit: PAGE_SIZE };
    const entries = await find(range);
    const last = entries.at(-1);
    return {
      records: entries.map(toJson),
      last: entries.length === PAGE_SIZE && last ? toKey(last.entry) : null,
    };
  };
}
