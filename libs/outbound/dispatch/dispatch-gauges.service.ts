import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Gauge, Registry } from 'prom-client';
import { shareReads } from '#platform/kernel/gauges.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import type { Writer } from '#platform/event-store/port/log-measures.js';

const READ_INTERVAL_MS = 5_000;
const LONG_WRITE_SECONDS = 30;

/** One row, each value read from the end of an index, so that the cost does not grow with the size of the tables. */
const GAUGES = `
  select
    (select extract(epoch from now() - min(due_at)) from webhook_queues
     where due_at <= now() and due_at < 'infinity')::float8 as due_seconds,
    (select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'webhook_events'::regclass
       and right(c.relname, 8) > to_char(now() at time zone 'UTC', 'YYYYMMDD')) as days_ahead,
    (select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'webhook_events'::regclass
       and right(c.relname, 8) <= to_char(now() at time zone 'UTC', 'YYYYMMDD')) as days_kept`;

/** Goes from store to store in the primary key, however many events wait in each. */
const POSTPONED = `
  with recursive stores as (
    (select subscription, account_id from es.postponed_events order by subscription, account_id limit 1)
    union all
    select next.subscription, next.account_id from stores s cross join lateral (
      select p.subscription, p.account_id from es.postponed_events p
      where (p.subscription, p.account_id) > (s.subscription, s.account_id)
      order by p.subscription, p.account_id limit 1) next
  )
  select subscription, count(*)::int as stores from stores group by 1`;

type GaugeRow = {
  due_seconds: number | null;
  days_ahead: number;
  days_kept: number;
};

/** Gauges of what all dispatchers share, read from the database at most every five seconds. */
@Injectable()
export class DispatchGauges {
  private readonly log = new Logger('metrics');
  private readonly due = gauge(
    'inkpad_webhook_oldest_due_seconds',
    'How long the longest-waiting queue has been due without being claimed',
  );
  private readonly intent = gauge(
    'inkpad_intents_oldest_seconds',
    'Age of the oldest commit to EventStoreDB that is not settled',
  );
  private readonly daysAhead = gauge(
    'inkpad_webhook_partitions_ahead_days',
    'Days ahead for which the delivery tables exist',
  );
  private readonly keptDays = gauge(
    'inkpad_webhook_partitions_kept_days',
    'Days whose tables are kept; older ones are dropped',
  );
  private readonly lag = gauge(
    'inkpad_subscription_lag_seconds',
    'Age of the first event that a subscription has not read',
    'subscription',
  );
  private readonly postponed = gauge(
    'inkpad_postponed_stores',
    'Stores of which a subscription could not process an event: it and their later ones are tried again',
    'subscription',
  );
  private readonly writer = gauge(
    'inkpad_oldest_writer_seconds',
    'Age of the oldest writing transaction on the PostgreSQL server: readers of the log wait for it',
  );
  private readonly writerInfo = gauge(
    'inkpad_oldest_writer_info',
    'Which transaction that is, once it is a second old',
    'pid',
    'application_name',
  );

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    registry: Registry,
  ) {
    const collect = shareReads(this.log, 'the queues of webhooks', READ_INTERVAL_MS, () =>
      this.read(),
    );
    const { due, intent, daysAhead, keptDays, lag, postponed, writer, writerInfo } = this;
    for (const gauge of [due, intent, daysAhead, keptDays, lag, postponed, writer, writerInfo]) {
      registry.registerMetric(Object.assign(gauge, { collect }));
    }
  }

  private async read(): Promise<void> {
    const { rows } = await this.pool.query<GaugeRow>(GAUGES);
    this.due.set(rows[0]?.due_seconds ?? 0);
    this.daysAhead.set(rows[0]?.days_ahead ?? 0);
    this.keptDays.set(rows[0]?.days_kept ?? 0);
    const counts = await this.pool.query<{ subscription: string; stores: number }>(POSTPONED);
    this.postponed.reset();
    for (const { subscription, stores } of counts.rows)
      this.postponed.set({ subscription }, stores);
    const { lagSeconds, oldestCommitSeconds, oldestWriter } = await this.eventStore.measure();
    for (const [subscription, seconds] of lagSeconds) {
      this.lag.set({ subscription }, Math.max(0, seconds));
    }
    this.intent.set(oldestCommitSeconds);
    this.setWriter(oldestWriter);
  }

  private setWriter(writer: Writer | undefined): void {
    this.writer.set(writer?.seconds ?? 0);
    this.writerInfo.reset();
    if (!writer || writer.seconds < 1) return;
    const { pid, name, seconds } = writer;
    this.writerInfo.set({ pid: String(pid), application_name: name }, 1);
    if (seconds > LONG_WRITE_SECONDS) {
      this.log.warn('an old writing transaction blocks all readers of the log', {
        pid,
        application_name: name,
        seconds: Math.round(seconds),
      });
    }
  }
}

function gauge(name: string, help: string, ...labelNames: string[]): Gauge {
  return new Gauge({ name, help, labelNames, registers: [] });
}
