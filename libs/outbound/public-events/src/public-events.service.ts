import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import type { StoredEvent } from '#event-store/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { recorded } from '#event-store/rows.js';
import { customerJson } from '#customers/customer.dto.js';
import { customerRows } from '#customers/customer.entity.js';
import { customerCardDetailJson, customerCardJson } from '#stamping/customer-card.dto.js';
import { customerCardRows } from '#stamping/customer-card.entity.js';
import type { CustomerCardEvent } from '#stamping/customer-card.events.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { TemplatesService } from '#stamping/templates.service.js';
import {
  publicCustomerCardEvent,
  publicCustomerEvent,
  type CustomerName,
  type PublicEvent,
  type ToldCustomerEvent,
} from './public-events.js';
import { StreamFolds } from './stream-folds.service.js';

export type Rendered = { event: PublicEvent; customerId: number };

const NAMES = {
  name: 'webhook_customer_names',
  text: `select id, state ->> 'firstName' as first_name, state ->> 'lastName' as last_name,
           state ->> 'email' as email, state ->> 'phone' as phone
         from customers where id = any ($1)`,
};

/** Public events as receivers see them: a batch takes a handful of queries, however large it is. */
@Injectable()
export class PublicEventsService {
  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly folds: StreamFolds,
    private readonly templates: TemplatesService,
    private readonly customerCards: CustomerCardsService,
    private readonly config: Config,
  ) {}

  /** @param events all of them with a public type, in the order of the log */
  async render(events: StoredEvent[]): Promise<Rendered[]> {
    const opened = await this.keys.opened(events);
    const ofCustomers = opened.filter(isOfCustomer);
    const rendered = new Map<string, Rendered>([
      ...(await this.renderCustomers(ofCustomers)),
      ...(await this.renderCustomerCards(opened.filter((event) => !isOfCustomer(event)))),
    ]);
    return events.map(({ id }) => {
      const one = rendered.get(id);
      if (!one) throw new Error(`event ${id} was not rendered`);
      return one;
    });
  }

  private async renderCustomers(events: StoredEvent[]): Promise<Map<string, Rendered>> {
    if (events.length === 0) return new Map();
    const states = await this.folds.statesAround(customerRows, events);
    const updated = events.filter(({ revision }) => revision > 0);
    const cards = await this.customerCards.ofCustomers(
      updated.map(({ id, stream }) => found(states.get(id), stream).after.id),
    );
    return new Map(
      events.map((event) => {
        const { before, after } = found(states.get(event.id), event.stream);
        const publicEvent = publicCustomerEvent(recorded<ToldCustomerEvent>(event), {
          // A customer's cards begin after it: as its creation left it there are none.
          customer: customerJson(after, event.revision > 0 ? (cards.get(after.id) ?? []) : []),
          before: before && customerJson(before, []),
        });
        return [event.id, { event: publicEvent, customerId: after.id }];
      }),
    );
  }

  private async renderCustomerCards(events: StoredEvent[]): Promise<Map<string, Rendered>> {
    if (events.length === 0) return new Map();
    const states = await this.folds.statesAfter(customerCardRows, events);
    const cards = [...states.values()];
    const [names, templates] = await Promise.all([
      this.names(cards.map((card) => card.customerId)),
      this.templates.load([...new Set(cards.map((card) => card.cardId))]),
    ]);
    return new Map(
      events.map((event) => {
        const state = found(states.get(event.id), event.stream);
        const { template } = found(templates.get(state.cardId), `card ${state.cardId}`);
        const showing = {
          template,
          now: new Date(event.meta.recordedAt),
          publicUrl: this.config.publicUrl,
        };
        const publicEvent = publicCustomerCardEvent(recorded<CustomerCardEvent>(event), {
          state,
          cardName: template.name,
          list: customerCardJson(state, showing),
          detail: customerCardDetailJson(state, showing),
          customer: found(names.get(state.customerId), `customer ${state.customerId}`),
        });
        return [event.id, { event: publicEvent, customerId: state.customerId }];
      }),
    );
  }

  private async names(customerIds: number[]): Promise<Map<number, CustomerName>> {
    const { rows } = await this.pool.query<CustomerName>({
      ...NAMES,
      values: [[...new Set(customerIds)]],
    });
    return new Map(rows.map((row) => [row.id, customerNameJson(row)]));
  }
}

function customerNameJson(row: CustomerName): CustomerName {
  const { id, first_name, last_name, email, phone } = row;
  return { id, first_name, last_name, email, phone };
}

function isOfCustomer({ stream }: StoredEvent): boolean {
  return stream.startsWith(`${customerRows.aggregate.name}-`);
}

function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`${what} is not there`);
  return value;
}
