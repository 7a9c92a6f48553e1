/**
 * Writes a statement, for a `with`, that deletes a few expired rows of a table along with each insert. So nothing else has to
 * delete them.
 * @param key the columns of the primary key
 * @param inserted the parameters of the row that the insert may update, which is left alone
 */
export function renderDeleteExpired(table: string, key: string, inserted: string): string {
  return `
      delete from ${table} where (${key}) in (
        select ${key} from ${table} where until < now() and (${key}) <> (${inserted})
        order by until limit 10 for update skip locked)`;
}

/**
 * Writes a statement that counts one more time under the key $1, within a window that begins with the first time. Each call
 * also deletes a few rows whose window is over.
 * @param table with the columns `key`, `until` and the count
 * @param window of SQL, such as `1 hour`
 * @returns the statement, whose row has the count and the whole seconds until the window ends, at least 1
 */
export function renderCount(table: string, column: string, window: string): string {
  return `
    with past as (${renderDeleteExpired(table, 'key', '$1')}
    )
    insert into ${table} as c (key, ${column}, until) values ($1, 1, now() + interval '${window}')
    on conflict (key) do update set
      ${column} = case when c.until < now() then 1 else c.${column} + 1 end,
      until = case when c.until < now() then excluded.until else c.until end
    returning ${column}, greatest(1, ceil(extract(epoch from until - now())))::int as seconds`;
}
