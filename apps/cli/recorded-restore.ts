import type pg from 'pg';

/** Records that the database was restored: what it had given out since is lost, as readers of the feed are told. */
export async function recordRestore(client: pg.Client): Promise<void> {
  await client.query(
    `insert into es.identity (restored_at) values (now())
     on conflict (singleton) do update set restored_at = excluded.restored_at`,
  );
}
