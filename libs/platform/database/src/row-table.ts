/**
 * For migrations: the table and the sequence of an aggregate's rows. Every such table has this shape, which
 * `es.write_rows` writes and `Rows` reads; what is searched, or read by other contexts, is a generated column.
 * @param columns generated ones, by name: `{ card_id: "bigint generated always as (…) stored" }`
 */
export function createRowTable(table: string, columns: Record<string, string> = {}): string {
  const more = Object.entries(columns).map(([name, column]) => `,\n  ${name} ${column}`);
  return `
create sequence ${table}_id as bigint;
create table ${table} (
  id bigint primary key,
  account_id bigint not null,
  revision bigint not null,
  hash bytea not null,
  fold_version int not null,
  state jsonb not null${more.join('')}
) with (fillfactor = 70);
create index ${table}_account on ${table} (account_id, id);
`;
}
