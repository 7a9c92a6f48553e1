import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { hashToken } from '#identity/token.js';
import { RemoveUser } from '#identity/identity.commands.js';
import { Browser } from '../support/browser/browser.js';
import { cli, startService, type LocalService } from '../support/services/service.js';

let service: LocalService;

beforeAll(async () => {
  service = await startService({ TRUST_PROXY_HOPS: '1' });
});
afterAll(() => service?.stop());

/** Opens a browser of the same machine. */
function openBrowser(address = '127.0.0.1'): Browser {
  const browser = new Browser(service);
  browser.address = address;
  return browser;
}

/** Creates a link as `npm start` does. @param expires SQL */
async function createLink(email: string, expires = "now() + interval '10 minutes'") {
  const token = randomBytes(32).toString('base64url');
  await service.database.query(
    `insert into sessions (user_id, sha256, awaits_code, by_company, by_link, created_at, seen_at, expires_at)
     select id, $2, true, false, true, now(), now(), ${expires} from users where email = $1`,
    [email, hashToken(token)],
  );
  return { token, path: `/app/sign-in/link?token=${token}` };
}

describe('the link that npm start prints', () => {
  it('signs in once, and leads to the store', async () => {
    const { email, accountId } = await service.newStore();
    const { path } = await createLink(email);
    const browser = openBrowser();
    expect(await browser.get(path)).toMatchObject({
      status: 303,
      location: `/app/stores/${accountId}`,
    });
    expect(await browser.get(`/app/stores/${accountId}`)).toMatchObject({ status: 200 });
    const { rows } = await service.database.query(
      `select 1 from audit_log where type = 'user.signed_in' and subject ->> 'method' = 'link'`,
    );
    expect(rows).toHaveLength(1);
    const second = openBrowser();
    expect(await second.get(path)).toMatchObject({ location: '/app/sign-in?done=late' });
    expect(second.cookies.has('__Host-inkpad')).toBe(false);
  });

  it('signs in one of two who open it at the same time', async () => {
    const { email, accountId } = await service.newStore();
    const { path } = await createLink(email);
    const responses = await Promise.all([openBrowser().get(path), openBrowser().get(path)]);
    expect(responses.map(({ location }) => location).sort()).toEqual([
      '/app/sign-in?done=late',
      `/app/stores/${accountId}`,
    ]);
  });

  it.each([
    ['from another machine', '192.0.2.7', undefined],
    ['after ten minutes', '127.0.0.1', 'now()'],
  ])('does not sign in %s', async (_case, address, expires) => {
    const { path } = await createLink((await service.newStore()).email, expires);
    const browser = openBrowser(address);
    expect(await browser.get(path)).toMatchObject({ location: '/app/sign-in?done=late' });
  });

  it('does not sign in a user who was removed, or without its secret', async () => {
    const { email } = await service.newStore();
    const { path } = await createLink(email);
    await service.execute(new RemoveUser(cli, email));
    for (const broken of [path, '/app/sign-in/link', '/app/sign-in/link?token=x&token=y']) {
      const { status, location } = await openBrowser().get(broken);
      expect([broken, status, location]).toEqual([broken, 303, '/app/sign-in?done=late']);
    }
  });

  it('is no cookie of a session, nor does a session that awaits a code skip it', async () => {
    const { email } = await service.newStore();
    const { token } = await createLink(email);
    const browser = openBrowser();
    browser.cookies.set('__Host-inkpad', token);
    expect(await browser.get('/app')).toMatchObject({ location: '/app/sign-in' });
    await service.database.query('update sessions set by_link = false where sha256 = $1', [
      hashToken(token),
    ]);
    const { location } = await openBrowser().get(`/app/sign-in/link?token=${token}`);
    expect(location).toBe('/app/sign-in?done=late');
  });

  it('asks for the code of a user who has set up a second factor', async () => {
    const { email } = await service.newStore();
    const { path } = await createLink(email);
    await service.database.query(
      `insert into second_factors (user_id, secret, confirmed_at, created_at)
       select id, '', now(), now() from users where email = $1`,
      [email],
    );
    const browser = openBrowser();
    expect(await browser.get(path)).toMatchObject({ location: '/app/sign-in/code' });
    expect((await browser.get('/app')).location).toBe('/app/sign-in');
  });
});

it.each([
  '/app/sign-in',
  '/app/sign-in/code',
  '/app/sign-in/company',
  '/app/sign-in/company/done',
  '/app/sign-in/link',
  '/app/password/forgot',
  '/app/password/reset',
  '/app/account/address',
])('a parameter of %s that is repeated is no failure', async (page) => {
  const query = ['done', 'return_to', 'token', 'state'].map((name) => `${name}=/a&${name}=/b`);
  const { status } = await openBrowser().get(`${page}?${query.join('&')}`);
  expect(status).toBeLessThan(500);
});
