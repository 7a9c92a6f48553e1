import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Counter, Registry } from 'prom-client';
import { addGauge, shareReads } from '#platform/kernel/gauges.js';

const POLL_INTERVAL_MS = 5_000;

/** Selects the age of the oldest message of each kind, from an index that contains due messages only. */
const SELECT_AGES = `
  select label, (
    select extract(epoch from now() - min(m.enqueued_at)) from outgoing_messages m
    where m.kind = k.kind and m.channel = k.channel and m.due_at is not null)::float8 as seconds
  from (values ('mail', 'mail', 'email'), ('card_email', 'card_link', 'email'), ('card_sms', 'card_link', 'sms'))
    k (label, kind, channel)`;

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
        const { rows } = await pool.query<{ label: string; seconds: number | null }>(SELECT_AGES);
        for (const { label: kind, seconds } of rows) gauge.set({ kind }, Math.max(0, seconds ?? 0));
      }),
    );
  }

  countAttempt(kind: string, result: 'sent' | 'failed' | 'refused'): void {
    this.attempts.inc({ kind, result });
  }
}
