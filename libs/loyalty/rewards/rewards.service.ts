import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import type { Cap, CapKind } from '#platform/event-store/port/event-store.js';
import { PastStates } from '#platform/event-store/log/past-states.service.js';
import type { PageRange } from '#platform/http/page.js';
import { reward, REWARD_REDEEMED_RESOLUTION, type Reward } from './reward.js';
import { toRewardJson, type RewardJson } from './reward.dto.js';
import { ISSUES } from '#translations/issues.js';

type RewardRow = { state: Reward };

type RewardFilter = { cardId: number | null; active: boolean | null; updatedSince: Date | null };

/** Rewards whose redemption is known to this process. */
const MAX_REDEEMED_IDS = 10_000;

/** Sets no limit: a reward may be redeemed by any number of people. */
const UNLIMITED = 2 ** 31;

/**
 * Keeps a reward from being deleted while its first redemption is under way, and from being redeemed while it is deleted.
 * Its owner is the reward.
 */
export const redemptionCap = {
  table: 'customer_cards_with_redemptions',
  ownerColumn: 'card_id',
  countedCondition: 'r.redeemed_reward_ids @> jsonb_build_array($1::bigint)',
  closedCondition: 'exists (select from rewards w where w.id = $1 and w.deleted_at is not null)',
  code: 'validation_failed',
  issue: ISSUES.reward_redeemed,
  resolution: REWARD_REDEEMED_RESOLUTION,
} satisfies CapKind;

@Injectable()
export class RewardsService {
  private readonly redeemedIds = new LRUCache<number, true>({ max: MAX_REDEEMED_IDS });

  constructor(
    private readonly pool: Pool,
    private readonly pastStates: PastStates,
  ) {}

  async list(
    accountId: number,
    filter: RewardFilter,
    { after, limit }: PageRange,
  ): Promise<RewardJson[]> {
    const rows = await query<RewardRow>(this.pool, {
      name: 'rewards_list',
      text: `select state from rewards
       where account_id = $1 and deleted_at is null
         and ($2::bigint is null or card_id = $2)
         and ($3::boolean is null or (state ->> 'active')::boolean = $3)
         and ($4::text is null or (state ->> 'updatedAt') collate "C" >= $4)
         and (card_id, (state ->> 'position')::bigint, (state ->> 'stampsRequired')::bigint, id)
           > ($5::bigint, $6::bigint, $7::bigint, $8::bigint)
       order by card_id, (state ->> 'position')::bigint, (state ->> 'stampsRequired')::bigint, id
       limit $9`,
      values: [
        accountId,
        filter.cardId,
        filter.active,
        filter.updatedSince?.toISOString() ?? null,
        ...(after ?? [0, 0, 0, 0]),
        limit,
      ],
    });
    return rows.map(({ state }) => toRewardJson(state));
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<RewardJson> {
    const [row] = await query<RewardRow>(this.pool, {
      name: 'rewards_find',
      text: `select state from rewards
       where id = $1 and account_id = $2 and deleted_at is null`,
      values: [id, accountId],
    });
    if (!row) throw new NotFoundError('Reward');
    return toRewardJson(row.state);
  }

  /** Finds the reward with its state at that time. @throws NotFoundError when it did not exist then */
  async getPast(accountId: number, id: number, time: Date): Promise<RewardJson> {
    const state = await this.pastStates.projectOne(
      reward,
      id,
      await this.pastStates.toMoment(time),
    );
    if (state?.accountId !== accountId || state.deletedAt !== null) {
      throw new NotFoundError('Reward');
    }
    return toRewardJson(state);
  }

  /** Lists the rewards as they were, in the order of `list`. */
  async listPast(accountId: number, filter: RewardFilter, time: Date): Promise<RewardJson[]> {
    const past = await this.pastStates.toMoment(time);
    const rows = await query<{ id: number }>(this.pool, {
      text: 'select id from rewards where account_id = $1 and ($2::bigint is null or card_id = $2)',
      values: [accountId, filter.cardId],
    });
    const ids = rows.map(({ id }) => id);
    const rewards = await this.pastStates.projectAll(reward, ids, past);
    return rewards
      .filter(
        ({ deletedAt, active, updatedAt }) =>
          deletedAt === null &&
          (filter.active === null || active === filter.active) &&
          (filter.updatedSince === null || updatedAt >= filter.updatedSince.toISOString()),
      )
      .sort(
        (a, b) =>
          a.cardId - b.cardId ||
          a.position - b.position ||
          a.stampsRequired - b.stampsRequired ||
          a.id - b.id,
      )
      .map(toRewardJson);
  }

  /** Lists the cards with the stamps that the cheapest active reward of each takes, or a full card where there is none. */
  async listLowestCosts(
    accountId: number,
    cardId: number | null,
  ): Promise<{ id: number; cost: number }[]> {
    return query<{ id: number; cost: number }>(this.pool, {
      name: 'rewards_lowest_costs',
      text: `select c.id, coalesce(min(w.stamps_required), (c.state ->> 'stampsRequired')::bigint) as cost
       from cards c left join rewards w on w.card_id = c.id and w.deleted_at is null and w.active
       where c.account_id = $1 and ($2::bigint is null or c.id = $2) group by c.id`,
      values: [accountId, cardId],
    });
  }

  /** Finds the position after the last reward. @throws NotFoundError if there is no such card */
  async getNextPosition(accountId: number, cardId: number): Promise<number> {
    const [row] = await query<{ next: number }>(this.pool, {
      text: `select (select coalesce(max((w.state ->> 'position')::bigint), 0) + 1 from rewards w
                where w.card_id = c.id and w.deleted_at is null) as next
       from cards c where c.id = $1 and c.account_id = $2`,
      values: [cardId, accountId],
    });
    if (!row) throw new NotFoundError('Card');
    return row.next;
  }

  /** Tells whether anybody has redeemed the reward, by an index: a store may have millions of cards. */
  async wasRedeemed(id: number): Promise<boolean> {
    if (this.redeemedIds.has(id)) return true;
    const rows = await query(this.pool, {
      name: 'rewards_was_redeemed',
      text: `select 1 from ${redemptionCap.table} r where ${redemptionCap.countedCondition} limit 1`,
      values: [id],
    });
    if (rows.length > 0) this.redeemedIds.set(id, true);
    return rows.length > 0;
  }

  /**
   * Finds the cap that keeps the reward from being deleted while it is redeemed.
   * @returns undefined for a reward that was redeemed: it is never deleted
   */
  async findRedemptionCap(rewardId: number, redemptionId: number): Promise<Cap | undefined> {
    if (await this.wasRedeemed(rewardId)) return undefined;
    return { kind: redemptionCap, owner: rewardId, owners: [], id: redemptionId, max: UNLIMITED };
  }
}
