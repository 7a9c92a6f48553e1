import type pg from 'pg';
import { readConfig } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { isConnectionLoss } from '#platform/database/connection.js';
import { createPositionSql } from '#platform/event-store/port/position.js';
import {
  MOVED_TO_EVENTSTOREDB,
  MOVED_TO_POSTGRES,
} from '#platform/event-store/log/positions-check.js';
import { moveLoggedPositions, readLoggedPositions, TX } from './logged-positions.js';
import { parseProgram } from './programs.js';
import { recordRestore } from './recorded-restore.js';
import { runProgram, printInstallation } from './run-program.js';
import { refuseWhileConnected, withServicesStopped } from './stopped-services.js';

/** Statements that give the new table, once it has the old name, everything that the old one had. */
const REMADE = `
  select statement from (
    select 1 as step, format('alter table es.events add constraint %I %s', conname,
      pg_get_constraintdef(oid)) as statement
    from pg_constraint where conrelid = 'es.events'::regclass and contype in ('p', 'u', 'x')
    union all
    select 2, pg_get_indexdef(indexrelid) from pg_index i
    where indrelid = 'es.events'::regclass
      and not exists (select from pg_constraint where conindid = i.indexrelid)
    union all
    select 3, pg_get_triggerdef(oid) from pg_trigger
    where tgrelid = 'es.events'::regclass and not tgisinternal
    union all
    select 4, format('alter table es.events enable always trigger %I', tgname) from pg_trigger
    where tgrelid = 'es.events'::regclass and not tgisinternal and tgenabled = 'A'
    union all
    select 5, format('alter table es.events owner to %I', pg_get_userbyid(relowner))
    from pg_class where oid = 'es.events'::regclass
    union all
    select 6, format('grant %s on es.events to %s', privilege_type,
      case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end)
    from pg_class, aclexplode(relacl) where pg_class.oid = 'es.events'::regclass
  ) remade order by step`;

parseProgram('rebase-positions');

/**
 * Gives, after a logical dump and restore, all events positions that are valid on this server, in their original order.
 * Everything that refers to a position is updated in the same transaction. With KurrentDB only audit entries have
 * positions of PostgreSQL.
 */
runProgram(async () => {
  const config = readConfig(process.env, 'migrate');
  const { databaseMigrationUrl, eventStoreUrl } = config;
  printInstallation({ ...config, databaseUrl: databaseMigrationUrl });
  const rebased = await withServicesStopped(databaseMigrationUrl, 'rebase-positions', (client) =>
    rebase(client, eventStoreUrl !== null),
  );
  console.log(
    rebased === 'audit log'
      ? 'the audit log is in its original order, at positions of this server; the events are in KurrentDB (EventStoreDB), whose positions need no rebasing'
      : `${rebased} events are in their original order, at positions of this server`,
  );
});

/** @returns the number of events; or that they are in another engine, so that only the audit log was rebased */
async function rebase(client: pg.Client, isElsewhere: boolean): Promise<number | 'audit log'> {
  await client.query('begin');
  try {
    const events = await rebaseInTransaction(client, isElsewhere);
    await client.query('commit');
    return events;
  } catch (error) {
    if (!isConnectionLoss(error)) await client.query('rollback');
    throw error;
  }
}

async function rebaseInTransaction(
  client: pg.Client,
  isElsewhere: boolean,
): Promise<number | 'audit log'> {
  await client.query(
    'lock table es.events, es.positions, webhook_subscriptions, webhook_active_spans, webhook_replays, history in access exclusive mode',
  );
  // A process that starts now waits for the lock; one that started earlier is detected here.
  await refuseWhileConnected(client);
  await recordRestore(client);
  if (isElsewhere || (await isHistoryElsewhere(client))) {
    await rebaseAuditLog(client);
    return 'audit log';
  }
  const positions = await readLoggedPositions(client);
  const { rows: remade } = await client.query<{ statement: string }>(REMADE);
  const before = await countEvents(client);

  await client.query(
    'create table es.events_rebased (like es.events including all excluding indexes)',
  );
  const columns = await listColumns(client);
  await client.query(
    `insert into es.events_rebased (tx, pos, ${columns})
     select '${TX}'::xid8, row_number() over (order by e.tx, e.pos), ${columns} from es.events e
     order by e.tx, e.pos`,
  );
  await client.query('drop table es.events');
  await client.query('alter table es.events_rebased rename to events');
  for (const { statement } of remade) await client.query(statement);
  await client.query('analyze es.events');

  await moveLoggedPositions(client, positions);
  await client.query(
    `update history h set position = ${createPositionSql(TX, 'e.pos')}
     from es.events e where e.event_id = h.event_id`,
  );
  await rebaseAuditLog(client);
  await client.query(
    `select setval('es.global_seq', greatest(last_value, $1::bigint)) from es.global_seq
     where $1::bigint > 0`,
    [before],
  );
  await assertOrderPossible(client, before);
  return before;
}

/** Tells whether the history is in KurrentDB, even if EVENT_STORE_URL is not set here. */
async function isHistoryElsewhere(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ moved: boolean }>(
    `select exists (select from es.positions where subscription = $1)
       or (exists (select from es.identity where linked_at is not null)
           and not exists (select from es.events)
           and not exists (select from es.positions where subscription = $2)) as moved`,
    [MOVED_TO_EVENTSTOREDB, MOVED_TO_POSTGRES],
  );
  return rows[0]?.moved === true;
}

/** Rebases the audit log, whose trigger refuses every other change: only the owner of the table can disable it. */
async function rebaseAuditLog(client: pg.Client): Promise<void> {
  await client.query(
    `alter table audit_log disable trigger audit_log_is_not_changed;
     update audit_log set tx = '${TX}'::xid8 where tx <> '${TX}'::xid8;
     alter table audit_log enable always trigger audit_log_is_not_changed`,
  );
}

async function listColumns(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ columns: string }>(
    `select string_agg(quote_ident(attname), ', ' order by attnum) as columns from pg_attribute
     where attrelid = 'es.events'::regclass and attnum > 0 and not attisdropped
       and attgenerated = '' and attname not in ('tx', 'pos')`,
  );
  if (!rows[0]) throw new Error('es.events has no columns');
  return rows[0].columns;
}

async function countEvents(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ n: number }>('select count(*) as n from es.events');
  return rows[0]?.n ?? 0;
}

/** @throws if the new order is impossible for a stream; that rolls everything back */
async function assertOrderPossible(client: pg.Client, before: number): Promise<void> {
  const after = await countEvents(client);
  if (after !== before) throw new Error(`only ${after} of ${before} events were copied`);
  const { rows } = await client.query<{ stream_id: string }>(
    `select stream_id from (
       select stream_id, revision, row_number() over (partition by stream_id order by tx, pos) as nth
       from es.events) e
     where revision <> nth - 1
     limit 1`,
  );
  if (rows[0]) {
    throw new ConfigError(
      `The events of ${rows[0].stream_id} are not in the order of their revisions, because events were appended after the restore. Nothing was changed.`,
    );
  }
}
