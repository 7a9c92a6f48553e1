export default async function stopTestPostgres() {
  await globalThis.testPostgres.remove();
}
