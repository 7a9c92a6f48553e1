import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { workDaily } from '#platform/event-store/log/follow-log.js';
import { CHANNELS } from '#outbound/messages/message-channel.js';
import { OCCASION_DAYS } from './campaign.js';

const BATCH_SIZE = 1_000;
/** Messages that have their outcome, and whose outcome was recorded. */
const IS_FINISHED = 'm.finished_at < now() - make_interval(days => $1) and m.due_at is null';

function renderDelete(selection: string): string {
  return `with old as materialized (${selection}),
    silent as (delete from silent_messages where message_id in (select id from old))
    delete from outgoing_messages where id in (select id from old)`;
}

/** Stores the counts of cancelled announcements with them, once no message of theirs is left to be sent. */
const COUNT_CANCELLED = {
  name: 'announcements_count_cancelled',
  text: `update campaigns a set counts = c.counts
    from (
      select x.id, jsonb_build_object('queued', 0, ${['sent', 'failed', 'skipped']
        .map((state) => `'${state}', count(*) filter (where m.state = '${state}')`)
        .join(', ')}, 'sentBy', jsonb_build_object(${CHANNELS.map(
        (channel) =>
          `'${channel}', count(*) filter (where m.state = 'sent' and m.channel = '${channel}')`,
      ).join(', ')})) as counts
      from campaigns x join outgoing_messages m on m.announcement_id = x.id
      where x.kind = 'announcement' and x.state = 'cancelled' and x.counts is null
        and x.finished_at < now() - make_interval(days => $1)
      group by x.id having bool_and(m.state <> 'queued')) c
    where a.kind = 'announcement' and a.id = c.id`,
};

/** Card links and messages of announcements that have their counts. Those of others come from their messages. */
const FINISHED = {
  name: 'outgoing_messages_delete_finished',
  text: renderDelete(`select m.id from outgoing_messages m
    where m.rule_id is null and ${IS_FINISHED} and (m.announcement_id is null or exists (
      select from campaigns a where a.kind = 'announcement' and a.id = m.announcement_id and (a.state = 'sent' or a.counts is not null)))
    order by m.finished_at limit ${BATCH_SIZE} for update of m skip locked`),
};

/**
 * A message of a rule keeps its occasion from being used twice, so it stays until no check can find the occasion any more.
 * A rule that is enabled is checked from `checked_until` on, and any other from the time at which it is enabled.
 */
const OF_RULES = {
  name: 'outgoing_messages_delete_of_rules',
  text: renderDelete(`select m.id from campaigns r
    cross join lateral (
      select n.id from outgoing_messages n
      where n.rule_id = r.id and n.created_at <
        case when r.due_at is null then now() else least(r.checked_until, now()) end
          - make_interval(days => greatest($1, case when r.state <> 'deleted' then ($2::jsonb ->> (r.trigger ->> 'kind'))::int end))
      order by n.created_at limit ${BATCH_SIZE}) old
    join outgoing_messages m on m.id = old.id
    where r.kind = 'rule' and ${IS_FINISHED}
    limit ${BATCH_SIZE} for update of m skip locked`),
};

/** Deletes messages that were finished long ago, where a setting says so. Those that are held or queued stay. */
@Injectable()
export class MessageRetention {
  private readonly log = new Logger('messages');

  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    const { messageRetentionDays: days } = this.config;
    if (days === null) return;
    await workDaily(this.log, signal, async () => {
      const counts = [await this.deleteFinished(days), await this.deleteOfRules(days)];
      return Math.max(...counts) === BATCH_SIZE;
    });
  }

  /** Deletes a batch of card links and of the messages of announcements. @returns how many it had */
  async deleteFinished(days: number): Promise<number> {
    await this.pool.query({ ...COUNT_CANCELLED, values: [days] });
    return (await this.pool.query({ ...FINISHED, values: [days] })).rowCount ?? 0;
  }

  /** Deletes a batch of the messages of rules. @returns how many it had */
  async deleteOfRules(days: number): Promise<number> {
    const values = [days, JSON.stringify(OCCASION_DAYS)];
    return (await this.pool.query({ ...OF_RULES, values })).rowCount ?? 0;
  }
}
