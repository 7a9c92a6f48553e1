import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { NAVIGATION } from '#web/pages/navigation.js';
import {
  expectAccessiblePage,
  keepPicture,
  keepShown,
  SIZES,
  startChromium,
} from '../support/browser/chromium.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { eventually } from '../support/jest/eventually.js';
import { cli, startService, type LocalService } from '../support/services/service.js';

/** Tests what every form and page of the console has: errors, languages, the menu, and the buttons of its script. */

const PUBLIC_URL = 'http://cards.localhost';
const PASSWORD = 'correct horse';
const STORE_NAME = 'Café Kröner – Bäckerei und Konditorei am Hauptbahnhof ☕';
const SUPPORT = 'help@cards.example';
const MAX_BYTES = 30 * 1024;

let service: LocalService;
let accountId: number;
let email: string;
let browser: Browser;

beforeAll(async () => {
  service = await startService({ PUBLIC_URL, SUPPORT_CONTACT: SUPPORT });
  const store = await service.newStore({ timeZone: 'Europe/Berlin' });
  await store.send('PATCH', store.store, { account: { name: STORE_NAME } });
  ({ accountId, email } = store);
  for (const [i, name] of [
    'أحمد الخطيب',
    'Maximiliane Freifrau von Hohenstein-Lichtenfels',
  ].entries()) {
    const address = `member-${i}-${accountId}@shop.example`;
    await service.execute(new CreateUser(cli, address, name, PASSWORD));
    await service.execute(new AddMember(cli, accountId, address, i === 0 ? 'staff' : 'manager'));
  }
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

async function openPage(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: SIZES.phone, locale: 'en-GB', ...options });
  return context.newPage();
}

/** Signs in as the owner, or as another user. @param path that is opened then, in the store */
async function signInTo(
  path: string,
  { as = email, ...options }: Parameters<Browser['newContext']>[0] & { as?: string } = {},
): Promise<Page> {
  const page = await openPage(options);
  await page.goto(`${PUBLIC_URL}/app/sign-in`);
  await page.locator('[name=email]').fill(as);
  await page.locator('[name=password]').fill(PASSWORD);
  await page.locator('main button[type=submit]').click();
  await page.goto(`${PUBLIC_URL}/app/stores/${accountId}${path}`);
  return page;
}

const close = (page: Page): Promise<void> => (page.context() as BrowserContext).close();
/** Waits until a page is there, whose second click has ended the navigation of the first. */
async function waitForUrl(page: Page, pattern: RegExp): Promise<void> {
  await eventually(
    () => page.url(),
    (url) => pattern.test(url),
  );
  await page.waitForLoadState();
}
const getFocusedText = (page: Page) => page.evaluate<string>('document.activeElement.textContent');

describe('a form with errors', () => {
  it.each([true, false])(
    'lists them above, focused, with links to the fields, with scripts: %s',
    async (javaScriptEnabled) => {
      pageErrors.expect(/status of 422/);
      const page = await signInTo('/settings', { javaScriptEnabled });
      await page.evaluate(`document.querySelector('main form').noValidate = true`);
      await page.locator('[name=name]').fill('');
      await page.locator('[name=privacy_url]').fill('ftp://x');
      await page.locator('main form button').click();
      const alert = page.getByRole('alert');
      await alert.waitFor();
      expect(await page.title()).toMatch(/^2 errors · Settings/);
      expect(await getFocusedText(page)).toContain('Please check 2 fields');
      expect(await page.evaluate('scrollY')).toBeLessThan(300);
      expect(await alert.getByRole('link').allTextContents()).toEqual([
        'Name: Please fill in this field.',
        'Link to your privacy policy: Please enter an address that begins with https://, without spaces, backslashes or “#”.',
      ]);
      await alert.getByRole('link').last().click();
      const focused = await page.evaluate('document.activeElement.name ?? location.hash');
      expect(focused).toBe('privacy_url');
      if (javaScriptEnabled) await expectAccessiblePage(page, 'settings-errors');
      await close(page);
    },
  );

  it('says them in the language of the browser', async () => {
    pageErrors.expect(/status of 422/);
    const page = await signInTo('/users', { locale: 'de-DE' });
    await page.locator('#invite [name=email]').fill(email);
    await page.locator('#invite [name=current_password]').fill(PASSWORD);
    await page.locator('#invite [type=submit]').click();
    const alert = page.getByRole('alert');
    expect(await alert.textContent()).toContain('Bitte ein Feld prüfen');
    expect(await alert.textContent()).toContain('hat schon Zugang zu diesem Geschäft');
    expect(await page.locator('html').getAttribute('lang')).toBe('de');
    await expectAccessiblePage(page, 'users-errors-de');
    await close(page);
  });
});

describe('the languages', () => {
  it.each(['de', 'fr', 'es'])(
    'have every page without an English word left: %s',
    async (locale) => {
      pageErrors.expect(/status of 404/);
      const page = await signInTo('', { locale });
      const store = `/app/stores/${accountId}`;
      const paths = ['/app', '/app/account', '/app/account/codes', '/app/new-store', store];
      for (const path of [
        ...paths,
        ...['users', 'tokens', 'settings', 'audit', 'messages', 'nothing'].map(
          (at) => `${store}/${at}`,
        ),
      ]) {
        await page.goto(PUBLIC_URL + path);
        // Without the names of time zones, which are English. With what is only read out.
        const text = await page.evaluate<string>(
          `(() => {
          const body = document.body.cloneNode(true);
          for (const select of body.querySelectorAll('select')) select.remove();
          return body.textContent;
        })()`,
        );
        expect([path, text]).toEqual([
          path,
          expect.not.stringMatching(/\b(the|your|with|of|and)\b/i),
        ]);
        await expectAccessiblePage(page, `${locale}${path.replaceAll('/', '-')}`);
      }
      await close(page);
    },
  );
});

describe('the menu', () => {
  it('fits 320 pixels, and every page is two taps away', async () => {
    const page = await signInTo('/tokens');
    await page.setViewportSize({ width: 320, height: 640 });
    await page.locator('summary').first().click();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
    await keepPicture(page, 'menu-320');
    await page.getByRole('navigation').getByRole('link', { name: 'Users' }).click();
    await page.getByRole('heading', { name: 'Users' }).waitFor();
    await close(page);
  });

  it('stays on pages that do not exist and that the role does not allow', async () => {
    pageErrors.expect(/status of 404/, /status of 403/);
    const page = await signInTo('/cards-of-nobody');
    await page.getByRole('heading', { name: 'This page does not exist' }).waitFor();
    await page.getByRole('link', { name: `Back to ${STORE_NAME}` }).waitFor();
    await expectAccessiblePage(page, 'not-found-in-store');
    await close(page);
    const staff = await signInTo('/users', { as: `member-0-${accountId}@shop.example` });
    await staff.getByRole('heading', { name: 'You don’t have access to this page' }).waitFor();
    await expectAccessiblePage(staff, 'forbidden-in-store');
    await staff.goto(`${PUBLIC_URL}/app/elements`);
    await staff.getByRole('heading', { name: 'This page does not exist' }).waitFor();
    await close(staff);
  });
});

describe('a form whose button is clicked twice', () => {
  it.each([true, false])(
    'adds a location once, and removes it, with scripts: %s',
    async (javaScriptEnabled) => {
      const name = javaScriptEnabled ? 'Harbour' : 'Kiosk';
      const page = await signInTo('/locations/new', { javaScriptEnabled });
      await page.locator('main [name=name]').fill(name);
      await page.locator('main [name=address]').fill('Kai 1, Hamburg');
      await page.locator('main form button[type=submit]').dblclick();
      await waitForUrl(page, /\/locations\/\d+\?done=created$/);
      const { pathname } = new URL(page.url());
      await page.goto(`${PUBLIC_URL}/app/stores/${accountId}/locations`);
      expect(await page.getByRole('link', { name }).count()).toBe(1);
      await page.goto(`${PUBLIC_URL}${pathname}/remove`);
      await page.locator('main form button[type=submit]').dblclick();
      await waitForUrl(page, /\/locations\?done=removed$/);
      expect(await page.getByRole('link', { name }).count()).toBe(0);
      await close(page);
    },
  );
});

describe('a page that the browser has kept', () => {
  it('saves what is sent from it again, although it was sent from it before', async () => {
    const page = await signInTo('/settings');
    const save = async (name: string) => {
      await page.locator('[name=name]').fill(name);
      const form = page.locator('main form', { has: page.locator('[name=name]') });
      await form.evaluate((it) => it.setAttribute('target', '_blank'));
      const saved = page.waitForEvent('popup');
      await form.locator('button[type=submit]').click();
      await (await saved).waitForURL(/done=saved$/);
      await (await saved).close();
      await page.evaluate(
        "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))",
      );
    };
    await save('One');
    await save('Two');
    await save('One');
    await page.reload();
    expect(await page.locator('[name=name]').inputValue()).toBe('One');
    await save(STORE_NAME);
  });
});

describe('the buttons of the script', () => {
  it('copy a token, and show a password', async () => {
    const page = await signInTo('/tokens', { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.getByLabel('Name').fill('till');
    await page.getByLabel('Your password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.evaluate(keepShown(3_000));
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const token = await page.locator('#token').textContent();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(token);
    await expectAccessiblePage(page, 'new-token');
    await page.goto(`${PUBLIC_URL}/app/account`);
    const field = page.getByLabel('New password');
    expect(await field.getAttribute('type')).toBe('password');
    await page.getByRole('button', { name: 'New password, Show' }).click();
    expect(await field.getAttribute('type')).toBe('text');
    await page.getByRole('button', { name: 'New password, Hide' }).click();
    expect(await field.getAttribute('type')).toBe('password');
    await close(page);
  });

  it('are not there without scripts', async () => {
    const page = await signInTo('/tokens', { javaScriptEnabled: false });
    await page.getByLabel('Name').fill('web shop');
    await page.getByLabel('Your password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.locator('#token').waitFor();
    expect(await page.getByRole('button', { name: 'Copy' }).isVisible()).toBe(false);
    await close(page);
  });

  it('choose the time zone of the browser for a new store', async () => {
    const page = await signInTo('', { timezoneId: 'Europe/Lisbon', locale: 'es' });
    await page.goto(`${PUBLIC_URL}/app/new-store`);
    expect(await page.locator('[name=time_zone]').inputValue()).toBe('Europe/Lisbon');
    expect(await page.locator('[name=locale]').inputValue()).toBe('es');
    expect(await page.locator('[name=time_zone] optgroup').first().getAttribute('label')).toBe(
      'Europa',
    );
    await close(page);
  });
});

describe('the account', () => {
  it('lists the sessions with their browsers, and ends another one', async () => {
    pageErrors.expect(/status of 422/);
    const firefox =
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0';
    const otherPage = await signInTo('', { userAgent: firefox });
    const page = await signInTo('');
    await page.goto(`${PUBLIC_URL}/app/account`);
    const line = page.locator('#sessions li', { hasText: 'Firefox on Windows' });
    expect(await page.locator('#sessions li').first().textContent()).toContain('This browser');
    await expectAccessiblePage(page, 'account');
    await line
      .getByRole('link', { name: /Sign out/ })
      .first()
      .click();
    await page.getByLabel('Your password').fill('not it');
    await page.getByRole('main').getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.getByRole('alert').getByText('The password is wrong').waitFor();
    await expectAccessiblePage(page, 'end-session-wrong');
    await page.getByLabel('Your password').fill(PASSWORD);
    await page.getByRole('main').getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.getByText('That browser is signed out.').waitFor();
    await otherPage.reload();
    expect(new URL(otherPage.url()).pathname).toBe('/app/sign-in');
    await close(otherPage);
    await close(page);
  });

  it('leads to what its user has to do first', async () => {
    const own = await service.newStore();
    const address = `first-${own.accountId}@shop.example`;
    await service.execute(new CreateUser(cli, address, 'Mira', PASSWORD, true));
    await service.execute(new AddMember(cli, own.accountId, address, 'owner'));
    const page = await signInTo('', { as: address });
    await page.getByRole('heading', { name: 'Choose your own password' }).waitFor();
    await expectAccessiblePage(page, 'first-password');
    await page.getByLabel('The password you were given').fill(PASSWORD);
    await page.getByLabel('New password').fill('nine loud harbours');
    await page.getByRole('button', { name: 'Set password' }).click();
    await page.goto(`${PUBLIC_URL}/app/stores/${own.accountId}/users`);
    await expectAccessiblePage(page, 'users-codes-optional');
    await page.getByRole('link', { name: 'Require it' }).click();
    await expectAccessiblePage(page, 'require-codes');
    await page.getByLabel('Your password').fill('nine loud harbours');
    await page.getByRole('button', { name: 'Require it' }).click();
    await page.getByText('Two-step sign-in is required here').waitFor();
    await expectAccessiblePage(page, 'codes-required');
    await close(page);
  });

  it('sets up two-step sign-in on the phone itself', async () => {
    const page = await signInTo('', { hasTouch: true, isMobile: true });
    await page.goto(`${PUBLIC_URL}/app/account/codes`);
    await page.getByLabel('Your password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Set up' }).click();
    const link = page.getByRole('link', { name: 'Set up on this phone' });
    expect(await link.getAttribute('href')).toMatch(/^otpauth:\/\/totp\/Inkpad/);
    await expectAccessiblePage(page, 'codes-on-phone');
    await close(page);
  });
});

describe('pages for shopkeepers', () => {
  it('name the person to ask, and no command or setting', async () => {
    const page = await openPage();
    await page.goto(`${PUBLIC_URL}/app/password/forgot`);
    const text = await page.locator('main').innerText();
    expect(text).toContain(SUPPORT);
    expect(text).not.toMatch(/npm|SMTP|[A-Z]+_[A-Z]+/);
    await expectAccessiblePage(page, 'forgot-without-mail');
    await close(page);
  });

  it('are lighter than 30 KB with all that they load but pictures', async () => {
    const page = await signInTo('/settings');
    const paths = NAVIGATION.map(({ path }) => `/app/stores/${accountId}/${path}`);
    for (const path of ['/app/new-store', '/app/account', ...paths]) {
      expect([path, (await page.goto(PUBLIC_URL + path))?.status()]).toEqual([path, 200]);
      const bytes = await page.evaluate<number>(
        `[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
           .filter(({ initiatorType, name }) => initiatorType !== 'img' && !/\\.(svg|png)$/.test(name))
           .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
      );
      expect([path, bytes < MAX_BYTES, bytes]).toEqual([path, true, bytes]);
    }
    await close(page);
  });
});
