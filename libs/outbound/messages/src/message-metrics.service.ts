import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Counter, Gauge, Registry } from 'prom-client';
import { getErrorMessage } from '#kernel/errors.js';

const POLL_INTERVAL_MS = 5_000;

/** Selects the age of the oldest message of each kind, from indexes that contain queued messages only. */
const SELECT_AGES = `
  select 'mail' as kind, (select extract(epoch from now() - min(created_at)) from mail_outbox)::float8 as seconds
  union all
  select 'card_' || c.channel,
    (select extract(epoch from now() - min(m.enqueued_at)) from card_messages m
     where m.channel = c.channel and m.due_at is not null)::float8
  from (values ('email'), ('sms')) as c (channel)`;

export type MessageKind = 'mail' | 'card_email' | 'card_sms';

/** Exports metrics of e-mails and SMS, by kind only: the number of stores is unbounded. */
@Injectable()
export class MessageMetrics {
  private readonly log = new Logger('metrics');
  private updatedAt = -Infinity;
  private currentUpdate: Promise<void> | undefined;
  private readonly attempts: Counter;
  private readonly oldest: Gauge;

  constructor(
    private readonly pool: Pool,
    registry: Registry,
  ) {
    this.attempts = new Counter({
      name: 'inkpad_message_attempts_total',
      help: 'Attempts to send an e-mail or SMS, by kind and result (sent, failed, refused)',
      labelNames: ['kind', 'result'],
      registers: [registry],
    });
    const updateIfStale = () => this.updateIfStale();
    this.oldest = new Gauge({
      name: 'inkpad_messages_oldest_seconds',
      help: 'Age of the oldest e-mail or SMS that waits to be sent',
      labelNames: ['kind'],
      registers: [registry],
      collect: updateIfStale,
    });
  }

  countAttempt(kind: MessageKind, result: 'sent' | 'failed' | 'refused'): void {
    this.attempts.inc({ kind, result });
  }

  /** Updates the values. Concurrent scrapes share one query; when it fails, the values stay as they were. */
  private updateIfStale(): Promise<void> {
    if (performance.now() - this.updatedAt < POLL_INTERVAL_MS)
      return this.currentUpdate ?? Promise.resolve();
    this.updatedAt = performance.now();
    this.currentUpdate = this.updateAges().catch((error: unknown) =>
      this.log.warn(`the messages could not be counted: ${getErrorMessage(error)}`),
    );
    return this.currentUpdate;
  }

  private async updateAges(): Promise<void> {
    const { rows } = await this.pool.query<{ kind: MessageKind; seconds: number | null }>(
      SELECT_AGES,
    );
    for (const { kind, seconds } of rows) this.oldest.set({ kind }, Math.max(0, seconds ?? 0));
  }
}
