import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { getNow } from '#platform/kernel/clock.js';
import { query } from '#platform/database/connection.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import type { PageRange } from '#platform/http/page.js';
import { Audiences } from './audiences.service.js';
import {
  chooseChannel,
  countReach,
  type Reachability,
} from '#outbound/messages/message-channel.js';
import { CUSTOMER_NAME } from '#outbound/messages/customer-name.js';
import type { RuleOccasion, RuleReach } from './message-rule.dto.js';
import type { MessageRule } from './campaign.js';
import { listCelebrations } from './celebrations.js';
import { REACHABILITY_COLUMNS, renderReachability } from './reachability.js';
import { renderOccasions, toRuleValues } from './rule-occasions.js';

/** What decides whom a rule reaches. */
type ReachCriteria = Pick<MessageRule, 'accountId' | 'trigger' | 'channels'>;

const DAY_MS = 24 * 60 * 60_000;

type DayRow = Reachability & {
  phone: string | null;
  day: string;
  people: number;
  customers: number;
};
type OccasionRow = Reachability & { phone: string | null; atMs: number; tie: number } & Omit<
    RuleOccasion,
    'key' | 'channel'
  >;

const IS_THERE = 'c.id = o.customer_id and c.merged_into is null and c.erased_at is null';
/** Cursors hold whole milliseconds. */
const AT_MS = 'floor(extract(epoch from o.at) * 1000)::bigint';

/** Finds whom rules would have reached in the past, whether they were enabled or not. */
@Injectable()
export class RuleReaches {
  constructor(
    private readonly pool: Pool,
    private readonly audiences: Audiences,
    private readonly regions: StoreRegions,
  ) {}

  /**
   * Counts whom the rule would have reached in the last days.
   * @throws UnavailableError when too many counts of the store wait
   */
  async count(rule: ReachCriteria, days: number): Promise<RuleReach> {
    const { accountId } = rule;
    const { timeZone } = await this.regions.get(accountId);
    const values = [...createValues(rule, days, timeZone), timeZone];
    const judged = await this.audiences.runInSlot(accountId, async () => {
      const rows = await query<DayRow>(this.pool, {
        text: `with p as (
                 select c.id, to_char(o.at at time zone $6, 'YYYY-MM-DD') as day, ${renderReachability('account')},
                   ${this.audiences.renderPhone(rule.channels)}
                 from (${renderOccasions(rule.trigger.kind, 'happened')}) o join customers c on ${IS_THERE}
               )
               select day, ${REACHABILITY_COLUMNS}, count(*) as people,
                 (select count(distinct id) from p) as customers
               from p
               group by day, ${REACHABILITY_COLUMNS}
               order by day`,
        values,
      });
      return this.audiences.judgePhones(accountId, rows);
    });
    const groups = judged.map(({ people, ...person }) => ({ people, person }));
    const byDay = new Map<string, number>();
    for (const { day, people } of judged) byDay.set(day, (byDay.get(day) ?? 0) + people);
    return {
      ...countReach(groups, rule.channels, this.audiences.setUp),
      days,
      customers: judged[0]?.customers ?? 0,
      byDay: [...byDay].map(([day, people]) => ({ day, people })),
    };
  }

  /**
   * Lists the occasions of the last days, newest first.
   * @throws UnavailableError when too many counts of the store wait
   */
  async list(
    rule: ReachCriteria,
    days: number,
    { after, limit }: PageRange,
  ): Promise<RuleOccasion[]> {
    const { timeZone } = await this.regions.get(rule.accountId);
    const [beforeMs = Number.MAX_SAFE_INTEGER, beforeTie = Number.MAX_SAFE_INTEGER] = after ?? [];
    const judged = await this.audiences.runInSlot(rule.accountId, async () => {
      const rows = await query<OccasionRow>(this.pool, {
        text: `select m.customer_id as "customerId", ${CUSTOMER_NAME} as "customerName",
                 m.customer_card_id as "customerCardId", m.at, m.at_ms as "atMs", m.tie, ${renderReachability('few')},
                 ${this.audiences.renderPhone(rule.channels)}
               from (
                 select o.*, ${AT_MS} as at_ms
                 from (${renderOccasions(rule.trigger.kind, 'happened')}) o join customers c on ${IS_THERE}
                 where (${AT_MS}, o.tie) < ($6::bigint, $7::bigint)
                 order by at_ms desc, o.tie desc limit $8
               ) m join customers c on c.id = m.customer_id
               order by m.at_ms desc, m.tie desc`,
        values: [...createValues(rule, days, timeZone), beforeMs, beforeTie, limit],
      });
      return this.audiences.judgePhones(rule.accountId, rows);
    });
    return judged.map(({ atMs, tie, ...row }) => ({
      ...row,
      key: [atMs, tie],
      channel: chooseChannel(row, rule.channels, this.audiences.setUp).channel,
    }));
  }
}

function createValues(rule: ReachCriteria, days: number, timeZone: string): unknown[] {
  const to = getNow();
  const from = new Date(to.getTime() - days * DAY_MS);
  return [...toRuleValues(rule), ...createRangeValues(rule, from, to, timeZone)];
}

/** Creates the parameters of the occasions that are due after a time, up to another. */
export function createRangeValues(
  { trigger }: Pick<MessageRule, 'trigger'>,
  from: Date,
  to: Date,
  timeZone: string,
): [unknown, unknown] {
  if (trigger.kind !== 'birthday') return [from, to];
  const celebrations = listCelebrations(from, to, timeZone);
  return [celebrations.map(({ birthday }) => birthday), celebrations.map(({ at }) => at)];
}
