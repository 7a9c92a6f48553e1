-- Users, what they may do, and how they sign in.

-- One row that rises with every change of who may do what, in the same transaction: no process goes on with rights that
-- it has cached. Raised at the commit, so that its lock is the last one taken and held for no longer.
create table rights_version (version bigint not null);
insert into rights_version values (1);

create function raise_rights_version() returns trigger
language plpgsql as $$
begin
  update rights_version set version = version + 1;
  return null;
end $$;

-- People who sign in or have API tokens.
create table users (
  id bigint generated always as identity primary key,
  email text,
  name text not null,
  password_hash text not null,
  created_at timestamptz not null,
  removed_at timestamptz,
  -- what addresses are compared by
  email_key text collate "C",
  -- by a link in an e-mail to it, or by a company
  email_confirmed_at timestamptz,
  -- when the user last left a store, or was created
  left_stores_at timestamptz not null default now(),
  -- of a generated password, which its user has to change; null: it is the user's own
  password_expires_at timestamptz,
  constraint users_address
    check ((removed_at is not null or email is not null) and ((email is null) = (email_key is null)))
);
create unique index users_email_key on users (email_key)
  where removed_at is null;
create index users_left_stores on users (left_stores_at)
  where removed_at is null;
create index users_removed on users (removed_at)
  where removed_at is not null and email is not null;
create constraint trigger rights_of_user after update on users
  deferrable initially deferred for each row when (old.removed_at is distinct from new.removed_at)
  execute function raise_rights_version();

-- Which stores a user may work in.
create table memberships (
  user_id bigint not null references users (id),
  account_id bigint not null,
  created_at timestamptz not null,
  role text not null check (role in ('owner', 'manager', 'staff')),
  -- it is this user's own store
  personal boolean not null default false,
  primary key (user_id, account_id)
);
create index memberships_account on memberships (account_id);
create unique index memberships_personal on memberships (account_id)
  where personal;
create constraint trigger rights_of_member after update or delete on memberships
  deferrable initially deferred for each row execute function raise_rights_version();

-- API tokens, by their hash.
create table api_tokens (
  id bigint generated always as identity primary key,
  user_id bigint not null references users (id),
  name text not null,
  sha256 bytea not null unique check (octet_length(sha256) = 32),
  per_minute int check (per_minute > 0),
  created_at timestamptz not null,
  revoked_at timestamptz,
  expires_at timestamptz,
  -- to the minute
  last_used_at timestamptz,
  -- what the token has less than its user; null: nothing
  role text check (role in ('owner', 'manager', 'staff')),
  account_ids bigint[] check (cardinality(account_ids) > 0),
  read_only boolean not null default false
);
create index api_tokens_user on api_tokens (user_id);
create constraint trigger rights_of_token after update on api_tokens
  deferrable initially deferred for each row when (
    (old.revoked_at, old.expires_at, old.per_minute, old.user_id, old.role, old.account_ids, old.read_only)
    is distinct from (new.revoked_at, new.expires_at, new.per_minute, new.user_id, new.role, new.account_ids, new.read_only))
  execute function raise_rights_version();
create constraint trigger rights_without_token after delete on api_tokens
  deferrable initially deferred for each row execute function raise_rights_version();

-- Tokens of the admin API, by their hash. They belong to no user.
create table admin_tokens (
  id bigint generated always as identity primary key,
  name text not null,
  sha256 bytea not null unique check (octet_length(sha256) = 32),
  read_only boolean not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  -- to the minute
  last_used_at timestamptz,
  revoked_at timestamptz
);

-- Invitations to work in a store.
create table invitations (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  email text not null,
  role text not null check (role in ('owner', 'manager', 'staff')),
  -- of the secret in the link
  sha256 bytea not null unique check (octet_length(sha256) = 32),
  invited_by bigint not null references users (id),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  accepted_at timestamptz,
  withdrawn_at timestamptz,
  email_key text collate "C",
  -- whoever has the link reads the e-mails to the address
  is_mailed boolean not null default false,
  accepted_by bigint references users (id),
  constraint invitations_address check (accepted_at is not null or withdrawn_at is not null or email_key is not null)
);
create index invitations_ended on invitations (coalesce(accepted_at, withdrawn_at, expires_at));
create unique index invitations_open on invitations (account_id, email_key)
  where accepted_at is null and withdrawn_at is null;

-- Which account of a company signs in as which user.
create table company_sign_ins (
  issuer text collate "C" not null,
  subject text collate "C" not null,
  user_id bigint not null references users (id),
  created_at timestamptz not null,
  unique (user_id, issuer),
  primary key (issuer, subject)
);

-- Sessions of browsers, by the hash of their cookie.
create table sessions (
  id bigint generated always as identity primary key,
  user_id bigint not null references users (id),
  sha256 bytea not null unique check (octet_length(sha256) = 32),
  -- the password was right, and a code of the second factor is still to come
  awaits_code boolean not null,
  -- a company has said who it is, at created_at
  by_company boolean not null,
  -- where the second factor came from: a code that was entered, or a company that says it has asked for one; null: none
  second_factor text check (second_factor in ('code', 'company')),
  -- for the user's list of sessions, such as Safari and iPhone; null: unknown
  browser text,
  system text,
  -- the session of a member who has entered their PIN at the counter of this store: it reaches nothing else
  counter_account_id bigint,
  created_at timestamptz not null,
  seen_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_user on sessions (user_id);

-- When a session ends by itself. That of a counter outlasts the days on which a shop is closed.
create function session_ends_at(s sessions) returns timestamptz language sql stable parallel safe as $$
select least(s.expires_at, s.seen_at
  + case when s.counter_account_id is null then interval '12 hours' else interval '4 days' end)
$$;

-- Until when somebody was signed in with a session: what a phone has collected at the counter by then is theirs (ADR-0139).
create table ended_sessions (
  session_id bigint not null,
  user_id bigint not null references users (id),
  created_at timestamptz not null,
  ended_at timestamptz not null,
  primary key (session_id, user_id, created_at)
);
create index ended_sessions_user on ended_sessions (user_id, ended_at);

create function record_ended_session() returns trigger language plpgsql as $$
begin
  insert into ended_sessions (session_id, user_id, created_at, ended_at)
    values (old.id, old.user_id, old.created_at, least(now(), session_ends_at(old)))
    on conflict do nothing;
  return null;
end
$$;
create trigger sessions_end after delete on sessions
  for each row when (not old.awaits_code) execute function record_ended_session();
create trigger sessions_change_hands after update of user_id on sessions
  for each row when (old.user_id <> new.user_id) execute function record_ended_session();

-- PINs with which members take over the counter of a store.
create table counter_pins (
  user_id bigint primary key references users (id),
  pin_hash text not null,
  -- wrong attempts since it was last right: after some it is not checked any more
  failures int not null default 0,
  -- since it was set
  all_failures int not null default 0,
  created_at timestamptz not null
);

-- Browsers that somebody has signed in with: their wrong attempts are counted apart from those of all others.
create table known_browsers (
  user_id bigint not null references users (id),
  sha256 bytea not null,
  seen_at timestamptz not null,
  primary key (user_id, sha256)
);

-- Stores whose members need a second factor.
create table second_factor_stores (
  account_id bigint primary key
);

-- Second factors (RFC 6238).
create table second_factors (
  user_id bigint primary key references users (id),
  -- sealed with the master key
  secret bytea not null,
  -- null while it is being set up
  confirmed_at timestamptz,
  -- of the last code that was taken, the number of its 30 seconds: no code is taken twice
  last_step bigint not null default 0,
  created_at timestamptz not null,
  code_failures int not null default 0,
  -- of the recovery codes, which are random: one for all of a user, so that one hash finds any of them
  recovery_salt bytea
);

-- Codes that replace a lost second factor, by their hash.
create table recovery_codes (
  hash bytea primary key,
  user_id bigint not null references users (id),
  used_at timestamptz
);
create index recovery_codes_user on recovery_codes (user_id);

-- Links to choose a new password, by the hash of their secret.
create table password_resets (
  sha256 bytea primary key,
  user_id bigint not null references users (id),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index password_resets_user on password_resets (user_id, created_at);

-- Links to confirm an e-mail address, by the hash of their secret.
create table address_changes (
  sha256 bytea primary key,
  user_id bigint not null references users (id),
  email text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index address_changes_expired on address_changes (expires_at);
create index address_changes_user on address_changes (user_id, created_at);

create table api_retirements (
  id bigint generated always as identity primary key,
  version text not null,
  -- when callers were first notified; the twelve months count from then
  announced_at timestamptz not null,
  deprecated_at timestamptz not null,
  sunset_at timestamptz,
  withdrawn_at timestamptz,
  -- when everybody concerned was notified: of the retirement, of its date, and of that date a month before it
  notified_at timestamptz,
  sunset_notified_at timestamptz,
  reminded_sunset_at timestamptz,
  check (sunset_at >= deprecated_at)
);
create unique index api_retirements_standing on api_retirements (version)
  where withdrawn_at is null;

-- Who was notified of what, each once.
create table api_retirement_notices (
  retirement_id bigint not null references api_retirements (id),
  occasion text not null check (occasion in ('announced', 'sunset', 'reminder')),
  -- of reminders: there is one for each date
  sunset_at timestamptz,
  user_id bigint not null references users (id),
  -- null: there was no mail server, so it is in the log alone
  mail_id uuid,
  recorded_at timestamptz not null,
  -- null: the e-mail waits
  ended_at timestamptz,
  outcome text check (outcome in ('sent', 'given_up')),
  unique nulls not distinct (retirement_id, occasion, sunset_at, user_id)
);
create unique index api_retirement_notices_mail on api_retirement_notices (mail_id)
  where mail_id is not null;
