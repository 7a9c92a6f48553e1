import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import type { StoredEvent } from '#event-store/event-store.js';
import { recorded } from '#event-store/rows.js';
import { customerCardDetailJson, customerCardJson } from '#stamping/customer-card.dto.js';
import { customerCardRows } from '#stamping/customer-card.entity.js';
import type { CustomerCardEvent } from '#stamping/customer-card.events.js';
import { TemplatesService } from '#stamping/templates.service.js';
import { found, type EventRenderer, type Rendered } from './event-renderer.js';
import { publicCustomerCardEvent, type CustomerName } from './public-events.js';
import { StreamFolds } from './stream-folds.service.js';

const NAMES = {
  name: 'webhook_customer_names',
  text: 'select id, first_name, last_name, email, phone from customer_names where id = any ($1)',
};

@Injectable()
export class CustomerCardRenderer implements EventRenderer {
  readonly aggregate = customerCardRows.aggregate.name;

  constructor(
    private readonly pool: Pool,
    private readonly folds: StreamFolds,
    private readonly templates: TemplatesService,
    private readonly config: Config,
  ) {}

  async render(events: StoredEvent[]): Promise<Map<string, Rendered>> {
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
        const renderContext = {
          template,
          now: new Date(event.meta.recordedAt),
          publicUrl: this.config.publicUrl,
        };
        const publicEvent = publicCustomerCardEvent(recorded<CustomerCardEvent>(event), {
          state,
          cardName: template.name,
          list: customerCardJson(state, renderContext),
          detail: customerCardDetailJson(state, renderContext),
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
