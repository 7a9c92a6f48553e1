import { createHash, randomBytes } from 'node:crypto';
import { template } from './inkpad.mjs';

const SCHEMA = `
create table api_tokens (
  id bigint generated always as identity primary key,
  user_id bigint not null,
  sha256 bytea not null unique,
  revoked_at timestamptz
);
create table memberships (
  user_id bigint not null,
  account_id bigint not null,
  primary key (user_id, account_id)
);
create table cards (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  name text not null,
  stamps_required int not null,
  max_stamps_per_request int,
  expires_at timestamptz
);
create table rewards (
  id bigint generated always as identity primary key,
  card_id bigint not null references cards,
  name text not null,
  description text,
  stamps_required int not null,
  active boolean not null default true
);
create index on rewards (card_id);
create table customers (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  first_name text not null,
  email text not null,
  unique (account_id, email)
);
-- fillfactor: an update finds room on its own page and need not touch the indexes
create table customer_cards (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  customer_id bigint not null references customers,
  card_id bigint not null references cards,
  uuid uuid not null default gen_random_uuid(),
  code text not null,
  stamps_count int not null default 0,
  issued_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (uuid),
  unique (account_id, code)
) with (fillfactor = 70);
create index on customer_cards (customer_id);
create index on customer_cards (card_id);
create table stamp_ledger (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  customer_card_id bigint not null,
  stamps int not null,
  balance int not null,
  source text not null,
  note text,
  token_id bigint not null,
  request_id text not null,
  location_id bigint,
  external_ref text,
  created_at timestamptz not null default now()
);
create index on stamp_ledger (customer_card_id, id);
create table locations (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  name text not null,
  deleted_at timestamptz
);
create table unlocks (
  customer_card_id bigint not null,
  reward_id bigint not null,
  unlocked_at timestamptz not null default now(),
  primary key (customer_card_id, reward_id)
);
`;

/** What a till needs besides. */
const TILL_SCHEMA = 'create unique index on stamp_ledger (account_id, external_ref)';

/** One of the two CRUD services, in a database and a process of its own. */
export async function startCrud(stage, style, { name = style, cards, isTill = false }) {
  const url = await stage.database(`bench_${name.replaceAll('-', '_')}`);
  const accountId = 1;
  const token = `crud_${randomBytes(32).toString('base64url')}`;
  await stage.query(url, SCHEMA);
  if (isTill) await stage.query(url, TILL_SCHEMA);
  await stage.query(
    url,
    'with t as (insert into api_tokens (user_id, sha256) values (1, $1)) insert into memberships values (1, $2)',
    [createHash('sha256').update(token).digest(), accountId],
  );
  const [card] = await stage.query(
    url,
    'insert into cards (account_id, name, stamps_required) values ($1, $2, $3) returning id',
    [accountId, template.name, template.stampsRequired],
  );
  for (const { name, stampsRequired } of template.rewards) {
    await stage.query(
      url,
      'insert into rewards (card_id, name, stamps_required) values ($1, $2, $3)',
      [card.id, name, stampsRequired],
    );
  }
  const rows = await stage.query(
    url,
    `with made as (
       insert into customers (account_id, first_name, email)
       select $1, 'Guest ' || n, 'guest' || n || '@example.com' from generate_series(1, $3::int) n
       returning id
     )
     insert into customer_cards (account_id, customer_id, card_id, code)
     select $1, id, $2, upper(substr(md5(id::text), 1, 8)) from made
     returning id, customer_id`,
    [accountId, card.id, cards],
  );
  const [location] = await stage.query(
    url,
    `insert into locations (account_id, name) values ($1, 'Old Town') returning id`,
    [accountId],
  );
  const child = stage.start('bench/crud-server.mjs', {
    args: [style, isTill ? 'info' : 'silent'],
    env: { DATABASE_URL: url },
    readsOutput: isTill,
  });
  const { port } = await stage.ask(child);
  return {
    url,
    pid: child.pid,
    port,
    token,
    locationId: location.id,
    paths: rows.map(
      (row) =>
        `/api/v1/accounts/${accountId}/customers/${row.customer_id}/customer_cards/${row.id}/stamp`,
    ),
  };
}

/** The sums of the rows and of the ledger; both must equal what was acknowledged. */
export async function crudStamps(stage, { url }) {
  const [row] = await stage.query(
    url,
    `select (select sum(stamps_count) from customer_cards)::bigint as balance,
            (select sum(stamps) from stamp_ledger)::bigint as ledger`,
  );
  return [row.balance, row.ledger];
}
