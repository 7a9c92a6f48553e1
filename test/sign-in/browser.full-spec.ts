import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { expectAccessiblePage, SIZES, startChromium } from '../support/browser/chromium.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';

/** Tests sign-in and the account pages in a real browser. */

const PASSWORD = 'correct horse';

let service: Service;
let store: Client & { email: string };
let browser: Browser;

beforeAll(async () => {
  const port = await findFreePort();
  service = await startService(
    {
      PUBLIC_URL: `http://localhost:${port}`,
      SMTP_URL: 'smtp://127.0.0.1:1',
      MAIL_FROM: 'inkpad@shop.example',
      OIDC_ISSUER: 'http://127.0.0.1:1',
      OIDC_CLIENT_ID: 'inkpad',
    },
    undefined,
    port,
  );
  store = await service.newStore();
  browser = await startChromium();
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

type ContextOptions = { scripts?: boolean };

async function openContext({ scripts = true }: ContextOptions = {}): Promise<BrowserContext> {
  return browser.newContext({
    viewport: SIZES.phone,
    javaScriptEnabled: scripts,
    baseURL: new URL(service.baseUrl).href.replace('127.0.0.1', 'localhost'),
  });
}

async function signIn(page: Page, email = store.email, password = PASSWORD): Promise<void> {
  await page.goto('/app/sign-in');
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

describe('the console in a browser', () => {
  it.each([true, false])('signs users in and out, with scripts: %s', async (scripts) => {
    const context = await openContext({ scripts });
    const page = await context.newPage();
    await page.goto(`/app/stores/${store.accountId}`);
    await page.getByLabel('E-mail').fill(store.email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    expect(new URL(page.url()).pathname).toBe(`/app/stores/${store.accountId}`);
    await page.getByRole('link', { name: 'Inkpad' }).click();
    await page.getByRole('link', { name: /Corner Café/ }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    expect(await page.getByRole('status').textContent()).toContain('You are signed out');
    await page.goBack();
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(0);
    await context.close();
  });

  it('has accessible pages before sign-in', async () => {
    pageErrors.expect(/status of 422/, /status of 404/);
    const context = await openContext();
    const page = await context.newPage();
    await page.goto('/app/sign-in');
    await expectAccessiblePage(page, 'sign-in');
    await signIn(page, store.email, 'not it');
    await expectAccessiblePage(page, 'sign-in-wrong');
    await page.goto('/app/password/forgot');
    await expectAccessiblePage(page, 'forgot');
    await page.goto('/app/password/forgot?done=sent');
    await expectAccessiblePage(page, 'forgot-sent');
    await page.goto('/app/password/reset?token=old');
    await expectAccessiblePage(page, 'reset-late');
    await page.goto('/app/nothing');
    await expectAccessiblePage(page, 'not-found');
    await context.close();
  });

  it('sets a new password through the link of a reset, once', async () => {
    pageErrors.expect(/status of 422/, /status of 404/);
    const ownStore = await service.newStore();
    const token = randomBytes(32).toString('base64url');
    await service.database.query(
      `insert into password_resets (sha256, user_id, created_at, expires_at)
       select sha256($1), id, now(), now() + interval '1 hour' from users where email = $2`,
      [token, ownStore.email],
    );
    const context = await openContext();
    const page = await context.newPage();
    await page.goto(`/app/password/reset?token=${token}`);
    expect(await page.getByLabel('E-mail').inputValue()).toBe(ownStore.email);
    expect(await page.evaluate('document.activeElement.name')).toBe('password');
    await expectAccessiblePage(page, 'reset');
    await page.keyboard.type('short');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('at least 10 characters').waitFor();
    await expectAccessiblePage(page, 'reset-wrong');
    await page.getByLabel('New password').fill('battery staple');
    await page.getByRole('button', { name: 'Set password' }).click();
    expect(await page.getByRole('status').textContent()).toContain('Your new password is set');
    await page.goto(`/app/password/reset?token=${token}`);
    expect(await page.getByRole('heading').textContent()).toContain('no longer works');
    await signIn(page, ownStore.email, 'battery staple');
    expect(new URL(page.url()).pathname).toBe(`/app/stores/${ownStore.accountId}`);
    await context.close();
  });

  it('has accessible error pages with the right link for signed-in users', async () => {
    pageErrors.expect(/status of 403/, /status of 404/, /status of 429/, /status of 503/);
    const context = await openContext();
    const page = await context.newPage();
    const expectErrorPage = async (status: number, link: string) => {
      expect(await page.locator('.number').textContent()).toBe(String(status));
      expect(await page.getByRole('main').getByRole('link').textContent()).toBe(link);
      await expectAccessiblePage(page, `why-not-${status}`);
    };
    await signIn(page);
    await page.goto('/app/account');
    await page.evaluate(`document.querySelector('main [name=_csrf]').value = 'x'`);
    await page.getByRole('button', { name: 'Save' }).click();
    await expectErrorPage(403, 'Your stores');
    await page.goto('/app/nothing');
    await expectErrorPage(404, 'Go to the start page');
    await eventually(
      () => page.goto('/app/password/reset?token=x'),
      (response) => response?.status() === 429,
    );
    await expectErrorPage(429, 'Go to the start page');
    await service.database.query('begin; lock table sessions in access exclusive mode');
    await page.goto('/app');
    await service.database.query('rollback');
    await expectErrorPage(503, 'Go to the start page');
    await context.close();
  });

  it('has accessible pages after sign-in', async () => {
    pageErrors.expect(/status of 422/);
    const context = await openContext();
    const page = await context.newPage();
    await signIn(page);
    await expectAccessiblePage(page, 'home');
    await page.goto('/app/elements');
    await expectAccessiblePage(page, 'elements');
    await page.goto(`/app/stores/${store.accountId}`);
    await expectAccessiblePage(page, 'store');
    await page.goto('/app/account');
    await expectAccessiblePage(page, 'account');
    await page.getByLabel('Current password').fill(PASSWORD);
    await page.getByLabel('New password').fill('short');
    await page.getByRole('button', { name: 'Change password' }).click();
    await expectAccessiblePage(page, 'account-wrong');
    await context.close();
  });

  it('turns on a second factor, requires it, and accepts a recovery code', async () => {
    const context = await openContext();
    const page = await context.newPage();
    await signIn(page);
    await page.goto('/app/account/codes');
    await expectAccessiblePage(page, 'codes-off');
    await page.getByLabel('Your password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Set up' }).click();
    await expectAccessiblePage(page, 'codes-waiting');
    await page.getByText('Neither works?').click();
    const key = (await page.locator('.secret').textContent()) ?? '';
    const totp = new TOTP({ secret: Secret.fromBase32(key.replaceAll(/\s/g, '')) });
    await page.getByLabel('Code', { exact: true }).fill(totp.generate());
    await page.getByRole('button', { name: 'Turn on' }).click();
    await expectAccessiblePage(page, 'recovery-codes');
    const [recoveryCode = ''] = await page.locator('.codes li').allTextContents();
    await page.getByRole('link', { name: 'I have saved them' }).click();
    await page.goto('/app/account/codes');
    await expectAccessiblePage(page, 'codes-on');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page);
    await expectAccessiblePage(page, 'code');
    await page.getByLabel('Code', { exact: true }).fill(recoveryCode);
    await page.getByRole('button', { name: 'Continue' }).click();
    expect(new URL(page.url()).pathname).toBe(`/app/stores/${store.accountId}`);
    await context.close();
  });

  it('submits sign-in by keyboard, and focuses the password when it is wrong', async () => {
    pageErrors.expect(/status of 422/);
    const context = await openContext();
    const page = await context.newPage();
    await page.goto('/app/sign-in');
    await page.keyboard.type(store.email);
    await page.keyboard.press('Tab');
    await page.keyboard.type('not it');
    await page.keyboard.press('Enter');
    expect(await page.getByRole('alert').textContent()).toContain('is wrong');
    const focusedField = await page.evaluate('document.activeElement.name');
    expect(focusedField).toBe('password');
    await context.close();
  });
});
