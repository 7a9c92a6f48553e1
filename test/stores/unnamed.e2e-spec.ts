import { expect, it } from '@jest/globals';
import { UNNAMED_STORE } from '#loyalty/accounts/account.js';
import { newPoster } from '../support/browser/signup.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { useSharedService } from '../support/http/contract.js';

const service = useSharedService();

it('guests read the name of the card where nobody has named the store yet', async () => {
  const store = await service.newStore();
  const name = { account: { name: UNNAMED_STORE } };
  expect((await store.patch(store.store, name)).status).toBe(200);
  const { signup_url: url } = await newPoster(store, { title: 'Coffee club' });
  const slug = url.split('/').at(-1) ?? '';
  const { customerCard } = await enrol(store, { card: { name: 'Coffee club' } });
  const read = async (path: string) => {
    const response = await fetch(`${service.running.baseUrl}${path}`);
    return [response.status, await response.text()] as const;
  };
  for (const path of [
    `/join/${slug}`,
    `/posters/${slug}`,
    `/passes/${customerCard.uuid}`,
    `/passes/${customerCard.uuid}/manifest.webmanifest`,
  ]) {
    const [status, text] = await read(path);
    expect([path, status, text.includes('Coffee club')]).toEqual([path, 200, true]);
    expect(text).not.toContain(UNNAMED_STORE);
    expect(text).not.toContain('Coffee club · Coffee club');
  }
});
