import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { ImportJson } from '#loyalty/imports/import.dto.js';
import { Browser } from '../support/browser/browser.js';
import { eventually } from '../support/jest/eventually.js';
import { newImportDispatch } from '../support/services/import-dispatcher.js';
import { startService, type LocalService } from '../support/services/service.js';

let service: LocalService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

it('an import whose file cannot be read says why, on its page in the language of the owner', async () => {
  const store = await service.newStore();
  const file = 'first_name,email\nAnna,a@example.com\n';
  const headers = { 'content-type': 'text/csv' };
  const { body } = await store.send<ImportJson>('POST', `${store.store}/imports`, file, headers);
  // As a file would be that is damaged between its upload and its check.
  await service.database.query(`update imports set format = 'ndjson' where id = $1`, [body.id]);
  const stopping = new AbortController();
  const dispatch = newImportDispatch(service).run(stopping.signal);
  service.onStop(() => {
    stopping.abort();
    return dispatch;
  });
  const failed = await eventually(
    async () => (await store.get<ImportJson>(`${store.store}/imports/${body.id}`)).body,
    ({ state }) => state === 'failed',
  );
  expect(failed.error).toBe('Row 1 is not valid JSON');
  const owner = await Browser.signedIn(service, store.email);
  const path = `/app/stores/${store.accountId}/transfers/imports/${body.id}`;
  const { text } = await owner.get(path, { 'accept-language': 'de' });
  expect(text).toContain('<p class="error">Zeile 1 ist kein gültiges JSON.</p>');
});
