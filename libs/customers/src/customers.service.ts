import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { NotFoundError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { poolOf } from '#database/data-source.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import type { Customer } from './customer.js';
import {
  customerJson,
  searchTerm,
  type CustomerJson,
  type CustomerListJson,
} from './customer.dto.js';

type CustomerRow = { state: Customer };

export type CustomerFilter = {
  search: string | null;
  reference: { source: string; externalId: string } | null;
};

@Injectable()
export class CustomersService {
  constructor(
    private readonly source: DataSource,
    private readonly customerCards: CustomerCardsService,
  ) {}

  async list(
    accountId: number,
    filter: CustomerFilter,
    { page, items }: { page: number; items: number },
  ): Promise<CustomerListJson> {
    const { where, values } = condition(accountId, filter);
    const [total]: { count: number }[] = await this.source.query(
      `select count(*) as count from customers c where ${where}`,
      values,
    );
    const count = total?.count ?? 0;
    const rows: CustomerRow[] = await this.source.query(
      `select c.state from customers c where ${where} order by c.id desc
       limit ${items} offset ${(page - 1) * items}`,
      values,
    );
    return {
      customers: await this.withCards(rows),
      pagination: { count, items, page, pages: Math.max(1, Math.ceil(count / items)) },
    };
  }

  /** @throws NotFoundError */
  async find(accountId: number, id: number): Promise<CustomerJson> {
    const rows: CustomerRow[] = await this.source.query(
      'select state from customers where id = $1 and account_id = $2',
      [id, accountId],
    );
    const [found] = await this.withCards(rows);
    if (!found) throw new NotFoundError('Customer');
    return found;
  }

  /** The store's own: in it days and birthdays are counted. */
  async timeZone(accountId: number): Promise<string> {
    const [row] = await ask<{ time_zone: string }>(poolOf(this.source), {
      name: 'customers_time_zone',
      text: `select state ->> 'timeZone' as time_zone from accounts where id = $1`,
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

/** Each branch of a search has an index of its own; `or` lets PostgreSQL combine them. */
function condition(
  accountId: number,
  { search, reference }: CustomerFilter,
): { where: string; values: unknown[] } {
  const values: unknown[] = [accountId];
  const value = (given: unknown) => `$${values.push(given)}`;
  const hasReference = (wanted: object) =>
    `c.state -> 'externalReferences' @> ${value(JSON.stringify([wanted]))}::jsonb`;
  const conditions = ['c.account_id = $1'];
  if (reference) conditions.push(hasReference(reference));
  if (search !== null) {
    const term = searchTerm(search);
    const branches = [`c.search_text like ${value(term.text)}`];
    if (term.digits !== null) branches.push(`c.phone_digits like ${value(term.digits)}`);
    branches.push(hasReference({ externalId: term.exact }));
    const byCode = `k.account_id = $1 and k.code = ${value(term.exact)}`;
    const byUuid = term.uuid === null ? '' : ` or k.uuid = ${value(term.uuid)}::uuid`;
    branches.push(
      `c.id = any (array(select k.customer_id from customer_cards k where ${byCode}${byUuid}))`,
    );
    conditions.push(`(${branches.join(' or ')})`);
  }
  return { where: conditions.join(' and '), values };
}
