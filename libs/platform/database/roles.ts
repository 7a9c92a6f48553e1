import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import pg from 'pg';
import { ConfigError } from '#platform/kernel/config-error.js';
import { type PlatformConfig } from '#platform/kernel/platform-config.js';
import { LOG_SETTINGS } from './session.js';
import { findDatabaseError, SQLSTATE } from './sqlstate.js';

/** The default of PostgreSQL (scram_iterations). */
const SCRAM_ITERATIONS = 4096;

type Urls = Pick<PlatformConfig, 'databaseUrl' | 'databaseMigrationUrl'>;

/**
 * Creates the role of DATABASE_URL if it does not exist. An existing role keeps its password.
 * @throws ConfigError when it does not exist and the owner may not create it
 */
export async function ensureServiceRole(owner: pg.ClientBase, urls: Urls): Promise<void> {
  const service = findServiceRole(urls);
  if (!service) return;
  const existing = await owner.query('select from pg_roles where rolname = $1', [service.role]);
  if (existing.rowCount !== 0) return;
  const name = pg.escapeIdentifier(service.role);
  const password = service.password
    ? `password ${pg.escapeLiteral(createScramVerifier(service.password))}`
    : '';
  try {
    await owner.query(
      `create role ${name} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls ${password}`,
    );
  } catch (cause) {
    if (findDatabaseError(cause)?.code !== SQLSTATE.insufficientPrivilege) throw cause;
    const { username } = new URL(urls.databaseMigrationUrl);
    throw new ConfigError(
      `The role ${service.role} of DATABASE_URL does not exist, and ${decodeURIComponent(username)} of DATABASE_MIGRATION_URL may not make it: have an administrator run create role ${name} login password '…', then run inkpad migrate again.`,
      { cause },
    );
  }
}

/**
 * Grants the rights of the processes: append to the history and the audit log, read and write everything else, and
 * call the functions that do more with the owner's rights (ADR-0027). Run it after each migration.
 */
export async function grantToService(owner: pg.ClientBase, urls: Urls): Promise<void> {
  const service = findServiceRole(urls);
  if (!service) return;
  const role = pg.escapeIdentifier(service.role);
  const { rows: definers } = await owner.query<{ name: string }>(
    `select oid::regprocedure::text as name from pg_proc
     where prosecdef and proowner = current_user::regrole
       and pronamespace in ('es'::regnamespace, 'public'::regnamespace)`,
  );
  // One query is one transaction, so the service never has more rights than these, not even for a moment.
  await owner.query(`
    grant usage on schema es, public to ${role};
    grant select, insert, update, delete on all tables in schema es, public to ${role};
    revoke update, delete on es.events, audit_log from ${role};
    revoke insert, update, delete on migrations from ${role};
    grant usage, select on all sequences in schema es, public to ${role};
    -- raised when a failover has lowered them; positions come from those of es, which nobody sets
    grant update on all sequences in schema public to ${role};
    ${definers.map(({ name }) => `grant execute on function ${name} to ${role};`).join('\n')}
  `);
  await queryIfAllowed(owner, `revoke create on schema public from public, ${role}`);
  // To see the age of other roles' transactions, which hold back the readers of the log.
  await queryIfAllowed(owner, `grant pg_read_all_stats to ${role}`);
  await grantLogSettings(owner, service.role);
}

/**
 * Lets the processes' role set what keeps personal values out of the server's log. Does nothing if it may already: the
 * catalog belongs to all databases of the server, and two grants at once would fail.
 */
async function grantLogSettings(owner: pg.ClientBase, role: string): Promise<void> {
  const names = Object.keys(LOG_SETTINGS);
  const { rows } = await owner.query<{ name: string }>(
    `select name from unnest($2::text[]) as name where not has_parameter_privilege($1, name, 'set')`,
    [role, names],
  );
  if (rows.length === 0) return;
  const missing = rows.map(({ name }) => name).join(', ');
  await queryIfAllowed(owner, `grant set on parameter ${missing} to ${pg.escapeIdentifier(role)}`);
}

/**
 * Runs a statement that some servers allow only to an administrator; `canRewriteHistory` and the metrics work without
 * it.
 */
async function queryIfAllowed(owner: pg.ClientBase, statement: string): Promise<void> {
  try {
    await owner.query(statement);
  } catch (error) {
    if (findDatabaseError(error)?.code !== SQLSTATE.insufficientPrivilege) throw error;
  }
}

/**
 * Tells whether the connected role could change or delete events or audit entries, or hide that it did. It could as a
 * superuser, as (a member of) the owner of the tables, by a grant, or by functions that the owner's functions would
 * call.
 */
export async function canRewriteHistory(
  pool: pg.Pool,
): Promise<{ role: string; mayRewrite: boolean }> {
  const { rows } = await pool.query<{ role: string; rewrites: boolean }>(
    `select current_user::text as role,
       bool_or(r.rolsuper or r.rolcreaterole or pg_has_role(c.relowner, 'member')
         or has_table_privilege(c.oid, 'update, delete, truncate, trigger')
         or has_schema_privilege('public', 'create') or has_schema_privilege('es', 'create')) as rewrites
     from pg_class c, pg_roles r
     where c.oid in ('es.events'::regclass, 'audit_log'::regclass) and r.rolname = current_user`,
  );
  return { role: rows[0]?.role ?? '', mayRewrite: rows[0]?.rewrites ?? false };
}

/** Returns the role of DATABASE_URL; null when the processes use the owner's connection. */
function findServiceRole(urls: Urls): { role: string; password: string } | null {
  const [service, owner] = [new URL(urls.databaseUrl), new URL(urls.databaseMigrationUrl)];
  if (service.username === owner.username) return null;
  const [role, password] = [service.username, service.password].map(decodeURIComponent);
  if (!role) {
    throw new ConfigError('DATABASE_URL must name its role, since DATABASE_MIGRATION_URL does.');
  }
  return { role, password: password ?? '' };
}

/**
 * Creates the verifier to send instead of the password (RFC 5803), which would otherwise appear in the server's log
 * after an error.
 */
function createScramVerifier(password: string): string {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password.normalize('NFKC'), salt, SCRAM_ITERATIONS, 32, 'sha256');
  const keyed = (text: string) => createHmac('sha256', salted).update(text).digest();
  const storedKey = createHash('sha256').update(keyed('Client Key')).digest('base64');
  const serverKey = keyed('Server Key').toString('base64');
  return `SCRAM-SHA-256$${SCRAM_ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}
