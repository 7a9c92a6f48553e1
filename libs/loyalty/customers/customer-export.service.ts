import { Injectable } from '@nestjs/common';
import type {
  Aggregate,
  CommandContext,
  DomainEvent,
  RecordedEvent,
} from '#platform/kernel/aggregate.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { RepeatedAudits } from '#platform/event-store/commands/repeated-audits.service.js';
import { ReadModels, toStreamName } from '#platform/event-store/read-models/read-models.js';
import { getAddressKey } from '#platform/http/rate-limit.js';
import { customerCard } from '#loyalty/stamping/customer-card.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { customer } from './customer.js';
import {
  toExportedConsents,
  toExportedEventJson,
  type CustomerExportJson,
  type ExportedConsentJson,
} from './customer-export.dto.js';
import { CustomersService } from './customers.service.js';
import type { CustomerJson } from './customer.dto.js';
import { customerReadModel } from './customer.entity.js';
import { loadPerson } from './one-person.js';

type ExportHeader = Omit<CustomerExportJson, 'history' | 'consents'>;

/** Exports all data on one person, merged customers included. Of an erased person, what is left. */
@Injectable()
export class CustomerExport {
  constructor(
    private readonly events: EventStore,
    private readonly keys: PersonalKeys,
    private readonly readModels: ReadModels,
    private readonly customers: CustomersService,
    private readonly customerCards: CustomerCardsService,
    private readonly repeated: RepeatedAudits,
  ) {}

  /**
   * Streams a CustomerExportJson in parts, because a history may be long; only one page of it is in memory.
   * @throws NotFoundError before the first part
   */
  async createExport(by: CommandContext, id: number, now: Date): Promise<AsyncGenerator<string>> {
    const { accountId } = by;
    const all = await loadPerson(id, async (customerId) => {
      const loaded = await this.readModels.loadCurrent(customerReadModel, customerId);
      if (loaded?.state.accountId !== accountId) throw new NotFoundError('Customer');
      return loaded.state;
    });
    const person = await this.customers.get(accountId, id);
    const others: CustomerJson[] = [];
    for (const customerOfPerson of all) {
      if (customerOfPerson.id !== id)
        others.push(await this.customers.get(accountId, customerOfPerson.id));
    }
    const cards = await this.customerCards.listIds(
      all.map((customerOfPerson) => customerOfPerson.id),
    );
    await this.audit(by, id);
    return this.streamParts(
      { exported_at: now.toISOString(), customer: person, merged_customers: others },
      cards.map((card) => card.id),
    );
  }

  private async audit(by: CommandContext, id: number): Promise<void> {
    const { accountId, actor, ipAddress } = by;
    const kind = ['customer export', id, actor.type, actor.id, getAddressKey(ipAddress)];
    await this.repeated.write(by, kind, (transaction, times) =>
      transaction.audit({
        accountIds: [accountId],
        type: 'customer.exported',
        subject: { customer_id: id, times },
      }),
    );
  }

  private async *streamParts(
    { exported_at, customer: person, merged_customers }: ExportHeader,
    cardIds: number[],
  ): AsyncGenerator<string> {
    const header = JSON.stringify({ exported_at, customer: person, merged_customers });
    yield `${header.slice(0, -1)},"history":[`;
    const consents: ExportedConsentJson[] = [];
    let comma = '';
    for (const { id } of [person, ...merged_customers]) {
      for await (const page of this.readPages(customer, id)) {
        for (const event of page) consents.push(...toExportedConsents(event));
        yield comma + joinEntries(page.map((event) => toExportedEventJson(customer, id, event)));
        comma = ',';
      }
    }
    for (const id of cardIds) {
      for await (const page of this.readPages(customerCard, id)) {
        yield (
          comma + joinEntries(page.map((event) => toExportedEventJson(customerCard, id, event)))
        );
        comma = ',';
      }
    }
    yield `],"consents":${JSON.stringify(consents)}}`;
  }

  private async *readPages<S extends { accountId: number }, E extends DomainEvent>(
    aggregate: Aggregate<S, E>,
    id: number,
  ): AsyncGenerator<(RecordedEvent<E> & { revision: number })[]> {
    for await (const page of this.events.readPages(toStreamName(aggregate, id)))
      yield (await this.keys.openEvents(page)).map((event) => ({
        ...toRecorded<E>(aggregate, event),
        revision: event.revision,
      }));
  }
}

function joinEntries(entries: object[]): string {
  return entries.map((entry) => JSON.stringify(entry)).join(',');
}
