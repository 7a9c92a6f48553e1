import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Counter, Registry } from 'prom-client';
import { addGauge, shareReads } from '#platform/kernel/gauges.js';

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
  private readonly attempts: Counter;

  constructor(pool: Pool, registry: Registry) {
    this.attempts = new Counter({
      name: 'inkpad_message_attempts_total',
      help: 'Attempts to send an e-mail or SMS, by kind and result (sent, failed, refused)',
      labelNames: ['kind', 'result'],
      registers: [registry],
    });
    addGauge(
      registry,
      {
        name: 'inkpad_messages_oldest_seconds',
        help: 'Age of the oldest e-mail or SMS that waits to be sent',
        labelNames: ['kind'],
      },
      shareReads(new Logger('metrics'), 'the ages of messages', POLL_INTERVAL_MS, async (gauge) => {
        const { rows } = await pool.query<{ kind: MessageKind; seconds: number | null }>(
          SELECT_AGES,
        );
        for (const { kind, seconds } of rows) gauge.set({ kind }, Math.max(0, seconds ?? 0));
      }),
    );
  }

  countAttempt(kind: MessageKind, result: 'sent' | 'failed' | 'refused'): void {
    this.attempts.inc({ kind, result });
  }
}
