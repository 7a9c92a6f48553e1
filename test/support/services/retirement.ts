import { createTestDatabase, type TestDatabase } from '../database/database.js';

/** A database in which the end of v1 was announced, on the day of the deprecation unless another is given. */
export async function announcedDatabase(
  deprecated: Date,
  sunset: Date | null,
  announced = deprecated,
): Promise<TestDatabase> {
  const database = await createTestDatabase();
  await database.query(
    `insert into api_retirements (version, announced_at, deprecated_at, sunset_at)
     values ('v1', $1, $2, $3)`,
    [announced, deprecated, sunset],
  );
  return database;
}
