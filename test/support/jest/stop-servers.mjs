export default async function stopServers() {
  await globalThis.testEventStore?.kill('SIGTERM');
  await Promise.all(globalThis.testPostgres.map((postgres) => postgres.remove()));
}
