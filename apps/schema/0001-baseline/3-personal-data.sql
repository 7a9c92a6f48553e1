-- Personal data in events are encrypted with a key for each person. Destroying the key erases the person.

-- A person's key, sealed with the master key.
create table personal_keys (
  subject_id bigint primary key,
  wrapped bytea not null,
  created_at timestamptz not null default now(),
  -- still opens what was sealed before; set only while the key is being renewed
  previous_wrapped bytea,
  -- what does not open any more was sealed with a key that was destroyed
  is_renewed boolean not null default false
);
create trigger personal_keys_wrapped_key before insert or update of wrapped on personal_keys
  for each row execute function refuse_retired_key('wrapped');
create trigger personal_keys_wait_for_backup before insert or update on personal_keys
  for each statement execute function es.wait_for_backup();

-- People who were erased, by id alone.
create table es.erasures (
  subject_id bigint primary key,
  account_id bigint not null,
  erased_at timestamptz not null default now(),
  -- the planner's statistics may still hold values of their row
  in_statistics boolean not null default true
);
create index erasures_in_statistics on es.erasures (subject_id)
  where in_statistics;

-- People who were erased in the last minutes, or got another key because somebody else was.
create table erasure_notices (
  id bigint generated always as identity primary key,
  subject_ids bigint[] not null,
  announced_at timestamptz not null default now()
);

-- The processes that may hold personal data.
create table erasure_watchers (
  id text primary key,
  seen_at timestamptz not null,
  -- the last notice after which it used nothing from before
  applied_notice_id bigint not null
);

-- A number that rises with whatever a card is stamped by, and with whatever happens to a customer's key.
create table account_versions (
  account_id bigint primary key,
  version bigint not null
) with (fillfactor = 70);

create function raise_account_versions(p_accounts bigint[]) returns void
language sql as $$
-- in order, so that two calls cannot deadlock
insert into public.account_versions as v (account_id, version)
select distinct id, 1 from unnest(p_accounts) as id order by id
on conflict (account_id) do update set version = v.version + 1
$$;

-- Erases people. `p_streams` are their own streams, which hold their e-mail address, phone number and references as claims.
create function es.erase(p_account bigint, p_subjects bigint[], p_streams text[]) returns void
language plpgsql as $$
begin
  delete from personal_keys where subject_id = any (p_subjects);
  delete from es.claims where stream_id = any (p_streams);
  insert into es.erasures (subject_id, account_id)
  select id, p_account from unnest(p_subjects) as id
  on conflict do nothing;
  -- what an uploaded file says about them
  update public.import_rows
  set sealed = null, state = case when state = 'pending' then 'failed' else state end,
    errors = coalesce(errors, '{"base": [
      {"code": "customer_erased", "params": {}, "message": "This customer was erased"}
    ]}')
  where customer_id = any (p_subjects) and sealed is not null;
  if cardinality(p_subjects) > 0 then perform public.raise_account_versions(array[p_account]); end if;
end $$;

create function es.destroy_previous_keys(p_subjects bigint[]) returns void
language sql as $$
update personal_keys set previous_wrapped = null, is_renewed = true where subject_id = any (p_subjects)
$$;

-- Notices become visible in the order of their ids: whoever has seen one has seen all before it.
create function announce_erasure(p_subjects bigint[]) returns bigint
language plpgsql as $$
declare
  notice_id bigint;
begin
  perform pg_advisory_xact_lock(727014);
  delete from erasure_notices where announced_at < now() - interval '10 minutes';
  delete from erasure_watchers where seen_at < now() - interval '10 minutes';
  insert into erasure_notices (subject_ids) values (p_subjects) returning id into notice_id;
  perform pg_notify('inkpad_erasures', '');
  return notice_id;
end $$;
