import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { renderAccountVersion } from '#platform/database/account-version.js';
import { Config } from '#configuration/config.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import {
  PersonalKeys,
  type WrappedKey,
} from '#platform/event-store/personal-keys/personal-keys.js';
import type { Snapshot } from '#platform/event-store/read-models/fold-stream.js';
import { toStreamName } from '#platform/event-store/read-models/read-models.js';
import type { CustomerCard, Template } from '#loyalty/stamping/customer-card.js';
import {
  toCustomerCardDetailJson,
  toCustomerCardJson,
} from '#loyalty/stamping/customer-card.dto.js';
import { customerCardReadModel, PASS_INSTALLED } from '#loyalty/stamping/customer-card.entity.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import {
  getDefined,
  type EventRenderer,
  type Render,
  type RenderedEvent,
} from './event-renderer.js';
import {
  toPublicCustomerCardEvent,
  type CustomerName,
  type PublishedCustomerCardEvent,
} from './public-events.js';
import { StreamProjections } from './stream-projections.service.js';

/** The name of an erased customer. */
const ERASED_NAME = { first_name: 'Erased', last_name: null, email: null, phone: null };

const FIND_NAMES = {
  name: 'webhook_customer_names',
  text: 'select id, first_name, last_name, email, phone from customer_names where id = any ($1)',
};

/** Reads everything that a batch of events needs besides its streams, except templates that are not cached. */
const READ_RENDER_CONTEXT = {
  name: 'webhook_customer_cards',
  text: `
    with r as materialized (
      select r.id, r.account_id, r.revision, r.card_id, r.customer_id,
        case when w.needs_state and r.projection_version = $3 then r.state end as state, ${PASS_INSTALLED} as installed
      from unnest($1::bigint[], $2::boolean[]) as w (id, needs_state) join customer_cards r on r.id = w.id
    )
    select r.*, ${renderAccountVersion('r.account_id')} as version, n.id as named, n.first_name, n.last_name, n.email, n.phone,
      k.wrapped, k.previous_wrapped, k.is_renewed
    from r left join customer_names n on n.id = r.customer_id
    left join personal_keys k on k.subject_id = r.customer_id`,
};

type RenderContextRow = Omit<CustomerName, 'id'> & {
  id: number;
  revision: number;
  card_id: number;
  customer_id: number;
  state: CustomerCard | null;
  installed: boolean;
  /** The version of the store. */
  version: number;
  /** The customer's id; null when they have no read model. */
  named: number | null;
} & (WrappedKey | Record<keyof WrappedKey, null>);

type RenderContext = {
  snapshots: Map<string, Snapshot<CustomerCard>>;
  names: Map<number, CustomerName>;
  templates: Map<number, Template>;
  installed: Set<number>;
};

@Injectable()
export class CustomerCardRenderer implements EventRenderer {
  readonly aggregate = customerCardReadModel.name;

  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly projections: StreamProjections,
    private readonly templates: TemplatesService,
    private readonly config: Config,
  ) {}

  mayTakeLong(): boolean {
    return false;
  }

  async prepare(events: StoredEvent[]): Promise<Render> {
    const context = await this.readRenderContext(events);
    return (opened, isErased) => this.render(opened, isErased, context);
  }

  private async render(
    events: StoredEvent[],
    isErased: (customerId: number) => boolean,
    { snapshots, installed, templates, ...read }: RenderContext,
  ): Promise<Map<string, RenderedEvent>> {
    const states = await this.projections.projectAfter(customerCardReadModel, events, snapshots);
    const cards = [...states.values()];
    const names = await this.completeNames(cards, read.names);
    return new Map(
      events.map((event) => {
        const state = getDefined(states.get(event.id), event.stream);
        const template = getDefined(templates.get(state.cardId), `card ${state.cardId}`);
        const renderContext = {
          template,
          now: new Date(event.meta.recordedAt),
          publicUrl: this.config.publicUrl,
          passInstalled: installed.has(state.id),
        };
        const recordedEvent = {
          ...toRecorded<PublishedCustomerCardEvent>(customerCardReadModel, event),
          revision: event.revision,
        };
        const publicEvent = toPublicCustomerCardEvent(recordedEvent, {
          state,
          cardName: template.name,
          list: toCustomerCardJson(state, renderContext),
          detail: () => toCustomerCardDetailJson(state, renderContext),
          customer: isErased(state.customerId)
            ? { id: state.customerId, ...ERASED_NAME }
            : getDefined(names.get(state.customerId), `customer ${state.customerId}`),
        });
        return [event.id, { event: publicEvent, customerId: state.customerId }];
      }),
    );
  }

  private async readRenderContext(events: StoredEvent[]): Promise<RenderContext> {
    const needsState = new Map<number, boolean>();
    for (const event of events) {
      const id = Number(event.stream.slice(this.aggregate.length + 1));
      if (!needsState.has(id)) needsState.set(id, this.projections.needsSnapshot(event));
    }
    const requestedAt = performance.now();
    const { rows } = await this.pool.query<RenderContextRow>({
      ...READ_RENDER_CONTEXT,
      values: [
        [...needsState.keys()],
        [...needsState.values()],
        customerCardReadModel.projectionVersion,
      ],
    });
    const snapshots = new Map<string, Snapshot<CustomerCard>>();
    const names = new Map<number, CustomerName>();
    const versions = new Map<number, number>();
    const installed = new Set<number>();
    for (const row of rows) {
      const { id, revision, state } = row;
      if (state) snapshots.set(toStreamName(customerCardReadModel, id), { state, revision });
      if (row.named !== null) names.set(row.named, toCustomerName({ ...row, id: row.named }));
      versions.set(row.card_id, row.version);
      if (row.installed) installed.add(id);
      this.keys.remember(row.customer_id, row.wrapped === null ? null : row, requestedAt);
    }
    return {
      snapshots,
      names,
      templates: await this.templates.getAllAtVersion(versions),
      installed,
    };
  }

  /** Adds missing names: a card may have had another customer at the time of an event. */
  private async completeNames(
    cards: CustomerCard[],
    read: Map<number, CustomerName>,
  ): Promise<Map<number, CustomerName>> {
    const ids = listMissing(cards, ({ customerId }) => customerId, read);
    if (ids.length === 0) return read;
    return new Map([...read, ...(await this.readNames(ids))]);
  }

  private async readNames(ids: number[]): Promise<Map<number, CustomerName>> {
    const { rows } = await this.pool.query<CustomerName>({ ...FIND_NAMES, values: [ids] });
    return new Map(rows.map((row) => [row.id, toCustomerName(row)]));
  }
}

function listMissing(
  cards: CustomerCard[],
  getId: (card: CustomerCard) => number,
  present: Map<number, unknown>,
): number[] {
  return [...new Set(cards.map(getId))].filter((id) => !present.has(id));
}

function toCustomerName(row: CustomerName): CustomerName {
  const { id, first_name, last_name, email, phone } = row;
  return { id, first_name, last_name, email, phone };
}
