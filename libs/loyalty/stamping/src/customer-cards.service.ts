import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import { customerErased, NotFoundError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { AsOf, type Past } from '#event-store/as-of.service.js';
import type { Range } from '#http/page.js';
import type { CustomerCard, ShownTemplate } from './customer-card.js';
import { customerCardRows } from './customer-card.entity.js';
import {
  customerCardDetailJson,
  customerCardJson,
  type CustomerCardDetailJson,
  type CustomerCardJson,
  type RenderContext,
} from './customer-card.dto.js';
import { TemplatesService } from './templates.service.js';

type CustomerCardRow = { state: CustomerCard };

@Injectable()
export class CustomerCardsService {
  constructor(
    private readonly pool: Pool,
    private readonly templates: TemplatesService,
    private readonly config: Config,
    private readonly asOf: AsOf,
  ) {}

  async list(customerId: number, { after, limit }: Range): Promise<CustomerCardJson[]> {
    const rows = await ask<CustomerCardRow>(this.pool, {
      text: 'select state from customer_cards where customer_id = $1 and id > $2 order by id limit $3',
      values: [customerId, after?.[0] ?? 0, limit],
    });
    return this.json(rows);
  }

  /** Each customer's cards, by id. */
  async ofCustomers(customerIds: number[]): Promise<Map<number, CustomerCardJson[]>> {
    const rows = await ask<CustomerCardRow>(this.pool, {
      name: 'customer_cards_of_customers',
      text: 'select state from customer_cards where customer_id = any ($1) order by customer_id, id',
      values: [customerIds],
    });
    const cards = new Map<number, CustomerCardJson[]>(customerIds.map((id) => [id, []]));
    for (const [i, card] of (await this.json(rows)).entries()) {
      const row = rows[i];
      if (row) cards.get(row.state.customerId)?.push(card);
    }
    return cards;
  }

  /** @throws NotFoundError */
  async find(
    accountId: number,
    { customerId, id }: { customerId: number; id: number },
  ): Promise<CustomerCardDetailJson> {
    const [row] = await ask<CustomerCardRow>(this.pool, {
      text: 'select state from customer_cards where id = $1 and customer_id = $2 and account_id = $3',
      values: [id, customerId, accountId],
    });
    if (!row) throw new NotFoundError('Customer card');
    const template = await this.templates.find(accountId, row.state.cardId);
    return customerCardDetailJson(row.state, this.renderContext(template, new Date()));
  }

  /** As it was. @throws NotFoundError when it did not exist yet */
  async findPast(
    accountId: number,
    { customerId, id }: { customerId: number; id: number },
    time: Date,
  ): Promise<CustomerCardDetailJson> {
    const past = await this.asOf.at(time);
    const card = await this.asOf.state(customerCardRows, id, past);
    if (card?.customerId !== customerId || card.accountId !== accountId) {
      throw new NotFoundError('Customer card');
    }
    const templates = await this.templatesOf([card], past);
    return customerCardDetailJson(card, this.pastContext(templates, card, past));
  }

  /** A customer's cards as they were, by id. */
  async listPast(customerId: number, time: Date): Promise<CustomerCardJson[]> {
    return this.past(customerId, await this.asOf.at(time));
  }

  async past(customerId: number, past: Past): Promise<CustomerCardJson[]> {
    const rows = await ask<{ id: number }>(this.pool, {
      name: 'customer_cards_ids',
      text: 'select id from customer_cards where customer_id = $1 order by id',
      values: [customerId],
    });
    const ids = rows.map(({ id }) => id);
    const cards = await this.asOf.states(customerCardRows, ids, past);
    const templates = await this.templatesOf(cards, past);
    return cards.map((card) => customerCardJson(card, this.pastContext(templates, card, past)));
  }

  /** @throws NotFoundError when the store has no such customer */
  async refuseUnknownCustomer(accountId: number, customerId: number): Promise<void> {
    const customers = await ask(this.pool, {
      name: 'customer_cards_customer',
      text: 'select 1 from customers where id = $1 and account_id = $2',
      values: [customerId, accountId],
    });
    if (customers.length === 0) throw new NotFoundError('Customer');
  }

  /** @throws NotFoundError when the store has no such customer; RejectedError when they were erased */
  async refuseErasedCustomer(accountId: number, customerId: number): Promise<void> {
    const [customer] = await ask<{ erased: boolean }>(this.pool, {
      name: 'customer_cards_erased_customer',
      text: `select not exists (select from personal_keys k where k.customer_id = c.id) as erased
             from customers c where c.id = $1 and c.account_id = $2`,
      values: [customerId, accountId],
    });
    if (!customer) throw new NotFoundError('Customer');
    if (customer.erased) throw customerErased();
  }

  private async json(rows: CustomerCardRow[]): Promise<CustomerCardJson[]> {
    const templates = await this.templates.load([...new Set(rows.map((row) => row.state.cardId))]);
    return rows.map(({ state }) => {
      const template = templates.get(state.cardId)?.template;
      if (!template) throw new Error(`card ${state.cardId} has customer cards but no row`);
      return customerCardJson(state, this.renderContext(template, new Date()));
    });
  }

  private templatesOf(cards: CustomerCard[], past: Past): Promise<Map<number, ShownTemplate>> {
    return this.templates.past([...new Set(cards.map(({ cardId }) => cardId))], past);
  }

  private pastContext(
    templates: Map<number, ShownTemplate>,
    { cardId }: CustomerCard,
    { time }: Past,
  ): RenderContext {
    const template = templates.get(cardId);
    if (!template) throw new Error(`card ${cardId} had customer cards before it existed`);
    return this.renderContext(template, time);
  }

  renderContext<T>(template: T, now: Date): { template: T; now: Date; publicUrl: string } {
    return { template, now, publicUrl: this.config.publicUrl };
  }
}
