import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { estimateBytes } from '#platform/kernel/rough-bytes.js';
import { Batcher } from '#platform/database/batcher.js';
import { query } from '#platform/database/connection.js';
import { renderAccountVersion } from '#platform/database/account-version.js';
import { PastStates, type PointInTime } from '#platform/event-store/log/past-states.service.js';
import type { LoadedReadModel } from '#platform/event-store/read-models/read-models.js';
import { card, type Card } from '#loyalty/cards/card.js';
import { reward, type Reward } from '#loyalty/rewards/reward.js';
import { isHeldBy, type CardPath } from './card-holder.js';
import type { CustomerCard, ShownTemplate, Template } from './customer-card.js';
import { getExtraValues } from './customer-card.entity.js';
import type { ActionDetails } from './customer-card.events.js';
import type { Milestone } from './unlocked-rewards.js';
import { ISSUES } from '#translations/issues.js';

/** @property storeVersion of the store as its parts were read */
type Versioned = { template: Template; accountId: number; storeVersion: number };

type TemplateRow = {
  card: Card;
  account_id: number;
  time_zone: string;
  rewards: Reward[] | null;
  version: number;
  store_version: number;
};

const CACHE_BYTES = 16 * 1024 * 1024;
const MAX_CACHED_LOCATIONS = 10_000;
/** Of loads that are asked for at once, such as those of an import, which are of one card. */
const MAX_BATCHES = 2;
const BATCH_SIZE = 100;

/**
 * The version of a template that events name, over `c`, a card, and `a`, its store: grows with every write to its
 * parts.
 */
const VERSION = `(c.revision + a.revision + coalesce(
  (select sum(w.revision + 1) from rewards w where w.card_id = c.id), 0))::bigint`;

/**
 * `any ($1)` alone would be planned anew each time: a list of one looks cheaper than the ten of a plan for any values.
 */
const TEMPLATES = {
  name: 'templates_load',
  text: `select c.state as card, c.account_id, a.time_zone,
           (select jsonb_agg(w.state) from rewards w where w.card_id = c.id) as rewards,
           ${VERSION} as version, ${renderAccountVersion('c.account_id')} as store_version
         from cards c join accounts a on a.id = c.account_id
         where c.id = any (array(select unnest($1::bigint[])))`,
};

/**
 * Loads what stamping needs of other contexts: the store's locations, and card templates with their rewards. Both are
 * cached while their store's version is the same, so both come only from tables whose writes raise that version
 * (`template_tables` in 5-read-model-writers.sql).
 */
/** The context that an action is decided with and its response is rendered with. */
export type ActionContext = { template: Template; passInstalled: boolean };

@Injectable()
export class TemplatesService {
  private readonly cache = new LRUCache<number, Versioned>({
    maxSize: CACHE_BYTES,
    sizeCalculation: estimateBytes,
  });

  private readonly locations = new LRUCache<number, Omit<Versioned, 'template'>>({
    max: MAX_CACHED_LOCATIONS,
  });

  private readonly loads = new Batcher<number, Versioned | undefined>(
    MAX_BATCHES,
    BATCH_SIZE,
    async (ids) => {
      const loaded = await this.load([...new Set(ids)]);
      return ids.map((id) => ({ status: 'fulfilled', value: loaded.get(id) }));
    },
  );

  constructor(
    private readonly pool: Pool,
    private readonly pastStates: PastStates,
  ) {}

  /** @param version of the store, as read together with one of its customer cards */
  async getAtVersion(cardId: number, version: number): Promise<Template> {
    const cached = this.findCached(cardId, version);
    const template = cached ?? (await this.load([cardId])).get(cardId)?.template;
    if (!template) throw new Error(`card ${cardId} has customer cards but no row`);
    return template;
  }

  /** @param versions of stores by card id, as just read */
  async getAllAtVersion(versions: Map<number, number>): Promise<Map<number, Template>> {
    const templates = new Map<number, Template>();
    const changed: number[] = [];
    for (const [id, version] of versions) {
      const cached = this.findCached(id, version);
      if (cached) templates.set(id, cached);
      else changed.push(id);
    }
    if (changed.length === 0) return templates;
    for (const [id, { template }] of await this.load(changed)) templates.set(id, template);
    return templates;
  }

  /** Finds the template without a query, if that version is cached. */
  findCached(cardId: number, version: number): Template | undefined {
    const cached = this.cache.get(cardId);
    return cached?.storeVersion === version ? cached.template : undefined;
  }

  /** Gets the template as of now. @throws NotFoundError when the store has no such card */
  async get(accountId: number, cardId: number): Promise<Template> {
    const loaded = await this.loads.add(cardId);
    if (loaded?.accountId !== accountId) throw new NotFoundError('Card');
    return loaded.template;
  }

  /** Finds the templates as of a moment in the past, by card id. */
  async findPast(cardIds: number[], past: PointInTime): Promise<Map<number, ShownTemplate>> {
    const ids = await query<{ id: number }>(this.pool, {
      name: 'templates_rewards',
      text: 'select id from rewards where card_id = any ($1)',
      values: [cardIds],
    });
    const [cards, rewards] = await Promise.all([
      this.pastStates.projectAll(card, cardIds, past),
      this.pastStates.projectAll(
        reward,
        ids.map(({ id }) => id),
        past,
      ),
    ]);
    return new Map(
      cards.map(({ id, name, stampsRequired, expiresAt }) => {
        const own = toMilestones(rewards.filter(({ cardId }) => cardId === id));
        return [id, { name, stampsRequired, expiresAt, rewards: own }];
      }),
    );
  }

  /** Tells without a query whether the store has this location, if that is cached for the version of the store. */
  hasCachedLocation(accountId: number, id: number, version: number): boolean {
    const cached = this.locations.get(id);
    return cached?.accountId === accountId && cached.storeVersion === version;
  }

  /** Tells whether the store has this location and has not deleted it. */
  async hasLocation(accountId: number, id: number): Promise<boolean> {
    const [location] = await query<{ store_version: number }>(this.pool, {
      name: 'templates_location',
      text: `select ${renderAccountVersion('l.account_id')} as store_version from locations l
             where l.id = $1 and l.account_id = $2 and l.deleted_at is null`,
      values: [id, accountId],
    });
    if (!location) return false;
    this.locations.set(id, { accountId, storeVersion: location.store_version });
    return true;
  }

  /** Loads the templates as of now, by card id. */
  async load(cardIds: number[]): Promise<Map<number, Versioned>> {
    if (cardIds.length === 0) return new Map();
    const rows = await query<TemplateRow>(this.pool, { ...TEMPLATES, values: [cardIds] });
    const loaded = rows.map((row): [number, Versioned] => [
      row.card.id,
      {
        template: createTemplate(row),
        accountId: row.account_id,
        storeVersion: row.store_version,
      },
    ]);
    for (const [id, versioned] of loaded) this.cache.set(id, versioned);
    return new Map(loaded);
  }

  /** Loads what an action is decided on. A path without a customer card is reported before any invalid field. */
  loadForAction(
    loaded: LoadedReadModel<CustomerCard> | undefined,
    { customerId }: CardPath,
    { locationId }: Pick<ActionDetails, 'locationId'>,
  ): Awaitable<ActionContext> {
    if (!loaded || !isHeldBy(loaded.state, customerId)) throw new NotFoundError('Customer card');
    const { accountId, cardId } = loaded.state;
    const { storeVersion, passInstalled } = getExtraValues(loaded);
    const template = this.findCached(cardId, storeVersion);
    const hasLocation =
      locationId === null || this.hasCachedLocation(accountId, locationId, storeVersion);
    if (template && hasLocation) return { template, passInstalled };
    const load = async () => {
      if (!hasLocation && !(await this.hasLocation(accountId, locationId))) {
        throw new RejectedError({ location_id: [ISSUES.foreign_location] });
      }
      return { template: await this.getAtVersion(cardId, storeVersion), passInstalled };
    };
    return load();
  }
}

function createTemplate({ card, time_zone, rewards, version }: TemplateRow): Template {
  return {
    cardId: card.id,
    version,
    name: card.name,
    stampsRequired: card.stampsRequired,
    initialStamps: card.initialStamps,
    expiresAt: card.expiresAt,
    archivedAt: card.archivedAt,
    maxStampsPerRequest: card.maxStampsPerRequest,
    maxStampsPerDay: card.maxStampsPerDay,
    minSecondsBetweenStamps: card.minSecondsBetweenStamps,
    timeZone: time_zone,
    rewards: toMilestones(rewards ?? []),
  };
}

/** Selects the rewards that are not deleted, cheapest first. */
export function toMilestones(rewards: Reward[]): Milestone[] {
  return rewards
    .filter((reward) => reward.deletedAt === null)
    .sort((a, b) => a.stampsRequired - b.stampsRequired || a.id - b.id)
    .map(({ id, name, description, stampsRequired, active }) => ({
      id,
      name,
      description,
      stampsRequired,
      active,
    }));
}
