import type { MigrationInterface, QueryRunner } from 'typeorm';

const SUBSCRIPTIONS = `
      create sequence webhook_subscriptions_id as bigint;
      create table webhook_subscriptions (
        id bigint primary key,
        account_id bigint not null,
        events text[] not null check (cardinality(events) > 0),
        target_url text not null,
        description text,
        payload_format text not null check (payload_format in ('envelope', 'flat')),
        secret bytea not null,
        enabled boolean not null,
        disabled_at timestamptz,
        disabled_reason text check (disabled_reason in ('disabled_by_user', 'failing', 'blocked_address')),
        -- log position: only later events are planned; null while never enabled
        active_from text,
        failing_since timestamptz,
        last_delivery_at timestamptz,
        last_delivery_status int,
        last_delivery_error text,
        created_at timestamptz not null,
        updated_at timestamptz not null,
        check (enabled = (disabled_at is null) and enabled = (disabled_reason is null))
      ) with (fillfactor = 50);
      create index webhook_subscriptions_account on webhook_subscriptions (account_id, id);
`;

const EVENTS = `
      create table webhook_events (
        id text primary key,
        account_id bigint not null,
        customer_id bigint not null,
        type text not null,
        -- the envelope's bytes, sealed with the customer's key
        body bytea not null,
        created_at timestamptz not null
      );
`;

const DELIVERIES = `
      create table webhook_deliveries (
        id bigint generated always as identity primary key,
        subscription_id bigint not null references webhook_subscriptions (id) on delete cascade,
        event_id text not null references webhook_events (id),
        customer_id bigint not null,
        payload_format text not null check (payload_format in ('envelope', 'flat')),
        status text not null check (status in ('pending', 'delivered', 'failed', 'cancelled')),
        attempts_count int not null default 0,
        -- behind an earlier delivery about the same customer whose first attempt is not over yet
        waiting boolean not null,
        first_attempt_at timestamptz,
        next_attempt_at timestamptz,
        leased_until timestamptz,
        created_at timestamptz not null,
        delivered_at timestamptz,
        unique (subscription_id, event_id),
        check ((status = 'pending') = (next_attempt_at is not null))
      ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,
          autovacuum_analyze_scale_factor = 0.02);
      create index webhook_deliveries_due on webhook_deliveries (next_attempt_at, id)
        where status = 'pending' and not waiting;
      create index webhook_deliveries_order on webhook_deliveries (subscription_id, customer_id, id)
        where status = 'pending' and attempts_count = 0;
`;

const ATTEMPTS = `
      create table webhook_attempts (
        delivery_id bigint not null references webhook_deliveries (id) on delete cascade,
        attempt int not null,
        kind text not null check (kind in ('scheduled', 'manual')),
        at timestamptz not null,
        status int,
        duration_ms int not null,
        error text,
        -- sealed with the customer's key: a receiver may echo what it was sent
        response_excerpt bytea,
        primary key (delivery_id, attempt)
      );
    `;

export class Webhooks implements MigrationInterface {
  readonly name = 'Webhooks0000000000003';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(SUBSCRIPTIONS + EVENTS + DELIVERIES + ATTEMPTS);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop table webhook_attempts, webhook_deliveries, webhook_events, webhook_subscriptions;
      drop sequence webhook_subscriptions_id;
    `);
  }
}
