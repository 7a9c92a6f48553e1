export default async function stopTestPostgres() {
  await Promise.all(globalThis.testPostgres.map((postgres) => postgres.remove()));
}
