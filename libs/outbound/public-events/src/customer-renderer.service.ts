import { Injectable } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import { UnavailableError } from '#kernel/errors.js';
import { EventStore, type StoredEvent } from '#event-store/event-store.js';
import { recorded } from '#event-store/codec.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { Rows, streamOf } from '#event-store/rows.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { redacted, type Customer } from '#customers/customer.js';
import { customerJson } from '#customers/customer.dto.js';
import { customerRows } from '#customers/customer.entity.js';
import { withPerson } from '#customers/resealing.js';
import { found, type EventRenderer, type Render, type Rendered } from './event-renderer.js';
import { publicCustomerEvent, type ToldCustomerEvent } from './public-events.js';
import { StreamFolds } from './stream-folds.service.js';

const MERGING = new Set([
  'CustomerMerged',
  'CustomerMergedAway',
  'CustomerUnmerged',
  'CustomerRestored',
]);
const WRITTEN_WITHIN_MS = 15_000;
const LOOK_AGAIN_MS = 50;

@Injectable()
export class CustomerRenderer implements EventRenderer {
  readonly aggregate = customerRows.aggregate.name;

  constructor(
    private readonly pool: Pool,
    private readonly folds: StreamFolds,
    private readonly store: EventStore,
    private readonly rows: Rows,
    private readonly keys: PersonalKeys,
    private readonly customerCards: CustomerCardsService,
  ) {}

  waitsFor({ type }: StoredEvent): boolean {
    return MERGING.has(type);
  }

  /** Whether a merge is finished, and so what it has done, can be read only after it was seen in the log. */
  prepare(): Promise<Render> {
    return Promise.resolve((events, isErased) => this.render(events, isErased));
  }

  private async render(
    events: StoredEvent[],
    isErased: (customerId: number) => boolean,
  ): Promise<Map<string, Rendered>> {
    const states = await this.folds.statesAround(customerRows, events);
    await this.settled(events.filter(({ type }) => MERGING.has(type)));
    const updated = events.filter(({ revision }) => revision > 0);
    const cards = await this.customerCards.ofCustomers(
      updated.map(({ id, stream }) => found(states.get(id), stream).after.id),
    );
    const erasedAt = await this.erasedAt(
      [...states.values()].map(({ after }) => after.id).filter(isErased),
    );
    const renewals = await this.renewals([...states.values()].map(({ after }) => after.id));
    const shown = (state: Customer, revision: number) => {
      if (isErased(state.id)) {
        return { ...redacted(state), erasedAt: erasedAt.get(state.id) ?? state.erasedAt };
      }
      const renewal = renewals.get(state.id);
      return renewal && revision < renewal.revision ? withPerson(state, renewal.now) : state;
    };
    return new Map(
      events.map((event) => {
        const { before, after } = found(states.get(event.id), event.stream);
        const { revision } = event;
        const told = { ...recorded<ToldCustomerEvent>(customerRows.aggregate, event), revision };
        const publicEvent = publicCustomerEvent(told, {
          // A customer's cards come later than the customer: right after its creation there are none.
          customer: customerJson(
            shown(after, revision),
            revision > 0 ? (cards.get(after.id) ?? []) : [],
          ),
          before: before && customerJson(shown(before, revision), []),
        });
        return [event.id, { event: publicEvent, customerId: after.id }];
      }),
    );
  }

  /**
   * Where a merge is written stream by stream, its first event is there before the cards have changed hands.
   * @throws UnavailableError
   */
  private async settled(events: StoredEvent[]): Promise<void> {
    if (events.length === 0) return;
    const streams = events.map(({ stream }) => stream);
    for (const deadline = performance.now() + WRITTEN_WITHIN_MS; ; await wait(LOOK_AGAIN_MS)) {
      const { rowCount } = await this.pool.query({
        name: 'webhook_customers_merging',
        text: 'select 1 from es.intent_streams where stream_id = any ($1)',
        values: [streams],
      });
      if (rowCount === 0) return;
      if (performance.now() > deadline)
        throw new UnavailableError('A merge has not been finished yet');
    }
  }

  /**
   * Of those whose key was renewed: what is known of them now, and the event that said it anew. Before that their history
   * cannot be read any more, except by a process that remembers a fold of it.
   */
  private async renewals(ids: number[]): Promise<Map<number, { revision: number; now: Customer }>> {
    const renewals = new Map<number, { revision: number; now: Customer }>();
    for (const id of await this.keys.renewedAmong(ids)) {
      const now = await this.rows.load(customerRows, id, true);
      const stream = streamOf(customerRows.aggregate, id);
      for await (const { type, revision } of this.store.readStream(stream, {
        direction: 'backwards',
      })) {
        if (type !== 'CustomerResealed') continue;
        if (now) renewals.set(id, { revision, now: now.state });
        break;
      }
    }
    return renewals;
  }

  /** Shown in every event about them, so that a receiver that sees one of before does not take them for present. */
  private async erasedAt(ids: number[]): Promise<Map<number, string>> {
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
