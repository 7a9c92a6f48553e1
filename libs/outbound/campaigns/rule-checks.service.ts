import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { getNowMs } from '#platform/kernel/clock.js';
import { inTransaction } from '#platform/database/connection.js';
import type { Job } from '#platform/database/job-queue.js';
import { renderSamePerson } from '#loyalty/stamping/same-person.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import { Audiences } from './audiences.service.js';
import { CampaignQueue, type Progress, type Queued } from './campaign-queue.service.js';
import type { MessageReason } from '#outbound/messages/message-channel.js';
import type { NewMessage } from './new-messages.service.js';
import { MessageSettingsService } from './message-settings.service.js';
import { renderOccasions, toRuleValues } from './rule-occasions.js';
import { createRangeValues } from './rule-reaches.service.js';

const INTERVAL_MS = 30_000;
/** Entries and days of the history that a check looks at: after an outage, it catches up in parts. */
const MAX_ENTRIES = 50_000;
const MAX_DAYS = 1;
/** Occasions of one check, so that one store's many do not delay the others. */
const MAX_OCCASIONS = 1_000;
const WEEK = '7 days';
/** After an outage, nobody is congratulated later. */
const MAX_BIRTHDAY_AGE_MS = 2 * 24 * 60 * 60_000;

type CheckedRule = Job<Queued<'rule'>>;
type FoundOccasion = {
  customer_id: number;
  customer_card_id: number | null;
  at: Date;
  occasion: string;
  tie: number;
};
/** @property progress up to where all occasions are in it */
type Range = { occasions: FoundOccasion[]; progress: Progress; isPart: boolean };

/** Messages that a person got in seven days, or is about to get. */
const RECENT = {
  name: 'campaign_messages_recent',
  text: `select c.id as customer_id, count(*) as count
         from unnest($1::bigint[]) c (id)
         cross join lateral (${renderSamePerson('c.id')}) o
         join outgoing_messages m on m.customer_id = o.id
         where m.kind = 'campaign' and m.created_at > now() - interval '${WEEK}' and m.state in ('queued', 'sent')
         group by c.id`,
};

/** Looks for the occasions of rules, and enqueues their messages. */
@Injectable()
export class RuleChecks {
  constructor(
    private readonly pool: Pool,
    private readonly queue: CampaignQueue,
    private readonly audiences: Audiences,
    private readonly settings: MessageSettingsService,
    private readonly regions: StoreRegions,
  ) {}

  /** Looks for the occasions since the last check, in one transaction with their messages. */
  async check(rule: CheckedRule): Promise<void> {
    // Read before the transaction, which holds a connection and would wait for a second one.
    const { timeZone } = await this.regions.get(rule.accountId);
    const { maxPerWeek } = await this.settings.get(rule.accountId);
    await inTransaction(this.pool, async (client) => {
      if (!(await this.queue.lock(rule, client))) return;
      const { occasions, progress, isPart } =
        rule.trigger.kind === 'stamps_away'
          ? await this.findEntries(client, rule)
          : await this.findTimes(client, rule, timeZone);
      const messages = await this.createMessages(client, rule, occasions, maxPerWeek);
      await this.queue.reach(rule, messages, progress, isPart ? 0 : INTERVAL_MS, client);
    });
  }

  private async findEntries(client: pg.PoolClient, rule: CheckedRule): Promise<Range> {
    const { checkedSeq: after, dueBy: checkedUntil } = rule;
    const { rows } = await client.query<{ seq: number | null }>(
      'select max(seq) as seq from history',
    );
    const end = rows[0]?.seq ?? -1;
    const seq = Math.min(end, after + MAX_ENTRIES);
    const isPart = seq < end;
    if (seq <= after) {
      const progress = { checkedSeq: after, checkedUntil, checkedTie: null };
      return { occasions: [], progress, isPart };
    }
    const text = renderOccasions(rule.trigger.kind, 'entries');
    const values = [...toRuleValues(rule), after, seq];
    const { occasions, cutAt } = await this.find(client, text, values);
    const progress = {
      checkedSeq: cutAt?.tie ?? seq,
      checkedUntil: cutAt?.at ?? checkedUntil,
      checkedTie: null,
    };
    return { occasions, progress, isPart: isPart || cutAt !== undefined };
  }

  private async findTimes(
    client: pg.PoolClient,
    rule: CheckedRule,
    timeZone: string,
  ): Promise<Range> {
    const { checkedSeq, checkedUntil: from, checkedTie: tie, dueBy: now } = rule;
    const until = new Date(Math.min(now.getTime(), from.getTime() + MAX_DAYS * 86_400_000));
    const isPart = until < now;
    // Those of the time of the last one are not done yet.
    const start = tie === null ? from : new Date(from.getTime() - 1);
    const text = renderOccasions(rule.trigger.kind, 'times', tie === null ? null : 'resumed');
    const values = [...toRuleValues(rule), ...createRangeValues(rule, start, until, timeZone)];
    if (tie !== null) values.push(tie);
    const { occasions, cutAt } = await this.find(client, text, values);
    const progress = {
      checkedSeq,
      checkedUntil: cutAt?.at ?? until,
      checkedTie: cutAt?.tie ?? null,
    };
    return { occasions, progress, isPart: isPart || cutAt !== undefined };
  }

  /**
   * Finds as many occasions as one check may have. All entries of a store that was imported have the same time.
   * @returns the last one as well where there are more
   */
  private async find(
    client: pg.PoolClient,
    occasionsText: string,
    values: unknown[],
  ): Promise<{ occasions: FoundOccasion[]; cutAt: FoundOccasion | undefined }> {
    const text = `select o.* from (${occasionsText}) o order by o.at, o.tie limit ${MAX_OCCASIONS + 1}`;
    const { rows } = await client.query<FoundOccasion>({ text, values });
    const occasions = rows.slice(0, MAX_OCCASIONS);
    return { occasions, cutAt: rows.length > MAX_OCCASIONS ? occasions.at(-1) : undefined };
  }

  private async createMessages(
    client: pg.PoolClient,
    rule: CheckedRule,
    occasions: FoundOccasion[],
    maxPerWeek: number,
  ): Promise<NewMessage[]> {
    if (occasions.length === 0) return [];
    const ids = [...new Set(occasions.map((row) => row.customer_id))];
    const addressees = await this.audiences.findAddressees(ids, client);
    const { rows } = await client.query<{ customer_id: number; count: number }>({
      ...RECENT,
      values: [ids],
    });
    const recent = new Map(rows.map((row) => [row.customer_id, row.count]));
    const { id: ruleId, title, text } = rule;
    return occasions.flatMap((row) => {
      const addressee = addressees.get(row.customer_id);
      // Whoever was erased by then is not told apart from somebody for whom there was no occasion.
      if (!addressee) return [];
      const message = this.audiences.createMessage(rule, addressee, {
        source: { ruleId, occasion: row.occasion },
        customerCardId: row.customer_card_id,
        content: { title, text },
        dueAt: row.at,
      });
      const count = recent.get(addressee.customerId) ?? 0;
      const reason: MessageReason | null = isPast(rule, row)
        ? 'past'
        : (message.reason ?? (count >= maxPerWeek ? 'weekly_limit' : null));
      if (reason !== null) return [{ ...message, channel: null, reason }];
      recent.set(addressee.customerId, count + 1);
      return [message];
    });
  }
}

/** Tells whether a birthday is over, because nobody looked for it in time. Other occasions are checked when they are sent. */
function isPast({ trigger }: CheckedRule, { at }: FoundOccasion): boolean {
  return trigger.kind === 'birthday' && at.getTime() + MAX_BIRTHDAY_AGE_MS < getNowMs();
}
