import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { query } from '#platform/database/connection.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { account } from '#loyalty/accounts/account.js';
import type { Location } from '#loyalty/locations/location.js';
import { IMPORT_CHANNEL, type CustomerCard } from '#loyalty/stamping/customer-card.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import type { RewardRedeemed } from '#loyalty/stamping/customer-card.events.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { priceRewards, type Milestone } from '#loyalty/stamping/unlocked-rewards.js';
import type { HistoryEntry } from './entry.js';
import { isMovedInMerge, Narrator } from './explanation.js';
import type {
  ExplainedRewardJson,
  ExplanationJson,
  ExplanationStepJson,
  RewardState,
} from './explanation.dto.js';
import {
  assertHasEvent,
  findNote,
  findReceiptOfTill,
  readTextField,
  type DetailedEntry,
} from './history-entry.dto.js';
import { getCardStream, MAX_SEQ } from './history-query.js';
import { toEntry, ENTRY_COLUMNS, type EntryRow } from './history-table.service.js';
import { HistoryService } from './history.service.js';

/** Limits the steps described one by one; a card may have tens of thousands. */
const MAX_STEPS = 250;
/** Limits the cached narrators, one for each language and time zone. */
const MAX_NARRATORS = 100;

/** Finds the last time that each reward was unlocked and redeemed. */
const MILESTONES = {
  name: 'history_milestones',
  text: `select distinct on (reward_id, name) reward_id, name, seq, occurred_at from history
         where stream = $1 and name in ('reward.unlocked', 'reward.redeemed')
         order by reward_id, name, seq desc`,
};

/** Finds the next redemptions after an entry, oldest first. By whole index keys: see `createHistoryQuery`. */
const REDEEMED_SINCE = {
  name: 'history_redeemed_since',
  text: `select ${ENTRY_COLUMNS} from history
         where (stream, seq) > ($1, $2) and (stream, seq) <= ($1, ${MAX_SEQ}) and name = 'reward.redeemed'
         order by stream, seq limit 100`,
};

const TIMES = {
  name: 'history_times_of_events',
  text: 'select event_id, occurred_at from history where event_id = any ($1)',
};

const LOCATIONS = {
  name: 'history_locations',
  text: 'select id, state from locations where id = any ($1)',
};

type Moment = { seq: number; at: Date };

type Milestones = Map<number, { unlocked?: Moment; redeemed?: Moment }>;

/** Explains the balance and the rewards of a customer card. */
@Injectable()
export class ExplanationService {
  private readonly narrators = new LRUCache<string, Narrator>({ max: MAX_NARRATORS });

  constructor(
    private readonly pool: Pool,
    private readonly readModels: ReadModels,
    private readonly history: HistoryService,
    private readonly templates: TemplatesService,
  ) {}

  /**
   * @param locale of the reader; by default that of the store
   * @throws NotFoundError
   */
  async explain(accountId: number, id: number, locale?: string): Promise<ExplanationJson> {
    const [card, store] = await Promise.all([
      this.readModels.loadCurrent(customerCardReadModel, id),
      this.readModels.load(account, accountId),
    ]);
    if (!card || !store) throw new NotFoundError('Customer card');
    const { last, tail } = await this.history.listForCustomerCard(accountId, id, MAX_STEPS + 1);
    const steps = last.toReversed();
    // One more than is shown says whether there are earlier ones.
    const earlier = steps.length > MAX_STEPS ? steps.shift() : undefined;
    const { timeZone } = store.state;
    const narrator = this.getNarrator({ locale: locale ?? store.state.locale, timeZone });
    const template = await this.templates.get(accountId, card.state.cardId);
    return {
      balance: last[0]?.entry.balance ?? 0,
      rewards: await this.explainRewards(card.state, template.rewards, tail),
      steps: [
        ...(earlier ? [toEarlierStepJson(earlier.entry, narrator)] : []),
        ...(await this.explainSteps(steps, narrator)),
      ],
    };
  }

  /** Gets a narrator from the cache: creating one costs more than describing all steps with it. */
  private getNarrator({ locale, timeZone }: { locale: string; timeZone: string }): Narrator {
    const key = `${locale} ${timeZone}`;
    const cached = this.narrators.get(key);
    if (cached) return cached;
    const narrator = new Narrator({ locale, timeZone });
    this.narrators.set(key, narrator);
    return narrator;
  }

  private async explainSteps(
    entries: DetailedEntry[],
    narrator: Narrator,
  ): Promise<ExplanationStepJson[]> {
    const [locations, times] = await Promise.all([
      this.findLocationNames(entries.flatMap(({ entry }) => entry.locationId ?? [])),
      this.findTimes(entries),
    ]);
    return entries.map(({ entry, event, actorName, reversedBy }) => {
      const { data } = event;
      const findTime = (eventId: string | null) =>
        (eventId === null ? null : times.get(eventId)) ?? null;
      const text = narrator.describe({
        name: entry.name,
        at: new Date(entry.occurredAt),
        stamps: entry.stamps,
        source: readTextField(data, 'source'),
        isImport: entry.channel === IMPORT_CHANNEL,
        isMerge: isMovedInMerge({ name: entry.name, data }),
        reward: readTextField(data, 'rewardName') ?? readTextField(data, 'name'),
        location: entry.locationId === null ? null : (locations.get(entry.locationId) ?? null),
        person: readTextField(data, 'staffRef') ?? actorName,
        receipt: findReceiptOfTill(entry, event),
        note: findNote(event),
        reverses: findTime(entry.reverses),
        reversed: findTime(reversedBy),
      });
      return toExplanationStepJson(entry, text);
    });
  }

  /**
   * Explains the rewards, cheapest first, by what they take on the card; inactive ones only if the card ever had them.
   */
  private async explainRewards(
    card: CustomerCard,
    rewards: Milestone[],
    tail: HistoryEntry[],
  ): Promise<ExplainedRewardJson[]> {
    const milestones = await this.findMilestones(card.id, tail);
    const unlocked = new Set(card.unlocked.map(({ rewardId }) => rewardId));
    const priced = priceRewards(rewards, card.unlocked);
    const shownRewards = priced.filter(({ id, active }) => active || milestones.has(id));
    return Promise.all(
      shownRewards.map(async (reward) => {
        const past = milestones.get(reward.id) ?? {};
        if (unlocked.has(reward.id)) {
          return toExplainedRewardJson(reward, 'unlocked', past.unlocked?.at ?? null);
        }
        if (past.redeemed && past.redeemed.seq > (past.unlocked?.seq ?? -1)) {
          return toExplainedRewardJson(reward, 'redeemed', past.redeemed.at);
        }
        const since =
          past.unlocked && (await this.findLockTime(card.id, reward, past.unlocked, tail));
        return toExplainedRewardJson(reward, 'locked', since ?? null);
      }),
    );
  }

  private async findMilestones(id: number, tail: HistoryEntry[]): Promise<Milestones> {
    const rows = await query<{ reward_id: number; name: string; seq: number; occurred_at: Date }>(
      this.pool,
      { ...MILESTONES, values: [getCardStream(id)] },
    );
    const milestones: Milestones = new Map();
    const record = (rewardId: number | null, name: string, moment: Moment) => {
      if (rewardId === null) return;
      const milestone = milestones.get(rewardId) ?? {};
      if (name === 'reward.unlocked') milestone.unlocked = moment;
      if (name === 'reward.redeemed') milestone.redeemed = moment;
      milestones.set(rewardId, milestone);
    };
    for (const { reward_id, name, seq, occurred_at: at } of rows)
      record(reward_id, name, { seq, at });
    for (const { rewardId, name, seq, occurredAt } of tail) {
      record(rewardId, name, { seq, at: new Date(occurredAt) });
    }
    return milestones;
  }

  private async findLockTime(
    id: number,
    reward: Milestone,
    unlocked: Moment,
    tail: HistoryEntry[],
  ): Promise<Date | null> {
    const late = tail.filter(({ seq, name }) => seq > unlocked.seq && name === 'reward.redeemed');
    for (let after = unlocked.seq; ;) {
      const rows = await query<EntryRow>(this.pool, {
        ...REDEEMED_SINCE,
        values: [getCardStream(id), after],
      });
      const entries = rows.length > 0 ? rows.map(toEntry) : late;
      const redemptions = await this.history.addDetails(entries.map((entry) => ({ entry })));
      redemptions.forEach(assertHasEvent);
      const locking = redemptions.find((redemption) => hasLocked(redemption, reward));
      if (locking) return new Date(locking.entry.occurredAt);
      const last = rows.at(-1);
      if (!last) return null;
      after = last.seq;
    }
  }

  /** Finds the names of locations, removed ones included. */
  async findLocationNames(ids: number[]): Promise<Map<number, string>> {
    if (ids.length === 0) return new Map();
    const rows = await query<{ id: number; state: Location }>(this.pool, {
      ...LOCATIONS,
      values: [[...new Set(ids)]],
    });
    return new Map(rows.map(({ id, state }) => [id, state.name]));
  }

  /** Finds the times of the events that these steps name, by event id. */
  private async findTimes(entries: DetailedEntry[]): Promise<Map<string, Date>> {
    const times = new Map(entries.map(({ entry: e }) => [e.eventId, new Date(e.occurredAt)]));
    const named = entries.flatMap(({ entry, reversedBy }) => [entry.reverses, reversedBy]);
    const missing = named.filter((id): id is string => id !== null && !times.has(id));
    if (missing.length === 0) return times;
    const rows = await query<{ event_id: string; occurred_at: Date }>(this.pool, {
      ...TIMES,
      values: [missing],
    });
    for (const { event_id, occurred_at } of rows) times.set(event_id, occurred_at);
    return times;
  }
}

function hasLocked({ event }: DetailedEntry, { id }: Milestone): boolean {
  return (event.data as RewardRedeemed['data']).locked.includes(id);
}

/** Sums up the entries up to and including one. A card's entries are numbered by their revisions. */
function toEarlierStepJson(entry: HistoryEntry, narrator: Narrator): ExplanationStepJson {
  const text = narrator.describeEarlier(entry.revision + 1);
  return toExplanationStepJson({ ...entry, stamps: entry.balance }, text);
}

function toExplanationStepJson(
  { eventId, stamps, balance }: Pick<HistoryEntry, 'eventId' | 'stamps' | 'balance'>,
  text: string,
): ExplanationStepJson {
  return { event_id: toPublicEventId(eventId), text, stamps, balance: balance ?? 0 };
}

function toExplainedRewardJson(
  { id, name, stampsRequired }: Milestone,
  state: RewardState,
  since: Date | null,
): ExplainedRewardJson {
  return {
    id,
    name,
    stamps_required: stampsRequired,
    state,
    since: since?.toISOString() ?? null,
  };
}
