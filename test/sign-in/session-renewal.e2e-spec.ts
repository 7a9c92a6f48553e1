import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Secret, TOTP } from 'otpauth';
import { Browser, type BrowserResponse } from '../support/browser/browser.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { startService, type Service } from '../support/services/service.js';

const PASSWORD = 'correct horse';
const COOKIE = '__Host-inkpad';

let service: Service;
let mails: MailServer;

beforeAll(async () => {
  mails = await MailServer.start();
  service = await startService({
    TRUST_PROXY_HOPS: '1',
    SMTP_URL: mails.url,
    MAIL_FROM: 'inkpad@shop.example',
  });
});
afterAll(async () => {
  await service?.stop();
  await mails?.goAway();
});

async function signIn(email: string): Promise<Browser> {
  const browser = new Browser(service);
  const { location } = await browser.signIn(email, PASSWORD);
  expect(location).toMatch(/^[/]app[/]stores[/]\d+$/);
  return browser;
}

/** Creates a browser with a copy of the session cookie. */
function createThief(browser: Browser): Browser {
  const thief = new Browser(service);
  thief.cookies.set(COOKIE, browser.cookies.get(COOKIE) ?? '');
  return thief;
}

const isSignedIn = async (browser: Browser) => (await browser.get('/app/account')).status === 200;

/** Asserts that a step changes the session token and so locks out a copy of the former cookie. */
async function expectRenewal(
  browser: Browser,
  step: () => Promise<BrowserResponse>,
  status: number,
): Promise<BrowserResponse> {
  const thief = createThief(browser);
  expect(await isSignedIn(thief)).toBe(true);
  const before = browser.cookies.get(COOKIE);
  const response = await step();
  expect(response.status).toBe(status);
  expect(browser.cookies.get(COOKIE)).not.toBe(before);
  expect(await isSignedIn(thief)).toBe(false);
  return response;
}

describe('the session token', () => {
  it('changes with the password, which also ends the other sessions', async () => {
    const store = await service.newStore();
    const browser = await signIn(store.email);
    const elsewhere = await signIn(store.email);
    await browser.get('/app/account');
    const fields = { current_password: PASSWORD, password: 'battery staple' };
    await expectRenewal(browser, () => browser.post('/app/account/password', fields), 303);
    expect(await isSignedIn(browser)).toBe(true);
    expect(await isSignedIn(elsewhere)).toBe(false);
  });

  it('changes after the right password even when the new one is refused, and the form can be sent again', async () => {
    const store = await service.newStore();
    const browser = await signIn(store.email);
    const elsewhere = await signIn(store.email);
    await browser.get('/app/account');
    const weak = { current_password: PASSWORD, password: 'short' };
    await expectRenewal(browser, () => browser.post('/app/account/password', weak), 422);
    // The CSRF token of the form that was just shown still works.
    const good = { current_password: PASSWORD, password: 'battery staple' };
    const csrf = browser.csrf;
    await browser.get('/app/account');
    expect(browser.csrf).toBe(csrf);
    expect(await isSignedIn(elsewhere)).toBe(true);
    expect((await browser.post('/app/account/password', good)).status).toBe(303);
  });

  it('changes with each step that asks for the password or turns on the second factor', async () => {
    const store = await service.newStore();
    const browser = await signIn(store.email);
    const elsewhere = await signIn(store.email);
    await browser.get('/app/account/codes');
    const begin = () => browser.post('/app/account/codes/begin', { password: PASSWORD });
    await expectRenewal(browser, begin, 303);
    const page = await browser.get('/app/account/codes');
    const [, key = ''] = /class="secret"[^>]*>([A-Z2-7 ]+)</.exec(page.text) ?? [];
    const totp = new TOTP({ secret: Secret.fromBase32(key.replaceAll(' ', '')) });
    const confirm = () => browser.post('/app/account/codes/confirm', { code: totp.generate() });
    await expectRenewal(browser, confirm, 200);
    await browser.get('/app/account/codes');
    const renew = () => browser.post('/app/account/codes/recovery', { password: PASSWORD });
    await expectRenewal(browser, renew, 200);
    await browser.get('/app/account/codes');
    const off = () => browser.post('/app/account/codes/off', { password: PASSWORD });
    await expectRenewal(browser, off, 303);
    await browser.get('/app/account');
    const email = `new-${store.email}`;
    const address = () =>
      browser.post('/app/account', { name: 'Grace', email, current_password: PASSWORD });
    await expectRenewal(browser, address, 303);
    expect(await isSignedIn(elsewhere)).toBe(true);
  });

  it('stays the same after a wrong password and after a step that asks for none', async () => {
    const store = await service.newStore();
    const browser = await signIn(store.email);
    const before = browser.cookies.get(COOKIE);
    await browser.get('/app/account');
    const wrong = { current_password: 'not it', password: 'battery staple' };
    expect((await browser.post('/app/account/password', wrong)).status).toBe(422);
    await browser.get('/app/account');
    const response = await browser.post('/app/account', { name: 'Grace', email: store.email });
    expect(response.status).toBe(303);
    expect(browser.cookies.get(COOKIE)).toBe(before);
  });

  it('keeps the expiry of the session when it changes', async () => {
    const store = await service.newStore();
    const browser = await signIn(store.email);
    const findExpiry = async () => {
      const { rows } = await service.database.query(
        `select expires_at, s.id from sessions s join users u on u.id = s.user_id where email = $1`,
        [store.email],
      );
      return rows;
    };
    const before = await findExpiry();
    await browser.get('/app/account/codes');
    await browser.post('/app/account/codes/begin', { password: PASSWORD });
    expect(await findExpiry()).toEqual(before);
  });
});
