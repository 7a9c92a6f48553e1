import { Injectable } from '@nestjs/common';
import type { Aggregate, DomainEvent, Recorded } from '#kernel/aggregate.js';
import { recorded } from '#event-store/codec.js';
import { EventStore, type StoredEvent } from '#event-store/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { streamOf } from '#event-store/rows.js';
import { customerCard } from '#stamping/customer-card.js';
import { customer } from './customer.js';
import {
  exportedConsents,
  exportedEventJson,
  type CustomerExportJson,
  type ExportedConsentJson,
} from './customer-export.dto.js';
import { CustomersService } from './customers.service.js';
import type { CustomerJson } from './customer.dto.js';

const PAGE = 200;

/** All that is held on one person. Of somebody who was erased, what is left. */
@Injectable()
export class CustomerExport {
  constructor(
    private readonly events: EventStore,
    private readonly keys: PersonalKeys,
    private readonly customers: CustomersService,
  ) {}

  /**
   * A CustomerExportJson in parts, because a history may be long; no more than a page of it is in memory.
   * @throws NotFoundError before the first part
   */
  async of(accountId: number, id: number, now: Date): Promise<AsyncGenerator<string>> {
    return this.parts(await this.customers.find(accountId, id), now);
  }

  private async *parts(person: CustomerJson, now: Date): AsyncGenerator<string> {
    const { exported_at, customer: shown }: Omit<CustomerExportJson, 'history' | 'consents'> = {
      exported_at: now.toISOString(),
      customer: person,
    };
    yield `{"exported_at":${JSON.stringify(exported_at)},"customer":${JSON.stringify(shown)},"history":[`;
    const consents: ExportedConsentJson[] = [];
    let comma = '';
    for await (const page of this.pages(customer, person.id)) {
      for (const event of page) consents.push(...exportedConsents(event));
      yield comma + listed(page.map((event) => exportedEventJson(customer, person.id, event)));
      comma = ',';
    }
    for (const { id } of person.customer_cards) {
      for await (const page of this.pages(customerCard, id)) {
        yield comma + listed(page.map((event) => exportedEventJson(customerCard, id, event)));
        comma = ',';
      }
    }
    yield `],"consents":${JSON.stringify(consents)}}`;
  }

  private async *pages<S extends { accountId: number }, E extends DomainEvent>(
    aggregate: Aggregate<S, E>,
    id: number,
  ): AsyncGenerator<(Recorded<E> & { revision: number })[]> {
    const opened = async (page: StoredEvent[]) =>
      (await this.keys.opened(page)).map((event) => ({
        ...recorded<E>(aggregate, event),
        revision: event.revision,
      }));
    let page: StoredEvent[] = [];
    for await (const event of this.events.readStream(streamOf(aggregate, id))) {
      page.push(event);
      if (page.length < PAGE) continue;
      yield opened(page);
      page = [];
    }
    if (page.length > 0) yield opened(page);
  }
}

function listed(entries: object[]): string {
  return entries.map((entry) => JSON.stringify(entry)).join(',');
}
