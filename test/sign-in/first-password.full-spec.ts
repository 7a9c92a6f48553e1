import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { SetPassword } from '#identity/user.commands.js';
import { Browser } from '../support/browser/browser.js';
import { CompanyProvider } from '../support/emulators/oidc-provider.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests that a generated password ends with the first sign-in, or after a week. */

const FIRST = 'seven quiet lanterns';
const OWN = 'nine loud harbours';
const PAGE = '/app/account/first-password';

let company: CompanyProvider;
let service: LocalService;
let store: Client & { email: string };

beforeAll(async () => {
  company = await CompanyProvider.start();
  service = await startService({ TRUST_PROXY_HOPS: '1', ...company.environment });
  store = await service.newStore();
});
afterAll(async () => {
  await service?.stop();
  await company?.stop();
});

/** Creates a member of the store as the command line and the admin API do. */
async function createUser(): Promise<string> {
  const email = `${randomUUID()}@member.example`;
  await service.execute(new CreateUser(cli, email, 'Mira', FIRST, true));
  await service.execute(new AddMember(cli, store.accountId, email, 'manager'));
  return email;
}

async function signIn(email: string, password = FIRST): Promise<Browser> {
  const browser = new Browser(service);
  expect((await browser.signIn(email, password)).status).toBe(303);
  return browser;
}

const setPassword = (browser: Browser, password: string, current_password = FIRST) =>
  browser.post(PAGE, { current_password, password });

describe('a generated password', () => {
  it('opens one page, which replaces it', async () => {
    const email = await createUser();
    const browser = await signIn(email);
    const pages = ['/app', '/app/account', `/app/stores/${store.accountId}/tokens`, '/counter'];
    for (const path of [...pages, '/app/account/codes', '/app/account/pin']) {
      const { status, location } = await browser.get(path);
      expect([path, status, location]).toEqual([path, 303, PAGE]);
    }
    expect((await browser.get(PAGE)).text).toContain('Choose your own password');
    const elsewhere = await browser.post('/app/account', { name: 'Eve', email });
    // It is kept until then, and not executed.
    expect([elsewhere.status, elsewhere.text.includes('name="kept_form"')]).toEqual([200, true]);
    expect((await browser.post('/app/account', {})).location).toBe(PAGE);
    await browser.get(PAGE);
    expect((await setPassword(browser, FIRST)).text).toContain('choose a different password');
    expect((await setPassword(browser, 'password12')).status).toBe(422);
    expect((await setPassword(browser, OWN, 'not it')).status).toBe(422);
    expect((await setPassword(browser, OWN)).location).toBe('/app');
    const account = await browser.get('/app/account');
    expect([account.status, account.text.includes('Eve')]).toEqual([200, false]);
    expect((await browser.get(PAGE)).location).toBe('/app/account');
    const again = await new Browser(service).signIn(email, FIRST);
    expect(again.status).toBe(422);
    expect((await (await signIn(email, OWN)).get('/app/account')).status).toBe(200);
  });

  it('lets its user sign out', async () => {
    const browser = await signIn(await createUser());
    await browser.get(PAGE);
    expect((await browser.post('/app/sign-out')).location).toBe('/app/sign-in?done=signed_out');
  });

  it('works no longer after a week, and says so only to who knows it', async () => {
    const email = await createUser();
    const expireIn = (days: number) =>
      service.database.query(
        `update users set password_expires_at = password_expires_at - make_interval(days => $2)
         where email = $1`,
        [email, days],
      );
    await expireIn(6);
    await signIn(email);
    await expireIn(1);
    const late = await new Browser(service).signIn(email, FIRST);
    expect([late.status, late.text.includes('was only for your first sign-in')]).toEqual([
      422,
      true,
    ]);
    const wrong = await new Browser(service).signIn(email, 'not it');
    expect(wrong.text).toContain('E-mail address or password is wrong');
  });

  it('is one that replaces a forgotten one as well', async () => {
    const { email } = await service.newStore();
    const before = await signIn(email, 'correct horse');
    await service.execute(new SetPassword(cli, email, FIRST, 0, true));
    expect((await before.get('/app')).location).toContain('/app/sign-in');
    const browser = await signIn(email);
    expect((await browser.get('/app')).location).toBe(PAGE);
    await browser.get(PAGE);
    expect((await setPassword(browser, OWN)).location).toBe('/app');
  });

  it('is not asked to be changed of whom a company signs in', async () => {
    const email = await createUser();
    company.person = { sub: email, email, email_verified: true };
    const browser = new Browser(service);
    const { location } = await browser.get('/app/sign-in/company');
    const consent = await fetch(location ?? '', { redirect: 'manual' });
    const back = new URL(consent.headers.get('location') ?? '');
    await browser.get(back.pathname + back.search);
    expect((await browser.get('/app/account')).status).toBe(200);
  });
});
