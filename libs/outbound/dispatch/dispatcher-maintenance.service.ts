import { Injectable, Logger } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { createId } from '#platform/kernel/randomness.js';
import { inTransaction, isTransient } from '#platform/database/connection.js';
import { auditBySystem } from '#platform/database/audit-log.js';
import { FAN_OUT_SUBSCRIPTION } from '#outbound/subscriptions/delivery-requests.service.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import { getFailingBounds } from './failure-mail.js';
import { FailureMails } from './failure-mails.service.js';
import { MOVE_UPDATED_AT } from './finish-statement.js';
import { QueueLoader } from './queue-loader.service.js';
import { armQueues, getGiveUpBefore } from '#outbound/subscriptions/webhook-delivery.js';
import { createPartitionsAhead } from '#outbound/public-events/webhook-partitions.service.js';

const MIN_INTERVAL_MS = 500;
const SWEEP_INTERVAL_MS = 60_000;
const PARTITIONS_INTERVAL_MS = 3_600_000;
const DAY_MS = 24 * 3_600_000;
const ADDRESS_BATCH_SIZE = 1_000;

/**
 * Disables subscriptions without a success for three days since their first failure, whether or not any event comes.
 */
const DISABLE_FAILING = {
  name: 'webhook_disable_failing',
  text: `
    with failing as (
      select id from webhook_subscriptions
      where enabled and failing_since is not null and failing_since <= $1
      order by id for no key update skip locked
    ), ended as (
      update webhook_subscriptions s
      set enabled = false, disabled_at = now(), disabled_reason = 'failing', give_up_before = now(),
        ${MOVE_UPDATED_AT}
      from failing where s.id = failing.id
      returning s.id, s.account_id
    ), armed as (
      ${armQueues('select id from ended order by id')}
    ), noted as (
      ${auditBySystem('ended', {
        accountId: 'account_id',
        type: "'webhook_subscription.disabled'",
        requestId: '$2',
        subject: "jsonb_build_object('webhook_subscription_id', id, 'reason', 'failing')",
      })}
    )
    select id from ended`,
};

/** Warns a day before that, once per failing period. */
const WARN_FAILING = {
  name: 'webhook_warn_failing',
  text: `
    with failing as (
      select id from webhook_subscriptions
      where enabled and failing_since is not null and failing_since <= $1 and failing_since > $2
        and warned_failing_since is distinct from failing_since
      order by id for no key update skip locked
    )
    update webhook_subscriptions s set warned_failing_since = s.failing_since
    from failing where s.id = failing.id
    returning s.id`,
};

/** Finds changes that no dispatcher was told of: paused queues whose subscription is enabled again or deleted. */
const REARM = {
  name: 'webhook_queues_rearm',
  text: `
    with paused as (
      select q.subscription_id from webhook_queues q
      left join webhook_subscriptions s on s.id = q.subscription_id
      where q.due_at = 'infinity' and (s.id is null or s.enabled and exists (
        select from webhook_pending p where p.subscription_id = q.subscription_id))
      order by q.subscription_id for no key update of q skip locked
    )
    update webhook_queues q set due_at = now() from paused where q.subscription_id = paused.subscription_id
    returning q.subscription_id`,
};

const OLDEST_NEEDED = {
  name: 'webhook_oldest_needed',
  text: `select least((select min(event_seq) from webhook_pending),
                      (select min(after_seq) + 1 from webhook_replays)) as seq`,
};

/** Paused subscriptions that keep a day from being dropped. */
const PAUSED_WITH_OLD = {
  name: 'webhook_paused_with_old_deliveries',
  text: `select s.id from webhook_subscriptions s
         where not s.enabled and exists (
           select from webhook_pending p where p.subscription_id = s.id and p.event_seq < webhook_first_id($1))`,
};

/** These replays would send only what a resume no longer sends. */
const END_PAUSED_REPLAYS = {
  name: 'webhook_replays_end_paused',
  text: `delete from webhook_replays r using webhook_subscriptions s
         where s.id = r.subscription_id and not s.enabled and r.created_at < $1`,
};

/** Events from that time can no longer be enqueued. */
const FORGET_SPANS = {
  name: 'webhook_active_spans_forget',
  text: `delete from webhook_active_spans a using webhook_subscriptions s
         where s.id = a.subscription_id
           and a.active_until <= (select position from es.positions where subscription = $1)
           and not exists (
             select from es.postponed_events p where p.subscription = $1 and p.account_id = s.account_id)`,
};

/** Does what one dispatcher does at intervals, besides following the log, such as dropping old days (ADR-0018). */
@Injectable()
export class DispatcherMaintenance {
  private readonly log = new Logger('webhook maintenance');

  constructor(
    private readonly pool: Pool,
    private readonly worker: DeliveryWorker,
    private readonly failureMails: FailureMails,
    private readonly loader: QueueLoader,
    private readonly metrics: DeliveryMetrics,
    private readonly config: Config,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    const sweepMs = Math.max(MIN_INTERVAL_MS, SWEEP_INTERVAL_MS / this.config.webhookTimeScale);
    let partitionsAt = 0;
    let sweepAt = 0;
    while (!signal.aborted) {
      const now = performance.now();
      if (now >= partitionsAt) {
        const done = await this.attempt('partitions', (at) => this.rotatePartitions(at));
        await this.attempt('addresses in the audit log', () => this.forgetAddresses(signal));
        partitionsAt = now + (done ? PARTITIONS_INTERVAL_MS : sweepMs);
      }
      if (now >= sweepAt) {
        await this.attempt('the sweep', (at) => this.sweep(at));
        await this.attempt('statistics of erased customers', () => this.forgetErased());
        sweepAt = now + sweepMs;
      }
      const dueInMs = Math.min(partitionsAt, sweepAt) - performance.now();
      await pause(Math.max(MIN_INTERVAL_MS, dueInMs), signal);
    }
  }

  /** Uses the database's clock, because a wrong clock here must not drop or disable anything. */
  private async attempt(what: string, work: (now: Date) => Promise<void>): Promise<boolean> {
    try {
      const { rows } = await this.pool.query<{ now: Date }>('select now() as now');
      const [clock] = rows;
      if (!clock) throw new Error('the database did not return its time');
      await work(clock.now);
      return true;
    } catch (error) {
      const level = isTransient(error) ? 'warn' : 'error';
      this.log[level](`${what}: ${getErrorMessage(error)}; will be tried again`);
      return false;
    }
  }

  /**
   * Creates the partitions of the coming days and drops whole days that are past retention, except events that are
   * still to be sent.
   */
  private async rotatePartitions(now: Date): Promise<void> {
    await createPartitionsAhead(this.pool, now);
    const before = new Date(now.getTime() - this.config.webhookRetentionDays * DAY_MS);
    await this.giveUpPaused(now, before);
    const { rows } = await this.pool.query<{ seq: number | null }>(OLDEST_NEEDED);
    const oldest = rows[0]?.seq ?? null;
    await this.drop('{webhook_finished, webhook_other_attempts}', before, null);
    await this.drop('{webhook_events, webhook_bodies}', before, oldest);
  }

  /**
   * Drops one table at a time, because everybody else queues behind it while it waits for its lock. It waits only
   * briefly, and tries again in the next round.
   * @param oldestNeeded the oldest event that is still needed
   */
  private async drop(tables: string, before: Date, oldestNeeded: number | null): Promise<void> {
    for (;;) {
      const { rows } = await this.pool.query<{ name: string }>(
        'select webhook_drop_partitions($1, least(webhook_first_id($2), $3::bigint)) as name',
        [tables, before, oldestNeeded],
      );
      if (rows.length === 0) return;
      this.log.log(`dropped ${rows.map(({ name }) => name).join(', ')}`);
    }
  }

  /** What a resume would no longer send must not keep a day. */
  private async giveUpPaused(now: Date, before: Date): Promise<void> {
    const { rows } = await this.pool.query<{ id: number }>({
      ...PAUSED_WITH_OLD,
      values: [before],
    });
    const cutoff = getGiveUpBefore(now, this.config.webhookTimeScale);
    for (const { id } of rows) while (await this.loader.giveUp(id, cutoff));
    await this.pool.query({ ...END_PAUSED_REPLAYS, values: [cutoff] });
  }

  private async sweep(now: Date): Promise<void> {
    const disabled = await this.endOrWarn(now);
    this.metrics.countEnded('failing', disabled.length);
    const rearmed = await this.pool.query<{ subscription_id: number }>(REARM);
    const ids = [...disabled, ...rearmed.rows.map((r) => r.subscription_id)];
    this.worker.announce(ids);
    await this.pool.query({ ...FORGET_SPANS, values: [FAN_OUT_SUBSCRIPTION] });
  }

  /** The planner's statistics hold a sample of what customers are searched by, until they are made anew. */
  private async forgetErased(): Promise<void> {
    await this.pool.query('select analyze_erased()');
  }

  /** In parts, so that no statement takes long. */
  private async forgetAddresses(signal: AbortSignal): Promise<void> {
    for (let count = ADDRESS_BATCH_SIZE; count === ADDRESS_BATCH_SIZE && !signal.aborted;) {
      const { rows } = await this.pool.query<{ count: number }>(
        'select es.forget_audit_addresses($1, $2) as count',
        [ADDRESS_BATCH_SIZE, this.config.auditAddressRetentionDays],
      );
      count = rows[0]?.count ?? 0;
    }
  }

  /** @returns the subscriptions that were disabled */
  private async endOrWarn(now: Date): Promise<number[]> {
    const { warn, disable } = getFailingBounds(now, this.config.webhookTimeScale);
    const { disabled, reports } = await inTransaction(this.pool, async (client) => {
      const ended = await client.query<{ id: number }>({
        ...DISABLE_FAILING,
        values: [disable, createId()],
      });
      const warned = await client.query<{ id: number }>({
        ...WARN_FAILING,
        values: [warn, disable],
      });
      const toIds = ({ rows }: { rows: { id: number }[] }) => rows.map(({ id }) => id);
      return {
        disabled: toIds(ended),
        reports: [
          ...(await this.failureMails.write(client, 'disabled', toIds(ended))),
          ...(await this.failureMails.write(client, 'warning', toIds(warned))),
        ],
      };
    });
    this.failureMails.logAll(reports);
    return disabled;
  }
}
