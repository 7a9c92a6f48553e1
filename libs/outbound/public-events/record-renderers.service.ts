import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { DomainEvent } from '#platform/kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { NOBODY } from '#platform/event-store/personal-keys/personal-keys.js';
import type { ReadModel } from '#platform/event-store/read-models/read-models.js';
import { account, type Account } from '#loyalty/accounts/account.js';
import { toAccountJson, type AccountCounts } from '#loyalty/accounts/account.dto.js';
import { ACCOUNT_COUNTS } from '#loyalty/accounts/accounts.service.js';
import { card, type Card } from '#loyalty/cards/card.js';
import { toCardJson } from '#loyalty/cards/card.dto.js';
import { CARD_COUNTS } from '#loyalty/cards/cards.service.js';
import { toLocationJson } from '#loyalty/locations/location.dto.js';
import { location } from '#loyalty/locations/location.js';
import { toPosterJson } from '#loyalty/posters/poster.dto.js';
import { PosterFonts } from '#loyalty/posters/poster-fonts.service.js';
import { posterReadModel } from '#loyalty/posters/poster.entity.js';
import { toRewardJson } from '#loyalty/rewards/reward.dto.js';
import { reward } from '#loyalty/rewards/reward.js';
import {
  getDefined,
  type EventRenderer,
  type Render,
  type RenderedEvent,
} from './event-renderer.js';
import { toPublicRecordEvent } from './public-events.js';
import { StreamProjections } from './stream-projections.service.js';

type CardCounts = Parameters<typeof toCardJson>[1];

/** Renders the JSON of a record, with what was counted of it. */
type ToJson<S, C> = (state: S, counts: C | undefined) => object;

/** Counts what the JSON of some records has besides their states. @returns by id */
type Count<C> = (ids: number[]) => Promise<Map<number, C>>;

const NO_CARD_COUNTS: CardCounts = { rewards: 0, customerCards: 0 };
const NO_ACCOUNT_COUNTS: AccountCounts = { cards: 0, customers: 0, locations: 0, posters: 0 };

const COUNT_OF_CARDS = {
  name: 'webhook_card_counts',
  text: `select c.id, ${CARD_COUNTS} from unnest($1::bigint[]) as c (id)`,
};

const COUNT_OF_ACCOUNTS = {
  name: 'webhook_account_counts',
  text: `select a.id, ${ACCOUNT_COUNTS} from unnest($1::bigint[]) as a (id)`,
};

/** Holds a renderer for each aggregate whose records are published as the API shows them. No customer is among them. */
@Injectable()
export class RecordRenderers {
  readonly all: EventRenderer[];

  constructor(
    private readonly pool: Pool,
    projections: StreamProjections,
    { publicUrl }: Config,
    fonts: PosterFonts,
  ) {
    this.all = [
      new RecordRenderer(projections, card, renderCard, (ids) => this.countCards(ids)),
      new RecordRenderer(projections, reward, toRewardJson),
      new RecordRenderer(projections, location, toLocationJson),
      new RecordRenderer(projections, posterReadModel, (state) =>
        toPosterJson(state, { publicUrl, illegible: fonts.listIllegible(state.title) }),
      ),
      new RecordRenderer(
        projections,
        account,
        (state, counts: AccountCounts | undefined) => renderAccount(state, counts, publicUrl),
        (ids) => this.countAccounts(ids),
      ),
    ];
  }

  private async countCards(ids: number[]): Promise<Map<number, CardCounts>> {
    const { rows } = await this.pool.query<{ id: number; rewards: number; customer_cards: number }>(
      { ...COUNT_OF_CARDS, values: [ids] },
    );
    return new Map(
      rows.map(({ id, rewards, customer_cards }) => [
        id,
        { rewards, customerCards: customer_cards },
      ]),
    );
  }

  private async countAccounts(ids: number[]): Promise<Map<number, AccountCounts>> {
    const { rows } = await this.pool.query<AccountCounts & { id: number }>({
      ...COUNT_OF_ACCOUNTS,
      values: [ids],
    });
    return new Map(rows.map((row) => [row.id, row]));
  }
}

/**
 * Renders the events of an aggregate as its record right after each of them. Its own stream holds all of the record, except
 * for counts.
 */
class RecordRenderer<
  S extends { id: number; accountId: number },
  E extends DomainEvent,
  C = undefined,
> implements EventRenderer {
  readonly aggregate: string;

  constructor(
    private readonly projections: StreamProjections,
    private readonly readModel: ReadModel<S, E>,
    private readonly toJson: ToJson<S, C>,
    private readonly count?: Count<C>,
  ) {
    this.aggregate = readModel.name;
  }

  mayTakeLong({ revision }: StoredEvent): boolean {
    return this.count !== undefined && revision > 0;
  }

  /** Reads nothing ahead: the cache of projections decides which streams are read. */
  prepare(): Promise<Render> {
    return Promise.resolve((events) => this.render(events));
  }

  private async render(events: StoredEvent[]): Promise<Map<string, RenderedEvent>> {
    const states = await this.projections.projectAfter(this.readModel, events, new Map());
    const getState = ({ id, stream }: StoredEvent) => getDefined(states.get(id), stream);
    // Right after its creation a record has nothing to count.
    const changedIds = events.flatMap((event) => (event.revision > 0 ? [getState(event).id] : []));
    const counts = changedIds.length > 0 ? await this.count?.([...new Set(changedIds)]) : undefined;
    return new Map(
      events.map((event) => {
        const state = getState(event);
        const { revision } = event;
        const recordedEvent = { ...toRecorded<E>(this.readModel, event), revision };
        const json = this.toJson(state, revision > 0 ? counts?.get(state.id) : undefined);
        const publicEvent = toPublicRecordEvent(recordedEvent, this.readModel.events, json);
        return [event.id, { event: publicEvent, customerId: NOBODY }];
      }),
    );
  }
}

function renderCard(card: Card, counts = NO_CARD_COUNTS): object {
  return toCardJson(card, counts);
}

function renderAccount(
  account: Account,
  counts: AccountCounts = NO_ACCOUNT_COUNTS,
  publicUrl: string,
): object {
  return toAccountJson(account, counts, account.personal, publicUrl);
}
