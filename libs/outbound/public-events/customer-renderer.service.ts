import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { DamagedHistoryError } from '#platform/kernel/errors.js';
import { EventStore, type StoredEvent } from '#platform/event-store/port/event-store.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { ReadModels, toStreamName } from '#platform/event-store/read-models/read-models.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { redact, type Customer } from '#loyalty/customers/customer.js';
import { toCustomerJson } from '#loyalty/customers/customer.dto.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import { withPerson } from '#loyalty/customers/resealing.js';
import {
  getDefined,
  type EventRenderer,
  type Render,
  type RenderedEvent,
} from './event-renderer.js';
import { toPublicCustomerEvent, type PublishedCustomerEvent } from './public-events.js';
import { StreamProjections } from './stream-projections.service.js';

const MERGE_TYPES = new Set([
  'CustomerMerged',
  'CustomerMergedAway',
  'CustomerUnmerged',
  'CustomerRestored',
]);

@Injectable()
export class CustomerRenderer implements EventRenderer {
  readonly aggregate = customerReadModel.name;

  constructor(
    private readonly pool: Pool,
    private readonly projections: StreamProjections,
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    private readonly keys: PersonalKeys,
    private readonly customerCards: CustomerCardsService,
  ) {}

  mayTakeLong({ type }: StoredEvent): boolean {
    return MERGE_TYPES.has(type);
  }

  /** Reads nothing ahead: whether a merge is finished can only be read after its event was read from the log. */
  prepare(): Promise<Render> {
    return Promise.resolve((events, isErased) => this.render(events, isErased));
  }

  private async render(
    events: StoredEvent[],
    isErased: (customerId: number) => boolean,
  ): Promise<Map<string, RenderedEvent>> {
    const states = await this.projections.projectAround(customerReadModel, events);
    const merged = events.filter(({ type }) => MERGE_TYPES.has(type));
    // The cards belong to the surviving customer then.
    if (merged.length > 0)
      await this.eventStore.waitUntilComplete(merged.map(({ stream }) => stream));
    const updated = events.filter(({ revision }) => revision > 0);
    const cards = await this.customerCards.listByCustomer(
      updated.map(({ id, stream }) => getDefined(states.get(id), stream).after.id),
    );
    const erasedAt = await this.findErasureTimes(
      [...states.values()].map(({ after }) => after.id).filter(isErased),
    );
    const renewalByCustomer = await this.findRenewals(
      [...states.values()].map(({ after }) => after.id),
    );
    const redactIfErased = (state: Customer, revision: number) => {
      if (isErased(state.id)) {
        return { ...redact(state), erasedAt: erasedAt.get(state.id) ?? state.erasedAt };
      }
      const renewal = renewalByCustomer.get(state.id);
      return renewal && revision < renewal.revision ? withPerson(state, renewal.now) : state;
    };
    return new Map(
      events.map((event) => {
        const { before, after } = getDefined(states.get(event.id), event.stream);
        const { revision } = event;
        const recordedEvent = {
          ...toRecorded<PublishedCustomerEvent>(customerReadModel, event),
          revision,
        };
        const publicEvent = toPublicCustomerEvent(recordedEvent, {
          // Cards are issued after the customer was created, so right after the creation there are none.
          customer: toCustomerJson(
            redactIfErased(after, revision),
            revision > 0 ? (cards.get(after.id) ?? []) : [],
          ),
          before: before && toCustomerJson(redactIfErased(before, revision), []),
        });
        return [event.id, { event: publicEvent, customerId: after.id }];
      }),
    );
  }

  /**
   * Finds the current state of customers whose key was renewed, and the event that recorded it again. Earlier events
   * cannot be decrypted any more, except by a process that has cached their projection. Where a
   * tombstone or an access list keeps that event from being read, all have the current state: others must not wait for the
   * repair of the stream.
   */
  private async findRenewals(
    ids: number[],
  ): Promise<Map<number, { revision: number; now: Customer }>> {
    const renewals = new Map<number, { revision: number; now: Customer }>();
    for (const id of await this.keys.findRenewed(ids)) {
      const revision = await this.findResealing(toStreamName(customerReadModel, id));
      const now = await (revision === Infinity
        ? this.readModels.load(customerReadModel, id)
        : this.readModels.loadCurrent(customerReadModel, id));
      if (now && revision !== undefined) renewals.set(id, { revision, now: now.state });
    }
    return renewals;
  }

  private async findResealing(stream: string): Promise<number | undefined> {
    try {
      const events = this.eventStore.readStream(stream, { direction: 'backwards' });
      for await (const { type, revision } of events)
        if (type === 'CustomerResealed') return revision;
      return undefined;
    } catch (error) {
      if (error instanceof DamagedHistoryError) return Infinity;
      throw error;
    }
  }

  /**
   * Finds when customers were erased. Every event shows it, so that receivers do not mistake an old event for a current
   * one.
   */
  private async findErasureTimes(ids: number[]): Promise<Map<number, string>> {
    if (ids.length === 0) return new Map();
    const { rows } = await this.pool.query<{ id: number; erased_at: string | null }>({
      name: 'webhook_customers_erased',
      text: `select id, erased_at from customers where id = any ($1)`,
      values: [ids],
    });
    return new Map(
      rows.flatMap(({ id, erased_at }) => (erased_at === null ? [] : [[id, erased_at]])),
    );
  }
}
