import { Injectable } from '@nestjs/common';
import type { StoredEvent } from '#event-store/event-store.js';
import { recorded } from '#event-store/codec.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { customerJson } from '#customers/customer.dto.js';
import { customerRows } from '#customers/customer.entity.js';
import { found, type EventRenderer, type Rendered } from './event-renderer.js';
import { publicCustomerEvent, type ToldCustomerEvent } from './public-events.js';
import { StreamFolds } from './stream-folds.service.js';

@Injectable()
export class CustomerRenderer implements EventRenderer {
  readonly aggregate = customerRows.aggregate.name;

  constructor(
    private readonly folds: StreamFolds,
    private readonly customerCards: CustomerCardsService,
  ) {}

  async render(events: StoredEvent[]): Promise<Map<string, Rendered>> {
    const states = await this.folds.statesAround(customerRows, events);
    const updated = events.filter(({ revision }) => revision > 0);
    const cards = await this.customerCards.ofCustomers(
      updated.map(({ id, stream }) => found(states.get(id), stream).after.id),
    );
    return new Map(
      events.map((event) => {
        const { before, after } = found(states.get(event.id), event.stream);
        const { revision } = event;
        const told = { ...recorded<ToldCustomerEvent>(customerRows.aggregate, event), revision };
        const publicEvent = publicCustomerEvent(told, {
          // A customer's cards come later than the customer: right after its creation there are none.
          customer: customerJson(after, revision > 0 ? (cards.get(after.id) ?? []) : []),
          before: before && customerJson(before, []),
        });
        return [event.id, { event: publicEvent, customerId: after.id }];
      }),
    );
  }
}
