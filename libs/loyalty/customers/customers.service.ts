import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { PastStates } from '#platform/event-store/log/past-states.service.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import type { PageRange } from '#platform/http/page.js';
import {
  hasCardChangedSince,
  selectHoldersOfStamps,
  selectHoldersOfAny,
  selectCardKeys,
} from '#loyalty/stamping/customer-card-filters.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import type { Customer, StoreRegion } from './customer.js';
import { customerReadModel } from './customer.entity.js';
import { toCustomerJson, type CustomerJson } from './customer.dto.js';
import {
  parseSearchTerm,
  type CustomerFilter,
  type CustomerListJson,
  type CustomerSort,
  type SearchTerm,
} from './customer-list.dto.js';
import { normalizePhone } from './contact.js';
import { getPhoneKey, listPhoneSpellings } from './phone-plans.js';
import type { EmailBounce } from './email-bounces.js';
import { extractDigits, createEmailKey, foldCase } from './search-keys.js';
import { StoreRegions } from './store-regions.service.js';

const FEW_ROWS = 2_000;

type CustomerRow = { state: Customer };

/** Excludes erased customers (ERASE-05). Their personal data is gone, but the codes of their cards are not. */
const NOT_ERASED = `exists (select from personal_keys p where p.subject_id = k.customer_id)`;

@Injectable()
export class CustomersService {
  constructor(
    private readonly pool: Pool,
    private readonly customerCards: CustomerCardsService,
    private readonly pastStates: PastStates,
    private readonly keys: PersonalKeys,
    private readonly regions: StoreRegions,
  ) {}

  async list(
    accountId: number,
    filter: CustomerFilter,
    { page, items, sort = 'newest' }: { page: number; items: number; sort?: CustomerSort },
  ): Promise<CustomerListJson> {
    const { where, values, count } = await this.count(accountId, filter);
    const skipped = (page - 1) * items;
    const left = Math.max(0, count - skipped);
    const limit = Math.min(items, left);
    const text =
      sort === 'newest'
        ? selectNewest(selectIds(where, count), { skipped, left, limit })
        : selectSorted(selectSortKeys(where, sort), sort, `limit ${limit} offset ${skipped}`);
    const rows = left === 0 ? [] : await query<CustomerRow>(this.pool, { text, values });
    return {
      customers: await this.addCards(rows),
      pagination: { count, items, page, pages: Math.max(1, Math.ceil(count / items)) },
    };
  }

  /**
   * Lists customers by id, each page after the last id of the one before. Ids never change, so nobody who exists
   * throughout is missing or listed twice, whatever happens to others (SEARCH-34).
   * @param readPage reads a page of what it is given
   */
  async listById(
    accountId: number,
    filter: CustomerFilter,
    items: number,
    readPage: (find: (range: PageRange) => Promise<CustomerJson[]>) => Promise<CustomerJson[]>,
  ): Promise<CustomerListJson> {
    const { where, values, count } = await this.count(accountId, filter);
    const customers = await readPage(async ({ after, limit }) => {
      const isAfter = `c.id > $${values.length + 1}`;
      const rows = await query<CustomerRow>(this.pool, {
        text: `${selectRows(
          selectIds(`${where} and ${isAfter}`, count),
          `order by m.id limit ${limit}`,
        )} order by p.id`,
        values: [...values, after?.[0] ?? 0],
      });
      return this.addCards(rows);
    });
    return { customers, pagination: { count, items, page: null, pages: null } };
  }

  private async count(
    accountId: number,
    filter: CustomerFilter,
  ): Promise<{ where: string; values: unknown[]; count: number }> {
    const { phone, search } = filter;
    const country =
      phone === null && search === null ? null : (await this.regions.get(accountId)).country;
    const { where, values } = createCondition(accountId, { ...filter, country }, this.keys);
    const [total] = await query<{ count: number }>(this.pool, {
      text: `select count(*) as count from customers c where ${where}`,
      values,
    });
    return { where, values, count: total?.count ?? 0 };
  }

  /** Counts customers whose data was erased. Lists have them, quotas and messages do not. @param all the customers of lists */
  async countErased(accountId: number, all: number): Promise<number> {
    const [row] = await query<{ count: number }>(this.pool, {
      name: 'customers_count_live',
      text: `select count(*) as count from customers
             where account_id = $1 and merged_into is null and erased_at is null`,
      values: [accountId],
    });
    return Math.max(0, all - (row?.count ?? 0));
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<CustomerJson> {
    const [customer] = await this.addCards(await this.findRow(accountId, id));
    if (!customer) throw new NotFoundError('Customer');
    return customer;
  }

  /** Finds why and since when nothing is sent to the customer's e-mail address. */
  async findEmailBounce(accountId: number, id: number): Promise<EmailBounce | undefined> {
    const [customer] = await this.findRow(accountId, id);
    return customer?.state.emailBounce;
  }

  private findRow(accountId: number, id: number): Promise<CustomerRow[]> {
    return query<CustomerRow>(this.pool, {
      name: 'customers_find',
      text: 'select state from customers where id = $1 and account_id = $2',
      values: [id, accountId],
    });
  }

  /** Finds the customer as they were, with their cards. @throws NotFoundError when there was no such customer yet */
  async getPast(accountId: number, id: number, time: Date): Promise<CustomerJson> {
    const past = await this.pastStates.toMoment(time);
    const customer = await this.pastStates.projectOne(customerReadModel, id, past);
    if (customer?.accountId !== accountId) throw new NotFoundError('Customer');
    return toCustomerJson(customer, await this.customerCards.listPastAt(id, past));
  }

  private async addCards(rows: CustomerRow[]): Promise<CustomerJson[]> {
    const cards = await this.customerCards.listByCustomer(rows.map(({ state }) => state.id));
    return rows.map(({ state }) => toCustomerJson(state, cards.get(state.id) ?? []));
  }
}

/**
 * Selects ids, which come from an index. If there are few, all are fetched (`offset 0` keeps the limit of a page out of
 * the plan): given the limit, PostgreSQL would rather scan the whole store in order.
 */
function selectIds(where: string, count: number): string {
  return `select c.id from customers c where ${where} ${count <= FEW_ROWS ? 'offset 0' : ''}`;
}

/** Selects the whole rows of a page only. @param page its order and limit, of `m` */
function selectRows(ids: string, page: string): string {
  return `select p.state from customers p where p.id = any (array(select m.id from (${ids}) m ${page}))`;
}

/** Selects the whole rows of a page of the newest, from the nearer end. */
function selectNewest(
  ids: string,
  { skipped, left, limit }: { skipped: number; left: number; limit: number },
): string {
  const [order, offset] = skipped <= left ? ['desc', skipped] : ['asc', Math.max(0, left - limit)];
  const page = `order by m.id ${order} limit ${limit} offset ${offset}`;
  return `${selectRows(ids, page)} order by p.id desc`;
}

/**
 * Selects customers with what they are sorted by, null for the erased. Names are in the order of Unicode, so that Ä comes
 * after A.
 */
function selectSortKeys(where: string, sort: Exclude<CustomerSort, 'newest'>): string {
  const name = `split_part(coalesce(c.search_text, c.long_search_text), E'\\n', 1)`;
  return sort === 'name'
    ? `select c.id, nullif(${name}, '') collate "und-x-icu" as key from customers c where ${where}`
    : `select c.id, case when c.erased_at is null then k.key end as key
       from customers c left join (${selectCardKeys(sort)}) k on k.customer_id = c.id where ${where}`;
}

/**
 * Selects the whole rows of a sorted page. It reads all of the store's customers, or their cards, once: an index on what each
 * stamp changes would make stamping slower.
 * @param keys selects ids and keys @param limit of the page, with its offset
 */
function selectSorted(keys: string, sort: Exclude<CustomerSort, 'newest'>, limit: string): string {
  const orderBy = `order by m.key ${sort === 'name' ? 'asc' : 'desc'} nulls last, m.id desc`;
  return `select p.state from (select m.id, m.key from (${keys}) m ${orderBy} ${limit}) m
    join customers p on p.id = m.id ${orderBy}`;
}

/**
 * Creates the condition of a search. Exact matches come first, as a few ids; everything else to compare is in one
 * index, so that the database can choose between scanning it and looking up trigrams.
 */
function createCondition(
  accountId: number,
  { country, ...filter }: CustomerFilter & Pick<StoreRegion, 'country'>,
  keys: PersonalKeys,
): { where: string; values: unknown[] } {
  const values: unknown[] = [accountId];
  const value = (parameter: unknown) => `$${values.push(parameter)}`;
  const conditions = ['c.account_id = $1'];
  const properties = createPropertyConditions(filter, value);
  const isNarrow = Object.values(filter).some((part) => part !== null);
  // Merged and erased customers have nothing left that a search compares, but their other properties, and cards.
  if (!isNarrow || properties.length > 0) conditions.push('c.merged_into is null');
  if (properties.length > 0) conditions.push('c.erased_at is null', ...properties);
  if (filter.reference) conditions.push(isOneOf([selectHolders(filter.reference, value)]));
  if (filter.code !== null)
    conditions.push(isOneOf([selectCardHolders('k.code', filter.code, value)]));
  const phone = filter.phone === null ? null : (normalizePhone(filter.phone, country) ?? null);
  conditions.push(...createContactConditions({ ...filter, phone }, { keys, accountId, value }));
  if (filter.search !== null) {
    conditions.push(createSearchCondition(parseSearchTerm(filter.search, country), value));
  }
  return { where: conditions.join(' and '), values };
}

export type Placeholder = (parameter: unknown) => string;

function isOneOf(selects: string[]): string {
  return `c.id = any (array(${selects.join(' union all ')}))`;
}

/** Selects customers by what several may have in common. */
export function createPropertyConditions(
  {
    updatedSince,
    birthdayMonth,
    inactiveSince,
    cardId,
    minStamps,
    minStampsByCard,
  }: Pick<
    CustomerFilter,
    'updatedSince' | 'birthdayMonth' | 'inactiveSince' | 'cardId' | 'minStamps' | 'minStampsByCard'
  >,
  value: Placeholder,
): string[] {
  const conditions: string[] = [];
  if (updatedSince !== null) {
    conditions.push(`c.updated_at >= ${value(updatedSince.toISOString())}`);
  }
  if (birthdayMonth !== null) conditions.push(`c.birthday_month = ${value(birthdayMonth)}`);
  if (cardId !== null || minStamps !== null) {
    const holders = selectHoldersOfStamps({ cardId, minStamps }, value);
    conditions.push(`c.id in (${holders})`);
  }
  if (minStampsByCard) {
    conditions.push(`c.id in (${selectHoldersOfAny(minStampsByCard, value)})`);
  }
  if (inactiveSince !== null) {
    const time = value(inactiveSince.toISOString());
    conditions.push(
      `(c.state ->> 'createdAt') collate "C" < ${time} and not ${hasCardChangedSince('c.id', time)}`,
    );
  }
  return conditions;
}

function selectHolders(reference: object, value: Placeholder): string {
  return `select r.id from customers r where r.account_id = $1
       and r.merged_into is null
       and r.state -> 'externalReferences' @> ${value(JSON.stringify([reference]))}::jsonb`;
}

function selectCardHolders(column: string, identifier: string, value: Placeholder): string {
  return `select k.customer_id from customer_cards k
         where k.account_id = $1 and ${column} = ${value(identifier)} and ${NOT_ERASED}`;
}

/**
 * Selects customers by the claims that make addresses unique. A claim may be taken shortly before the change that it
 * belongs to is in the row, so the row is compared too; that of a merged or erased customer has nothing to compare.
 */
function createContactConditions(
  { email, phone }: CustomerFilter,
  { keys, accountId, value }: { keys: PersonalKeys; accountId: number; value: Placeholder },
): string[] {
  const hasClaim = (kind: string, claimedValue: string) =>
    isOneOf([
      `select substr(h.stream_id, ${customerReadModel.name.length + 2})::bigint from es.claims h
         where h.account_id = $1 and h.kind = '${kind}'
           and h.value = ${value(keys.createClaim(accountId, kind, claimedValue, '').value)}`,
    ]);
  const line = email === null ? null : value(`\n${foldCase(createEmailKey(email))}`);
  return [
    ...(email === null
      ? []
      : [
          hasClaim('email', createEmailKey(email)),
          `right(coalesce(c.search_text, c.long_search_text), length(${line}::text)) = ${line}`,
        ]),
    ...(phone === null
      ? []
      : [
          hasClaim('phone', getPhoneKey(phone)),
          `c.phone_digits = any (${value(listPhoneSpellings(phone).map(extractDigits))}::text[])`,
        ]),
  ];
}

function createSearchCondition(term: SearchTerm, value: Placeholder): string {
  const text = value(term.text);
  const exactly = [
    selectHolders({ externalId: term.exact }, value),
    selectCardHolders('k.code', term.code, value),
    `select l.id from customers l
         where l.account_id = $1 and l.long_search_text is not null and l.long_search_text like ${text}`,
    ...(term.uuid === null ? [] : [selectCardHolders('k.uuid', term.uuid, value)]),
  ];
  const branches = [
    `c.search_text like ${text}`,
    isOneOf(exactly),
    ...term.digits.map((pattern) => `c.phone_digits like ${value(pattern)}`),
  ];
  return `(${branches.join(' or ')})`;
}
