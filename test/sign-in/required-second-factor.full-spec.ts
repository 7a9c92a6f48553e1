import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Secret, TOTP } from 'otpauth';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { Browser } from '../support/browser/browser.js';
import { CompanyProvider } from '../support/emulators/oidc-provider.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests who needs a second factor, by the operator's setting or a store's rule, and what a company's word counts. */

const PASSWORD = 'correct horse';
const SETUP = '/app/account/codes';
const STEP_MS = 30_000;

let company: CompanyProvider;
let service: LocalService;

beforeAll(async () => {
  company = await CompanyProvider.start();
  service = await startService({ TRUST_PROXY_HOPS: '1', ...company.environment });
});
afterAll(async () => {
  await service?.stop();
  await company?.stop();
});

async function signIn(email: string, at: LocalService = service): Promise<Browser> {
  const browser = new Browser(at);
  expect((await browser.signIn(email, PASSWORD)).status).toBe(303);
  return browser;
}

/** Signs in with the company. @returns the browser and where it leads to */
async function signInWithCompany(
  email: string,
  amr?: unknown,
): Promise<{ browser: Browser; location: string | null }> {
  await service.database.query('update users set email_confirmed_at = now() where email = $1', [
    email,
  ]);
  company.person = { sub: email, email, email_verified: true, ...(amr !== undefined && { amr }) };
  const browser = new Browser(service);
  const { location } = await browser.get('/app/sign-in/company');
  const consent = await fetch(location ?? '', { redirect: 'manual' });
  const back = new URL(consent.headers.get('location') ?? '');
  return { browser, location: (await browser.get(back.pathname + back.search)).location };
}

/** Sets up the codes. @returns the app, whose next code is one step further */
async function setUp(browser: Browser): Promise<TOTP> {
  await browser.get(SETUP);
  expect((await browser.post(`${SETUP}/begin`, { password: PASSWORD })).location).toBe(SETUP);
  const { text } = await browser.get(SETUP);
  const secret = /id="secret">([^<]+)/.exec(text)?.[1]?.replaceAll(' ', '') ?? '';
  const app = new TOTP({ secret: Secret.fromBase32(secret) });
  const { status } = await browser.post(`${SETUP}/confirm`, { code: app.generate() });
  expect(status).toBe(200);
  return app;
}

const getNextCode = (app: TOTP) => app.generate({ timestamp: Date.now() + STEP_MS });

/** Changes the rule on the page, as an owner who has no codes or has just set them up. */
async function changeRule(owner: Browser, { accountId }: Client, required: 'yes' | 'no') {
  const page = `/app/stores/${accountId}/users/second-factor`;
  await owner.get(page);
  return owner.post(page, { required, current_password: PASSWORD });
}

async function addMember({ accountId }: Client): Promise<string> {
  const email = `${randomUUID()}@member.example`;
  await service.execute(new CreateUser(cli, email, 'Mira', PASSWORD));
  await service.execute(new AddMember(cli, accountId, email, 'manager'));
  return email;
}

async function expectOnlySetup(browser: Browser, { accountId }: Client): Promise<void> {
  for (const path of ['/app', '/app/account', `/app/stores/${accountId}`, '/counter']) {
    expect([path, (await browser.get(path)).location]).toEqual([path, SETUP]);
  }
  const { text } = await browser.get(SETUP);
  expect(text).toContain('Two-step sign-in is required here');
  const form = await browser.post('/app/account', { name: 'Eve' });
  // It is kept until then, and not executed.
  expect([form.status, form.text.includes('name="kept_form"')]).toEqual([200, true]);
  const button = await browser.post('/app/account', {});
  expect([button.status, button.location]).toEqual([303, SETUP]);
}

describe('a store that requires two-step sign-in', () => {
  it('opens to its members, also to those signed in, once they have set it up', async () => {
    const store = await service.newStore();
    const [owner, member] = [await signIn(store.email), await signIn(await addMember(store))];
    const users = `/app/stores/${store.accountId}/users`;
    expect((await owner.get(users)).text).toContain('Everyone in this store decides');
    expect((await changeRule(owner, store, 'yes')).location).toBe(users);
    await expectOnlySetup(owner, store);
    await expectOnlySetup(member, store);
    await setUp(owner);
    expect((await owner.get(users)).text).toContain('Everyone in this store needs a code');
    await expectOnlySetup(member, store);
    await setUp(member);
    expect((await member.get(`/app/stores/${store.accountId}`)).status).toBe(200);
    const { rows } = await service.database.query(
      `select subject from audit_log where account_id = $1 and type = 'store.second_factor_rule_changed'`,
      [store.accountId],
    );
    expect(rows).toEqual([{ subject: { changes: { required: { from: false, to: true } } } }]);
  });

  it('ends sessions that began without the codes that their user has', async () => {
    const store = await service.newStore();
    const email = await addMember(store);
    const former = await signIn(email);
    await setUp(await signIn(email));
    expect((await former.get('/app/account')).status).toBe(200);
    await changeRule(await signIn(store.email), store, 'yes');
    expect((await former.get('/app/account')).location).toContain('/app/sign-in');
  });

  it('leads to setting it up again whoever turns it off', async () => {
    const store = await service.newStore();
    const owner = await signIn(store.email);
    await setUp(owner);
    await changeRule(owner, store, 'yes');
    await owner.get(SETUP);
    await owner.post(`${SETUP}/off`, { password: PASSWORD });
    await expectOnlySetup(owner, store);
  });

  it('leads to setting it up again whoever entered a code after the sign-in of a company', async () => {
    const store = await service.newStore();
    const owner = await signIn(store.email);
    const app = await setUp(owner);
    await changeRule(owner, store, 'yes');
    const vouched = await signInWithCompany(store.email, ['mfa']);
    const { browser } = await signInWithCompany(store.email, ['pwd']);
    await browser.get('/app/sign-in/code');
    expect((await browser.post('/app/sign-in/code', { code: getNextCode(app) })).status).toBe(303);
    await browser.get(SETUP);
    await browser.post(`${SETUP}/off`, { password: PASSWORD });
    await expectOnlySetup(browser, store);
    expect((await vouched.browser.get('/app/account')).status).toBe(200);
  });

  it('can make it optional again, and leaves other stores alone', async () => {
    const [store, otherStore] = [await service.newStore(), await service.newStore()];
    const owner = await signIn(store.email);
    await setUp(owner);
    await changeRule(owner, store, 'yes');
    expect((await (await signIn(otherStore.email)).get('/app/account')).status).toBe(200);
    const email = await addMember(store);
    await expectOnlySetup(await signIn(email), store);
    await changeRule(owner, store, 'no');
    expect((await (await signIn(email)).get('/app/account')).status).toBe(200);
  });

  it('is changed by owners alone, and with the password', async () => {
    const store = await service.newStore();
    const manager = await signIn(await addMember(store));
    expect((await changeRule(manager, store, 'yes')).status).toBe(403);
    const owner = await signIn(store.email);
    const page = `/app/stores/${store.accountId}/users/second-factor`;
    await owner.get(page);
    const wrong = await owner.post(page, { required: 'yes', current_password: 'not it' });
    expect(wrong.status).toBe(422);
    expect((await owner.get('/app/account')).status).toBe(200);
  });

  it('takes the word of a company, and asks for the code without it', async () => {
    const store = await service.newStore();
    const owner = await signIn(store.email);
    const app = await setUp(owner);
    expect((await signInWithCompany(store.email)).location).not.toContain('/app/sign-in/code');
    await changeRule(owner, store, 'yes');
    for (const amr of [undefined, [], ['pwd'], 'mfa', ['otp']]) {
      const { browser, location } = await signInWithCompany(store.email, amr);
      expect([amr, location]).toEqual([amr, '/app/sign-in/code']);
      expect((await browser.get('/app/account')).location).toContain('/app/sign-in');
    }
    const { browser } = await signInWithCompany(store.email, ['pwd']);
    await browser.get('/app/sign-in/code');
    expect((await browser.post('/app/sign-in/code', { code: getNextCode(app) })).status).toBe(303);
    expect((await browser.get('/app/account')).status).toBe(200);
    const vouched = await signInWithCompany(store.email, ['pwd', 'mfa']);
    expect((await vouched.browser.get('/app/account')).status).toBe(200);
  });

  it('leads people of a company without codes to setting them up, unless it has asked', async () => {
    const store = await service.newStore();
    const email = await addMember(store);
    const owner = await signIn(store.email);
    await changeRule(owner, store, 'yes');
    const { browser } = await signInWithCompany(email);
    await expectOnlySetup(browser, store);
    await setUp(browser);
    expect((await browser.get('/app/account')).status).toBe(200);
    const otherMember = await signInWithCompany(await addMember(store), ['mfa']);
    expect((await otherMember.browser.get('/app/account')).status).toBe(200);
  });
});

describe('REQUIRE_SECOND_FACTOR', () => {
  it('requires two-step sign-in of every user', async () => {
    const strict = await startService(
      { REQUIRE_SECOND_FACTOR: 'true' },
      { ...service.database, close: async () => {} },
    );
    try {
      const store = await service.newStore();
      const browser = await signIn(store.email, strict);
      await expectOnlySetup(browser, store);
      const app = await setUp(browser);
      expect((await browser.get('/app/account')).status).toBe(200);
      const again = await signIn(store.email, strict);
      expect((await again.get('/app/account')).location).toContain('/app/sign-in');
      await again.get('/app/sign-in/code');
      expect((await again.post('/app/sign-in/code', { code: getNextCode(app) })).status).toBe(303);
      expect((await again.get('/app/account')).status).toBe(200);
    } finally {
      await strict.stop();
    }
  });
});
