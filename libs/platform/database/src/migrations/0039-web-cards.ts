import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Tells open web cards of changes, and keeps the browsers that want to be notified. */
export class WebCards implements MigrationInterface {
  readonly name = 'WebCards0000000000039';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- Whoever raises a tag tells it, in the same transaction. A payload takes 8000 bytes.
      create function tell_passes() returns trigger language plpgsql as $$
      begin
        perform pg_notify('inkpad_passes', string_agg(customer_card_id || ':' || tag, ' '))
        from (select n.customer_card_id, n.tag, row_number() over (order by n.customer_card_id) as place
              from new_rows n join old_rows o using (customer_card_id)
              where n.tag > o.tag) raised
        group by place / 150;
        return null;
      end
      $$;
      create trigger passes_told after update on passes
        referencing old table as old_rows new table as new_rows
        for each statement execute function tell_passes();

      create table web_push_subscriptions (
        id bigint generated always as identity primary key,
        customer_card_id bigint not null,
        account_id bigint not null,
        -- With whose key it is sealed: erasing the customer makes it unreadable.
        customer_id bigint not null,
        -- Finds a browser's subscription again without its address.
        endpoint_hash bytea not null,
        sealed bytea not null,
        -- The tag of the notice that the browser was told last.
        told_tag bigint not null,
        created_at timestamptz not null default now(),
        unique (customer_card_id, endpoint_hash)
      );
      create index web_push_subscriptions_customer on web_push_subscriptions (customer_id);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop table web_push_subscriptions;
      drop trigger passes_told on passes;
      drop function tell_passes();
    `);
  }
}
