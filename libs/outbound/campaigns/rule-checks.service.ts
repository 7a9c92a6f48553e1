import { Injectable, Logger } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { getNowMs } from '#platform/kernel/clock.js';
import { pause } from '#platform/kernel/pause.js';
import { drawPollMs } from '#platform/kernel/poll-interval.js';
import { inTransaction, isDatabaseUnavailable, query } from '#platform/database/connection.js';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { LOCKS } from '#platform/database/locks.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import { retryUntilAborted } from '#platform/event-store/log/follow-log.js';
import { renderSamePerson } from '#loyalty/stamping/same-person.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import { Audiences } from './audiences.service.js';
import { insertMessages, type NewMessage } from './customer-message-queue.service.js';
import { chooseChannel, type MessageReason } from './message-channel.js';
import type { MessageRule } from './message-rule.js';
import { RULE_COLUMNS } from './message-rules.service.js';
import { MessageSettingsService } from './message-settings.service.js';
import { renderOccasions, toRuleValues } from './rule-occasions.js';
import { createRangeValues } from './rule-reaches.service.js';

const LEADERSHIP = { name: 'message rules', lock: LOCKS.messageRules };
const RULES_AT_ONCE = 50;
const INTERVAL_SECONDS = 30;
/** Entries and days of the history that a check looks at: after an outage, it catches up in parts. */
const MAX_ENTRIES = 50_000;
const MAX_DAYS = 1;
/** Occasions of one check, so that one store's many do not delay the others. */
const MAX_OCCASIONS = 1_000;
const WEEK = '7 days';
/** After an outage, nobody is congratulated later. */
const MAX_BIRTHDAY_AGE_MS = 2 * 24 * 60 * 60_000;

type CheckedRule = MessageRule & {
  checked_seq: number;
  checked_until: Date;
  checked_tie: number | null;
  checked_at: Date;
};
type Occasion = {
  customer_id: number;
  customer_card_id: number | null;
  at: Date;
  occasion: string;
  tie: number;
};
/** @property tie the last occasion of the time `until` that was looked at; null: all of them were */
type Reached = { seq: number; until: Date; tie: number | null };
/** @property reached up to where all occasions are in it */
type Range = { occasions: Occasion[]; reached: Reached; isPart: boolean };
/** What is read before the transaction of a check: it holds a connection, and would wait for a second one. */
type Surroundings = { timeZone: string; maxPerWeek: number };

const DUE = {
  name: 'message_rules_due',
  text: `select id, account_id from message_rules where next_check_at <= now() order by next_check_at limit ${RULES_AT_ONCE}`,
};
const LOCK = {
  name: 'message_rules_lock',
  text: `select ${RULE_COLUMNS}, checked_seq, checked_until, checked_tie, now() as checked_at from message_rules
         where id = $1 and next_check_at is not null for no key update`,
};
const REACH = {
  name: 'message_rules_reach',
  text: `update message_rules set checked_seq = $2, checked_until = $3, checked_tie = $4,
           next_check_at = case when $5 then now() else now() + interval '${INTERVAL_SECONDS} seconds' end
         where id = $1 and next_check_at is not null`,
};
/** After a fault in the check of one rule, so that the others go on. */
const POSTPONE = {
  name: 'message_rules_postpone',
  text: `update message_rules set next_check_at = now() + interval '5 minutes'
         where id = $1 and next_check_at is not null`,
};
/** Messages that a person got in seven days, or is about to get. */
const RECENT = {
  name: 'customer_messages_recent',
  text: `select c.id as customer_id, count(*) as count
         from unnest($1::bigint[]) c (id)
         cross join lateral (${renderSamePerson('c.id')}) o
         join customer_messages m on m.customer_id = o.id
         where m.created_at > now() - interval '${WEEK}' and m.state in ('queued', 'sent')
         group by c.id`,
};

/** Looks for the occasions of rules, and enqueues their messages. One process does this at a time. */
@Injectable()
export class RuleChecks {
  private readonly log = new Logger(LEADERSHIP.name);

  constructor(
    private readonly pool: Pool,
    private readonly audiences: Audiences,
    private readonly settings: MessageSettingsService,
    private readonly regions: StoreRegions,
    private readonly maintenance: Maintenance,
    private readonly lock: LeaderLock,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, (leading) =>
      retryUntilAborted(this.log, leading, async (onSuccess) => {
        if (!(await this.maintenance.find())) await this.checkDue(leading);
        onSuccess();
        await pause(drawPollMs(), leading);
      }),
    );
  }

  private async checkDue(signal: AbortSignal): Promise<void> {
    const due = await query<{ id: number; account_id: number }>(this.pool, { ...DUE, values: [] });
    for (const { id, account_id: accountId } of due) {
      if (signal.aborted) return;
      try {
        const { timeZone } = await this.regions.get(accountId);
        const { maxPerWeek } = await this.settings.get(accountId);
        await inTransaction(this.pool, (client) =>
          this.check(client, id, { timeZone, maxPerWeek }),
        );
      } catch (error) {
        if (isDatabaseUnavailable(error)) throw error;
        this.log.error(
          `rule ${id} could not be checked, and is checked again in 5 minutes`,
          error instanceof Error ? error.stack : undefined,
        );
        await query(this.pool, { ...POSTPONE, values: [id] });
      }
    }
  }

  private async check(
    client: pg.PoolClient,
    id: number,
    { timeZone, maxPerWeek }: Surroundings,
  ): Promise<void> {
    const [rule] = (await client.query<CheckedRule>({ ...LOCK, values: [id] })).rows;
    if (!rule) return;
    const range =
      rule.kind === 'stamps_away'
        ? await this.findEntries(client, rule)
        : await this.findTimes(client, rule, timeZone);
    const { occasions, reached, isPart } = range;
    await insertMessages(client, await this.createMessages(client, rule, occasions, maxPerWeek));
    const { seq, until, tie } = reached;
    await client.query({ ...REACH, values: [id, seq, until, tie, isPart] });
  }

  private async findEntries(client: pg.PoolClient, rule: CheckedRule): Promise<Range> {
    const { checked_seq: after, checked_at: until } = rule;
    const { rows } = await client.query<{ seq: number | null }>(
      'select max(seq) as seq from history',
    );
    const end = rows[0]?.seq ?? -1;
    const seq = Math.min(end, after + MAX_ENTRIES);
    const isPart = seq < end;
    if (seq <= after) {
      return { occasions: [], reached: { seq: after, until, tie: null }, isPart };
    }
    const values = [...toRuleValues(rule), after, seq];
    const { occasions, cutAt } = await this.find(
      client,
      renderOccasions(rule.kind, 'entries'),
      values,
    );
    const reached = { seq: cutAt?.tie ?? seq, until: cutAt?.at ?? until, tie: null };
    return { occasions, reached, isPart: isPart || cutAt !== undefined };
  }

  private async findTimes(
    client: pg.PoolClient,
    rule: CheckedRule,
    timeZone: string,
  ): Promise<Range> {
    const { checked_seq: seq, checked_until: from, checked_tie: tie, checked_at: now } = rule;
    const until = new Date(Math.min(now.getTime(), from.getTime() + MAX_DAYS * 86_400_000));
    const isPart = until < now;
    // Those of the time of the last one are not done yet.
    const start = tie === null ? from : new Date(from.getTime() - 1);
    const values = [...toRuleValues(rule), ...createRangeValues(rule, start, until, timeZone)];
    const { occasions, cutAt } = await (tie === null
      ? this.find(client, renderOccasions(rule.kind, 'times'), values)
      : this.find(client, renderOccasions(rule.kind, 'times', 'resumed'), [...values, tie]));
    const reached = { seq, until: cutAt?.at ?? until, tie: cutAt?.tie ?? null };
    return { occasions, reached, isPart: isPart || cutAt !== undefined };
  }

  /**
   * Finds as many occasions as one check may have. All entries of a store that was imported have the same time.
   * @returns the last one as well where there are more
   */
  private async find(
    client: pg.PoolClient,
    occasionsText: string,
    values: unknown[],
  ): Promise<{ occasions: Occasion[]; cutAt: Occasion | undefined }> {
    const text = `select o.* from (${occasionsText}) o order by o.at, o.tie limit ${MAX_OCCASIONS + 1}`;
    const { rows } = await client.query<Occasion>({ text, values });
    const occasions = rows.slice(0, MAX_OCCASIONS);
    return { occasions, cutAt: rows.length > MAX_OCCASIONS ? occasions.at(-1) : undefined };
  }

  private async createMessages(
    client: pg.PoolClient,
    rule: MessageRule,
    occasions: Occasion[],
    maxPerWeek: number,
  ): Promise<NewMessage[]> {
    if (occasions.length === 0) return [];
    const ids = [...new Set(occasions.map((one) => one.customer_id))];
    const addressees = await this.audiences.findAddressees(ids, client);
    const { rows } = await client.query<{ customer_id: number; count: number }>({
      ...RECENT,
      values: [ids],
    });
    const recent = new Map(rows.map((row) => [row.customer_id, row.count]));
    const { accountId, title, text } = rule;
    return occasions.flatMap((one) => {
      const addressee = addressees.get(one.customer_id);
      // Whoever was erased by then is not told apart from somebody for whom there was no occasion.
      if (!addressee) return [];
      const { customerId, person } = addressee;
      const count = recent.get(customerId) ?? 0;
      const choice = chooseChannel(person, rule.channels, this.audiences.setUp);
      const reason: MessageReason | null = isPast(rule, one)
        ? 'past'
        : (choice.reasons[0]?.reason ?? (count >= maxPerWeek ? 'weekly_limit' : null));
      if (reason === null) recent.set(customerId, count + 1);
      return [
        {
          accountId,
          customerId,
          customerCardId: one.customer_card_id,
          source: { ruleId: rule.id, occasion: one.occasion },
          content: { title, text },
          channel: reason === null ? choice.channel : null,
          reason,
          dueAt: one.at,
        },
      ];
    });
  }
}

/** Tells whether a birthday is over, because nobody looked for it in time. Other occasions are checked when they are sent. */
function isPast({ kind }: MessageRule, { at }: Occasion): boolean {
  return kind === 'birthday' && at.getTime() + MAX_BIRTHDAY_AGE_MS < getNowMs();
}
