import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { AsOf } from '#event-store/as-of.service.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import type { Customer } from './customer.js';
import { customerRows } from './customer.entity.js';
import {
  customerJson,
  searchTerm,
  type CustomerJson,
  type CustomerListJson,
} from './customer.dto.js';

const FEW = 2_000;

type CustomerRow = { state: Customer };

/** Found by no search (contract section 12). What is personal is gone from their rows, the cards' codes are not. */
const NOT_ERASED = `exists (select from personal_keys p where p.customer_id = k.customer_id)`;

export type CustomerFilter = {
  search: string | null;
  reference: { source: string; externalId: string } | null;
};

@Injectable()
export class CustomersService {
  constructor(
    private readonly pool: Pool,
    private readonly customerCards: CustomerCardsService,
    private readonly asOf: AsOf,
  ) {}

  async list(
    accountId: number,
    filter: CustomerFilter,
    { page, items }: { page: number; items: number },
  ): Promise<CustomerListJson> {
    const { where, values } = condition(accountId, filter);
    const [total] = await ask<{ count: number }>(this.pool, {
      text: `select count(*) as count from customers c where ${where}`,
      values,
    });
    const count = total?.count ?? 0;
    const skipped = (page - 1) * items;
    const left = Math.max(0, count - skipped);
    // From the nearer end, and ids only, which come from an index; whole rows only for the page. If there are
    // few, all are fetched (`offset 0` keeps the limit out of the plan): given the limit, PostgreSQL would
    // rather scan the whole store in order.
    const matching = `select c.id from customers c where ${where} ${count <= FEW ? 'offset 0' : ''}`;
    const [order, offset] =
      skipped <= left ? ['desc', skipped] : ['asc', Math.max(0, left - items)];
    const rows: CustomerRow[] =
      left === 0
        ? []
        : await ask<CustomerRow>(this.pool, {
            text: `select p.state from customers p where p.id = any (array(
               select m.id from (${matching}) m order by m.id ${order} limit ${Math.min(items, left)} offset ${offset}))
             order by p.id desc`,
            values,
          });
    return {
      customers: await this.withCards(rows),
      pagination: { count, items, page, pages: Math.max(1, Math.ceil(count / items)) },
    };
  }

  /** @throws NotFoundError */
  async find(accountId: number, id: number): Promise<CustomerJson> {
    const rows = await ask<CustomerRow>(this.pool, {
      text: 'select state from customers where id = $1 and account_id = $2',
      values: [id, accountId],
    });
    const [found] = await this.withCards(rows);
    if (!found) throw new NotFoundError('Customer');
    return found;
  }

  /** As they were, with their cards. @throws NotFoundError when there was no such customer yet */
  async findPast(accountId: number, id: number, time: Date): Promise<CustomerJson> {
    const past = await this.asOf.at(time);
    const customer = await this.asOf.state(customerRows, id, past);
    if (customer?.accountId !== accountId) throw new NotFoundError('Customer');
    return customerJson(customer, await this.customerCards.past(id, past));
  }

  /** The time zone of the store, which determines its days and birthdays. */
  async timeZone(accountId: number): Promise<string> {
    const [row] = await ask<{ time_zone: string }>(this.pool, {
      name: 'customers_time_zone',
      text: 'select time_zone from accounts where id = $1',
      values: [accountId],
    });
    if (!row) throw new NotFoundError('Store');
    return row.time_zone;
  }

  private async withCards(rows: CustomerRow[]): Promise<CustomerJson[]> {
    const cards = await this.customerCards.ofCustomers(rows.map(({ state }) => state.id));
    return rows.map(({ state }) => customerJson(state, cards.get(state.id) ?? []));
  }
}

/**
 * Exact matches come first, as a few ids; everything else to compare is in one index, so that the database
 * can choose between scanning it and looking up trigrams.
 */
function condition(
  accountId: number,
  { search, reference }: CustomerFilter,
): { where: string; values: unknown[] } {
  const values: unknown[] = [accountId];
  const value = (given: unknown) => `$${values.push(given)}`;
  const holding = (wanted: object) =>
    `select r.id from customers r where r.account_id = $1
       and r.merged_into is null
       and r.state -> 'externalReferences' @> ${value(JSON.stringify([wanted]))}::jsonb`;
  // A merged customer has nothing left that a search compares; the whole list has to leave them out.
  const conditions = ['c.account_id = $1'];
  if (!reference && search === null) conditions.push('c.merged_into is null');
  if (reference) conditions.push(`c.id = any (array(${holding(reference)}))`);
  if (search !== null) {
    const term = searchTerm(search);
    const text = value(term.text);
    const exactly = [
      holding({ externalId: term.exact }),
      `select k.customer_id from customer_cards k
         where k.account_id = $1 and k.code = ${value(term.exact)} and ${NOT_ERASED}`,
      `select l.id from customers l
         where l.account_id = $1 and l.long_search_text is not null and l.long_search_text like ${text}`,
    ];
    if (term.uuid !== null) {
      exactly.push(`select k.customer_id from customer_cards k
        where k.account_id = $1 and k.uuid = ${value(term.uuid)}::uuid and ${NOT_ERASED}`);
    }
    const branches = [
      `c.search_text like ${text}`,
      `c.id = any (array(${exactly.join(' union all ')}))`,
    ];
    if (term.digits !== null) branches.push(`c.phone_digits like ${value(term.digits)}`);
    conditions.push(`(${branches.join(' or ')})`);
  }
  return { where: conditions.join(' and '), values };
}
