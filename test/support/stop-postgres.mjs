import { rmSync } from 'node:fs';

export default async function stopTestPostgres() {
  await Promise.all(globalThis.testPostgres.map((postgres) => postgres.remove()));
  rmSync(process.env.TEST_FILES, { recursive: true, force: true });
}
