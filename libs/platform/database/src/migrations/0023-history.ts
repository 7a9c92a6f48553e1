import type { MigrationInterface, QueryRunner } from 'typeorm';

const HISTORY = `
create table history (
  -- the number of the event in the log, from 0 without gaps
  seq bigint primary key,
  event_id uuid not null,
  -- plain byte order, which costs half as much to keep in an index
  stream text collate "C" not null,
  revision bigint not null,
  position text collate "C" not null,
  account_id bigint not null,
  name text collate "C" not null,
  recorded_at timestamptz not null,
  -- the latest recorded_at so far. It never falls, so a time is a place in the table
  latest_recorded_at timestamptz not null,
  occurred_at timestamptz not null,
  channel text collate "C" not null,
  actor text collate "C" not null,
  customer_id bigint,
  customer_card_id bigint,
  card_id bigint,
  location_id bigint,
  reward_id bigint,
  stamps bigint,
  balance bigint,
  reverses uuid
);
create unique index history_event on history (event_id);
create unique index history_stream on history (stream, revision);
create index history_position on history (position);
create index history_time on history (latest_recorded_at, seq);
-- by how much the clocks disagree, where they do
create index history_late on history ((latest_recorded_at - recorded_at))
  where latest_recorded_at - recorded_at > interval '1 minute';
create index history_account on history (account_id, seq);
create index history_name on history (account_id, name, seq);
create index history_channel on history (account_id, channel, seq);
create index history_actor on history (account_id, actor, seq);
create index history_customer on history (customer_id, seq) where customer_id is not null;
create index history_customer_card on history (customer_card_id, seq) where customer_card_id is not null;
create index history_card on history (card_id, seq) where card_id is not null;
create index history_location on history (location_id, seq) where location_id is not null;
create index history_reverses on history (reverses) where reverses is not null;
`;

export class History implements MigrationInterface {
  readonly name = 'History0000000000023';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(HISTORY);
  }

  /** A subscription fills the table anew. */
  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop table history;
      delete from es.checkpoints where subscription = 'history';
    `);
  }
}
