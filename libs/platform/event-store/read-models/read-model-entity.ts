import { EntitySchema, type EntitySchemaColumnOptions } from 'typeorm';

/** A row of a read model, as TypeORM reads it. Only commits write rows. */
export type ReadModelRow<S> = {
  id: number;
  account_id: number;
  revision: number;
  state: S;
};

/**
 * Creates the entity of a read model. All of them have the same shape.
 * @param columns generated or derived from the state, for use in conditions
 */
export function createReadModelEntity<R extends ReadModelRow<unknown>>(
  table: string,
  columns: Record<
    Exclude<keyof R & string, keyof ReadModelRow<unknown>>,
    EntitySchemaColumnOptions
  >,
): EntitySchema<R> {
  const generated = Object.entries<EntitySchemaColumnOptions>(columns).map(
    ([name, column]): [string, EntitySchemaColumnOptions] => [
      name,
      { ...column, nullable: true, insert: false, update: false },
    ],
  );
  return new EntitySchema<R>({
    name: table,
    tableName: table,
    columns: {
      id: { type: 'bigint', primary: true },
      account_id: { type: 'bigint' },
      revision: { type: 'bigint' },
      state: { type: 'jsonb' },
      ...Object.fromEntries(generated),
    } as never,
  });
}
