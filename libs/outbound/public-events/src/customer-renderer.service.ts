import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { StoredEvent } from '#event-store/event-store.js';
import { recorded } from '#event-store/codec.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { redacted, type Customer } from '#customers/customer.js';
import { customerJson } from '#customers/customer.dto.js';
import { customerRows } from '#customers/customer.entity.js';
import { found, type EventRenderer, type Rendered } from './event-renderer.js';
import { publicCustomerEvent, type ToldCustomerEvent } from './public-events.js';
import { StreamFolds } from './stream-folds.service.js';

@Injectable()
export class CustomerRenderer implements EventRenderer {
  readonly aggregate = customerRows.aggregate.name;

  constructor(
    private readonly pool: Pool,
    private readonly folds: StreamFolds,
    private readonly customerCards: CustomerCardsService,
  ) {}

  async render(
    events: StoredEvent[],
    isErased: (customerId: number) => boolean,
  ): Promise<Map<string, Rendered>> {
    const states = await this.folds.statesAround(customerRows, events);
    const updated = events.filter(({ revision }) => revision > 0);
    const cards = await this.customerCards.ofCustomers(
      updated.map(({ id, stream }) => found(states.get(id), stream).after.id),
    );
    const erasedAt = await this.erasedAt(
      [...states.values()].map(({ after }) => after.id).filter(isErased),
    );
    const shown = (state: Customer) =>
      isErased(state.id)
        ? { ...redacted(state), erasedAt: erasedAt.get(state.id) ?? state.erasedAt }
        : state;
    return new Map(
      events.map((event) => {
        const { before, after } = found(states.get(event.id), event.stream);
        const { revision } = event;
        const told = { ...recorded<ToldCustomerEvent>(customerRows.aggregate, event), revision };
        const publicEvent = publicCustomerEvent(told, {
          // A customer's cards come later than the customer: right after its creation there are none.
          customer: customerJson(shown(after), revision > 0 ? (cards.get(after.id) ?? []) : []),
          before: before && customerJson(shown(before), []),
        });
        return [event.id, { event: publicEvent, customerId: after.id }];
      }),
    );
  }

  /** Shown in every event about them, so that a receiver that sees one of before does not take them for present. */
  private async erasedAt(ids: number[]): Promise<Map<number, string>> {
    if (ids.length === 0) return new Map();
    const { rows } = await this.pool.query<{ id: number; erased_at: string | null }>({
      name: 'webhook_customers_erased',
      text: `select id, state ->> 'erasedAt' as erased_at from customers where id = any ($1)`,
      values: [ids],
    });
    return new Map(
      rows.flatMap(({ id, erased_at }) => (erased_at === null ? [] : [[id, erased_at]])),
    );
  }
}
