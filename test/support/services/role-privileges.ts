import pg from 'pg';
import type { Run } from './installation.js';

/** The expected privileges of the service's role. */
export const ONLY_TO_ADD = { superuser: false, adds: true, removes: false, owns: false };

/** Reads the privileges of the role that the programs connect as. */
export async function readPrivileges({ postgres }: Run): Promise<unknown> {
  const client = new pg.Client(postgres?.url);
  await client.connect();
  const { rows } = await client.query(
    `select rolsuper as superuser, has_table_privilege('es.events', 'insert') as adds,
       has_table_privilege('es.events', 'update, delete, truncate, trigger') as removes,
       exists (select from pg_class where relowner = r.oid) as owns
     from pg_roles r where rolname = current_user`,
  );
  await client.end();
  return rows[0];
}
