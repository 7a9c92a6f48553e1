import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { renderAccountVersion } from '#platform/database/account-version.js';
import { query } from '#platform/database/connection.js';
import { PastStates, type PointInTime } from '#platform/event-store/log/past-states.service.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { PastCounts } from '#platform/event-store/log/past-counts.service.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import type { PageRange } from '#platform/http/page.js';
import { createCustomerErasedError } from './customer-subjects.js';
import { normalizeCardCode } from './card-code.js';
import { createCustomerMergedError, isHeldBy, type CardPath } from './card-holder.js';
import type { CustomerCard, ShownTemplate } from './customer-card.js';
import { customerCardReadModel, getExtraValues, PASS_INSTALLED } from './customer-card.entity.js';
import {
  toCustomerCardDetailJson,
  toCustomerCardJson,
  type CustomerCardDetailJson,
  type CustomerCardJson,
  type RenderContext,
} from './customer-card.dto.js';
import { MEASURE_PERSON, type PersonSize } from './person-size.js';
import { TemplatesService } from './templates.service.js';

/** Finds the cards of codes, and those that decoy cards lead to (ADR-0051). */
const OF_CODES = {
  name: 'customer_cards_of_codes',
  text: `
    select code, id, customer_id as "customerId", null as decoy
    from customer_cards where account_id = $1 and code = any ($2)
    union all
    select code, customer_card_id, customer_id,
      case when confirmed then 'confirmed' else 'unconfirmed' end
    from decoy_owners where account_id = $1 and code = any ($2)
    order by decoy nulls last`,
};

/** The card of a code. @property decoy null: the code is the card's own, and not that of a decoy card */
export type CodeMatch = CardPath & { decoy: 'unconfirmed' | 'confirmed' | null };

/** Matches everything that may be a code. */
const CODE = /^[0-9A-Z]{8}$/;

/** @property store_version of the store as the row was read, which its template depends on */
type CustomerCardRow = { state: CustomerCard; pass_installed: boolean; store_version: number };

const COLUMNS = `state, ${PASS_INSTALLED} as pass_installed, ${renderAccountVersion('r.account_id')} as store_version`;

@Injectable()
export class CustomerCardsService {
  constructor(
    private readonly pool: Pool,
    private readonly readModels: ReadModels,
    private readonly templates: TemplatesService,
    private readonly config: Config,
    private readonly pastStates: PastStates,
    private readonly pastCounts: PastCounts,
  ) {}

  async list(customerId: number, { after, limit }: PageRange): Promise<CustomerCardJson[]> {
    const rows = await query<CustomerCardRow>(this.pool, {
      name: 'customer_cards_of_customer',
      text: `select ${COLUMNS} from customer_cards r
             where customer_id = $1 and merged_into is null and id > $2 order by id limit $3`,
      values: [customerId, after?.[0] ?? 0, limit],
    });
    return this.toJson(rows);
  }

  /** Lists the cards of each customer, by id. The statement is planned once, like that of the templates. */
  async listByCustomer(customerIds: number[]): Promise<Map<number, CustomerCardJson[]>> {
    if (customerIds.length === 0) return new Map();
    const rows = await query<CustomerCardRow>(this.pool, {
      name: 'customer_cards_of_customers',
      text: `select ${COLUMNS} from customer_cards r
             where customer_id = any (array(select unnest($1::bigint[]))) and merged_into is null
             order by customer_id, id`,
      values: [customerIds],
    });
    const cards = new Map<number, CustomerCardJson[]>(customerIds.map((id) => [id, []]));
    for (const [i, card] of (await this.toJson(rows)).entries()) {
      const row = rows[i];
      if (row) cards.get(row.state.customerId)?.push(card);
    }
    return cards;
  }

  /**
   * Finds a card, or the surviving one if it was merged. A client reads it before every stamp, which then finds
   * it in memory.
   * @throws NotFoundError
   */
  async get(accountId: number, path: CardPath): Promise<CustomerCardDetailJson> {
    for (let { customerId, id } = path; ;) {
      const loaded = await this.readModels.load(customerCardReadModel, id);
      if (loaded?.state.accountId !== accountId || !isHeldBy(loaded.state, customerId)) {
        throw new NotFoundError('Customer card');
      }
      const { state: card } = loaded;
      if (card.mergedInto) {
        ({ customerId, id } = card.mergedInto);
        continue;
      }
      const { storeVersion, passInstalled } = getExtraValues(loaded);
      const template = await this.templates.getAtVersion(card.cardId, storeVersion);
      return toCustomerCardDetailJson(
        card,
        this.createRenderContext(template, getNow(), passInstalled),
      );
    }
  }

  /**
   * Finds the path of the card with a code. A merged customer's card leads to the surviving one, like its ids, and a
   * decoy card leads to the card of its customer.
   * @throws NotFoundError
   */
  async getPathByCode(accountId: number, code: string): Promise<CodeMatch> {
    const match = (await this.findPathsByCode(accountId, [code])).get(code);
    if (!match) throw new NotFoundError('Customer card');
    return match;
  }

  /** Finds the paths of the cards with codes, in one statement. @returns those that exist, by the code as it was sent */
  async findPathsByCode(accountId: number, inputs: string[]): Promise<Map<string, CodeMatch>> {
    const codes = new Map(inputs.map((input) => [input, normalizeCardCode(input)]));
    const valid = [...new Set(codes.values())].filter((code) => CODE.test(code));
    if (valid.length === 0) return new Map();
    const values = [accountId, valid];
    const rows = await query<CodeMatch & { code: string }>(this.pool, { ...OF_CODES, values });
    // The last row counts, which is that of the card's own code.
    const matches = new Map(
      rows.map(({ code, id, customerId, decoy }) => [code, { id, customerId, decoy }]),
    );
    return new Map(
      [...codes].flatMap(([input, code]) => {
        const match = matches.get(code);
        return match ? [[input, match]] : [];
      }),
    );
  }

  /**
   * Finds the path of a card, or of the surviving one if it was merged.
   * @throws NotFoundError
   */
  async getPath(accountId: number, cardId: number): Promise<CardPath> {
    const path = (await this.findPaths(accountId, [cardId])).get(cardId);
    if (!path) throw new NotFoundError('Customer card');
    return path;
  }

  /**
   * Finds the paths of many cards in one statement, and one more for those that were merged.
   * @returns those that exist, by id
   */
  async findPaths(accountId: number, ids: number[]): Promise<Map<number, CardPath>> {
    const paths = new Map<number, CardPath>();
    let pending = ids.map((id) => ({ id, current: id }));
    while (pending.length > 0) {
      const current = [...new Set(pending.map((path) => path.current))];
      const loaded = await this.readModels.loadAll(customerCardReadModel, current);
      const merged: typeof pending = [];
      for (const { id, current } of pending) {
        const state = loaded.get(current)?.state;
        if (state?.accountId !== accountId) continue;
        if (state.mergedInto) merged.push({ id, current: state.mergedInto.id });
        else paths.set(id, { customerId: state.customerId, id: current });
      }
      pending = merged;
    }
    return paths;
  }

  /** Lists the ids of customers' cards, with those that were merged into others. */
  async listIds(
    customerIds: number[],
  ): Promise<{ id: number; customerId: number; cardId: number }[]> {
    const rows = await query<{ id: number; customer_id: number; card_id: number }>(this.pool, {
      name: 'customer_cards_ids_of_customers',
      text: `select id, customer_id, card_id from customer_cards where customer_id = any ($1) order by id`,
      values: [customerIds],
    });
    return rows.map(({ id, customer_id: customerId, card_id: cardId }) => ({
      id,
      customerId,
      cardId,
    }));
  }

  /** Measures all who are one person with these customers, as if they were merged. */
  async measurePerson(customerIds: number[]): Promise<PersonSize> {
    const [size] = await query<PersonSize>(this.pool, {
      name: 'customer_cards_measure_person',
      text: MEASURE_PERSON,
      values: [customerIds],
    });
    return size ?? { customers: 0, cards: 0, merges: 0 };
  }

  /** @throws NotFoundError; RejectedError when the customer was erased, or merged into another */
  async assertCanEnrol(accountId: number, customerId: number): Promise<void> {
    const [customer] = await query<{ merged_into: number | null; erased: boolean }>(this.pool, {
      name: 'customer_cards_enrolled',
      text: `select c.merged_into,
               not exists (select from personal_keys k where k.subject_id = c.id) as erased
             from customers c where c.id = $1 and c.account_id = $2`,
      values: [customerId, accountId],
    });
    if (!customer) throw new NotFoundError('Customer');
    if (customer.erased) throw createCustomerErasedError();
    if (customer.merged_into !== null)
      throw createCustomerMergedError(customerId, customer.merged_into);
  }

  /** Finds the customer card with its state at that time. @throws NotFoundError when it did not exist yet */
  async getPast(
    accountId: number,
    { customerId, id }: { customerId: number; id: number },
    time: Date,
  ): Promise<CustomerCardDetailJson> {
    const past = await this.pastStates.toMoment(time);
    const card = await this.getPastCard(accountId, { customerId, id }, past);
    const [templates, installed] = await Promise.all([
      this.loadPastTemplates([card], past),
      this.findInstalled([id], time),
    ]);
    return toCustomerCardDetailJson(card, this.createPastContext(templates, installed, card, past));
  }

  /** Gets the card with its state at that time, or the surviving card if it had been merged. @throws NotFoundError */
  private async getPastCard(
    accountId: number,
    path: CardPath,
    past: PointInTime,
  ): Promise<CustomerCard> {
    for (let { customerId, id } = path; ;) {
      const card = await this.pastStates.projectOne(customerCardReadModel, id, past);
      if (card?.accountId !== accountId || !isHeldBy(card, customerId)) {
        throw new NotFoundError('Customer card');
      }
      if (!card.mergedInto) return card;
      ({ customerId, id } = card.mergedInto);
    }
  }

  /** Lists a customer's cards as they were, by id. */
  async listPast(customerId: number, time: Date): Promise<CustomerCardJson[]> {
    return this.listPastAt(customerId, await this.pastStates.toMoment(time));
  }

  async listPastAt(customerId: number, past: PointInTime): Promise<CustomerCardJson[]> {
    // Read first: what the history takes in meanwhile is then in both, and never in neither.
    const late = await this.pastCounts.readBeyondHistory(past);
    const rows = await query<{ id: number }>(this.pool, {
      name: 'customer_cards_ids',
      // Of another customer now are those that were theirs before a merge, or as long as it lasted.
      text: `select id from customer_cards where customer_id = $1
             union
             select customer_card_id from history
             where customer_id = $1
               and name in ('customer_card.created', 'customer_card.moved', 'customer_card.restored')
             order by id`,
      values: [customerId],
    });
    const ids = [...new Set([...rows.map(({ id }) => id), ...listCardIds(customerId, late)])];
    ids.sort((a, b) => a - b);
    const states = await this.pastStates.projectAll(customerCardReadModel, ids, past);
    const cards = states.filter((card) => card.customerId === customerId && !card.mergedInto);
    const [templates, installed] = await Promise.all([
      this.loadPastTemplates(cards, past),
      this.findInstalled(ids, past.time),
    ]);
    return cards.map((card) =>
      toCustomerCardJson(card, this.createPastContext(templates, installed, card, past)),
    );
  }

  /** @throws NotFoundError when the store has no such customer */
  async assertCustomerExists(accountId: number, customerId: number): Promise<void> {
    const customers = await query(this.pool, {
      name: 'customer_cards_customer',
      text: 'select 1 from customers where id = $1 and account_id = $2',
      values: [customerId, accountId],
    });
    if (customers.length === 0) throw new NotFoundError('Customer');
  }

  private async toJson(rows: CustomerCardRow[]): Promise<CustomerCardJson[]> {
    const templates = await this.templates.getAllAtVersion(
      new Map(rows.map(({ state, store_version: version }) => [state.cardId, version])),
    );
    return rows.map(({ state, pass_installed: passInstalled }) => {
      const template = templates.get(state.cardId);
      if (!template) throw new Error(`card ${state.cardId} has customer cards but no row`);
      return toCustomerCardJson(state, this.createRenderContext(template, getNow(), passInstalled));
    });
  }

  private loadPastTemplates(
    cards: CustomerCard[],
    past: PointInTime,
  ): Promise<Map<number, ShownTemplate>> {
    return this.templates.findPast([...new Set(cards.map(({ cardId }) => cardId))], past);
  }

  private createPastContext(
    templates: Map<number, ShownTemplate>,
    installed: Set<number>,
    { id, cardId }: CustomerCard,
    { time }: PointInTime,
  ): RenderContext {
    const template = templates.get(cardId);
    if (!template) throw new Error(`card ${cardId} had customer cards before it existed`);
    return this.createRenderContext(template, time, installed.has(id));
  }

  /** Finds which of these customer cards were on a phone at a time, unless a later installation hides it. */
  async findInstalled(ids: number[], at: Date): Promise<Set<number>> {
    const rows = await query<{ id: number }>(this.pool, {
      name: 'customer_cards_installed',
      text: `select distinct customer_card_id as id from pass_installations
             where customer_card_id = any ($1) and installed_at <= $2 and (removed_at is null or removed_at > $2)`,
      values: [ids, at],
    });
    return new Set(rows.map(({ id }) => id));
  }

  createRenderContext(template: ShownTemplate, now: Date, passInstalled: boolean): RenderContext {
    return { template, now, publicUrl: this.config.publicUrl, passInstalled };
  }
}

/** Lists the cards that these events hand to a customer. */
function listCardIds(customerId: number, events: StoredEvent[]): number[] {
  const { name } = customerCardReadModel;
  return events
    .filter(({ stream, data }) => stream.startsWith(`${name}-`) && data.customerId === customerId)
    .map(({ stream }) => Number(stream.slice(name.length + 1)));
}
