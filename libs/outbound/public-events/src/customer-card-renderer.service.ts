import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import { recorded } from '#event-store/codec.js';
import type { StoredEvent } from '#event-store/event-store.js';
import { Rows } from '#event-store/rows.js';
import { accountRows } from '#accounts/account.entity.js';
import { cardRows } from '#cards/card.entity.js';
import { customerRows } from '#customers/customer.entity.js';
import type { CustomerCard } from '#stamping/customer-card.js';
import { customerCardDetailJson, customerCardJson } from '#stamping/customer-card.dto.js';
import { customerCardRows } from '#stamping/customer-card.entity.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { TemplatesService } from '#stamping/templates.service.js';
import { found, type EventRenderer, type Rendered } from './event-renderer.js';
import {
  publicCustomerCardEvent,
  type CustomerName,
  type ToldCustomerCardEvent,
} from './public-events.js';
import { StreamFolds } from './stream-folds.service.js';

/** An erased customer (contract section 11). */
const NOBODY_NAMED = { first_name: 'Erased', last_name: null, email: null, phone: null };

const NAMES = {
  name: 'webhook_customer_names',
  text: 'select id, first_name, last_name, email, phone from customer_names where id = any ($1)',
};

@Injectable()
export class CustomerCardRenderer implements EventRenderer {
  readonly aggregate = customerCardRows.aggregate.name;

  constructor(
    private readonly pool: Pool,
    private readonly rows: Rows,
    private readonly folds: StreamFolds,
    private readonly templates: TemplatesService,
    private readonly customerCards: CustomerCardsService,
    private readonly config: Config,
  ) {}

  async render(
    events: StoredEvent[],
    isErased: (customerId: number) => boolean,
  ): Promise<Map<string, Rendered>> {
    const states = await this.folds.statesAfter(customerCardRows, events);
    const cards = [...states.values()];
    const [names, templates, installed] = await Promise.all([
      this.names([...new Set(cards.map((card) => card.customerId))]),
      this.templatesOf(cards),
      this.customerCards.installedAmong(
        cards.map(({ id }) => id),
        new Date(),
      ),
    ]);
    return new Map(
      events.map((event) => {
        const state = found(states.get(event.id), event.stream);
        const { template } = found(templates.get(state.cardId), `card ${state.cardId}`);
        const renderContext = {
          template,
          now: new Date(event.meta.recordedAt),
          publicUrl: this.config.publicUrl,
          passInstalled: installed.has(state.id),
        };
        const told = {
          ...recorded<ToldCustomerCardEvent>(customerCardRows.aggregate, event),
          revision: event.revision,
        };
        const publicEvent = publicCustomerCardEvent(told, {
          state,
          cardName: template.name,
          list: customerCardJson(state, renderContext),
          detail: customerCardDetailJson(state, renderContext),
          customer: isErased(state.customerId)
            ? { id: state.customerId, ...NOBODY_NAMED }
            : found(names.get(state.customerId), `customer ${state.customerId}`),
        });
        return [event.id, { event: publicEvent, customerId: state.customerId }];
      }),
    );
  }

  private async names(ids: number[]): Promise<Map<number, CustomerName>> {
    const names = await this.readNames(ids);
    const late = ids.filter((id) => !names.has(id));
    if (late.length === 0) return names;
    await this.rows.ensure(customerRows, late);
    return new Map([...names, ...(await this.readNames(late))]);
  }

  private async templatesOf(cards: CustomerCard[]): ReturnType<TemplatesService['load']> {
    const templates = await this.templates.load([...new Set(cards.map((card) => card.cardId))]);
    const late = cards.filter(({ cardId }) => !templates.has(cardId));
    if (late.length === 0) return templates;
    await this.rows.ensure(accountRows, [...new Set(late.map(({ accountId }) => accountId))]);
    const ids = [...new Set(late.map(({ cardId }) => cardId))];
    await this.rows.ensure(cardRows, ids);
    return new Map([...templates, ...(await this.templates.load(ids))]);
  }

  private async readNames(ids: number[]): Promise<Map<number, CustomerName>> {
    const { rows } = await this.pool.query<CustomerName>({ ...NAMES, values: [ids] });
    return new Map(rows.map((row) => [row.id, customerNameJson(row)]));
  }
}

function customerNameJson(row: CustomerName): CustomerName {
  const { id, first_name, last_name, email, phone } = row;
  return { id, first_name, last_name, email, phone };
}
