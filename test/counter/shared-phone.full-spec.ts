import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { AddMember } from '#identity/member.commands.js';
import { SetPassword } from '#identity/user.commands.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import { createStaff, PASSWORD, signInAtCounter } from '../support/browser/counter.js';
import {
  closeContexts,
  expectAccessiblePage,
  SIZES,
  startChromium,
} from '../support/browser/chromium.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests what stays of a person on a phone that several people use, and in whose name is booked (ADR-0139). */

const PUBLIC_URL = 'http://cards.localhost';
const PIN = '407185';

let service: LocalService;
let store: Client;
let browser: Browser;
const contexts: BrowserContext[] = [];
const at = (account: Client = store) => `${PUBLIC_URL}/counter/${account.accountId}`;

beforeAll(async () => {
  service = await startService({ PUBLIC_URL });
  store = await service.newStore();
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
afterEach(() => closeContexts(contexts));
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const newStaff = (name: string) => createStaff(service, store, name);
type Staff = Awaited<ReturnType<typeof newStaff>>;

async function openPhone(): Promise<Page> {
  const context = await browser.newContext({ viewport: SIZES.phone, locale: 'en-GB' });
  contexts.push(context);
  return context.newPage();
}

/** Signs in, and waits until the counter is stored for when there is no connection. */
async function signIn(page: Page, { email }: Staff, counter = at()): Promise<void> {
  await signInAtCounter(page, counter, email);
  await waitForOfflinePage(page, counter);
}

async function waitForOfflinePage(page: Page, counter = at()): Promise<void> {
  await eventually(
    () => page.evaluate(`caches.match('${counter}').then((response) => response !== undefined)`),
    Boolean,
  );
}

async function signOut(page: Page): Promise<void> {
  await page.goto(`${PUBLIC_URL}/app`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('You are signed out').waitFor();
}

/**
 * Stamps by the code, which the phone stores, whatever it shows then.
 * @param observer the page that reads it, where the one that stamps may load anew
 */
async function scanOffline(page: Page, code: string, observer = page): Promise<void> {
  const field = page.getByLabel('Code of the card');
  await field.fill(code);
  await field.press('Enter');
  await eventually(
    () => readStore<{ code: string }>(observer, 'waiting'),
    (entries) => entries.some((entry) => entry.code === code),
  );
  // The result is shown after the code was stored, and covers the field. A page of somebody who has left loads anew.
  if (observer === page) await page.locator('#result').waitFor();
  await page.keyboard.press('Escape');
}

/** Reads what the phone has stored. */
function readStore<T>(page: Page, name: string): Promise<T[]> {
  return page.evaluate<T[]>(`new Promise((resolve, reject) => {
    const request = indexedDB.open('inkpad-counter');
    request.onerror = reject;
    request.onsuccess = () => {
      const database = request.result;
      const reading = database.transaction('${name}').objectStore('${name}').getAll();
      reading.onsuccess = () => { database.close(); resolve(reading.result); };
    };
  })`);
}

async function expectForgotten(page: Page): Promise<void> {
  await eventually(
    async () => [
      await page.evaluate<string[]>('caches.keys()'),
      await readStore(page, 'refused'),
      await readStore(page, 'session'),
    ],
    (all) => all.every(({ length }) => length === 0),
  );
}

/** Who has stamped the card, in order. */
async function findStampers(path: string): Promise<(number | null)[]> {
  const { body } = await store.get<HistoryEntryJson[]>(`${path}/events`);
  return body.filter(({ type }) => type === 'stamp.earned').map(({ actor }) => actor.id);
}

const expectStampers = (path: string, expected: number[]) =>
  eventually(
    () => findStampers(path),
    (ids) => JSON.stringify(ids) === JSON.stringify(expected),
  );

const unattended = (page: Page) => page.locator('#unattended');
const endSessions = ({ userId }: Staff) =>
  service.database.query('delete from sessions where user_id = $1', [userId]);

/** Has a stamping refused whose text names the customer. */
async function refuse(page: Page): Promise<void> {
  const limited = await enrol(store, { card: { max_stamps_per_day: 1 } });
  await store.stamp(limited.path);
  await page.context().setOffline(true);
  await scanOffline(page, limited.customerCard.code);
  await page.context().setOffline(false);
  await page.locator('#refused').getByText('Anna').waitFor();
}

/** What browsers say of the requests of a page without a connection. */
beforeEach(() =>
  pageErrors.allow(
    /ERR_(INTERNET_DISCONNECTED|FAILED)|unknown error occurred when fetching the script/,
  ),
);

describe('the counter on a shared phone', () => {
  it('stores the page without a name, an id and a token', async () => {
    const page = await openPhone();
    const mira = await newStaff('Mira Wintergrün');
    await signIn(page, mira);
    const csrf = await page.locator('input[name=_csrf]').first().inputValue();
    const stored = await page.evaluate<string>(
      `caches.match('${at()}').then((response) => response.text())`,
    );
    expect(stored).toContain('counter-config');
    for (const secret of ['Mira', mira.email, csrf, 'user_id', 'session_id']) {
      expect([secret, stored.includes(secret)]).toEqual([secret, false]);
    }
    await page.context().setOffline(true);
    await page.reload();
    await page.getByLabel('Code of the card').waitFor();
    expect(await page.content()).not.toContain('Mira');
    await page.context().setOffline(false);
    await page.getByRole('link', { name: 'Mira Wintergrün: change person' }).waitFor();
  });

  it.each<[string, (page: Page, staff: Staff) => Promise<unknown>]>([
    ['signing out in the console', signOut],
    [
      'the end of the session',
      async (page, staff) => {
        await endSessions(staff);
        await page.goto(at());
      },
    ],
    [
      'its expiry',
      async (page, { userId }) => {
        const past = `update sessions set expires_at = now() - interval '1 second' where user_id = $1`;
        await service.database.query(past, [userId]);
        await page.goto(`${PUBLIC_URL}/app`);
      },
    ],
    [
      'a new password elsewhere, while the page is open',
      async (page, { email }) => {
        await service.execute(new SetPassword(cli, email, 'another battery staple'));
        const { customerCard } = await enrol(store);
        await page.getByLabel('Code of the card').fill(customerCard.code);
        await page.keyboard.press('Enter');
        await page.getByText('Your session has ended.').waitFor();
        expect(await page.content()).not.toContain('Mira');
      },
    ],
  ])('keeps nothing of a person after %s', async (_, end) => {
    const page = await openPhone();
    const mira = await newStaff('Mira');
    await signIn(page, mira);
    await refuse(page);
    await end(page, mira);
    await expectForgotten(page);
    await page.context().setOffline(true);
    await expect(page.goto(at())).rejects.toThrow('net::ERR_');
  });

  it('keeps nothing of a person who signs out at the counter, also without a connection', async () => {
    const [mira, jonas] = [await newStaff('Mira'), await newStaff('Jonas')];
    const page = await openPhone();
    await setPin(jonas);
    await signIn(page, mira);
    await takeOver(page, 'Mira', 'Jonas');
    await waitForOfflinePage(page);
    await refuse(page);
    await page.context().setOffline(true);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.context().setOffline(false);
    const otherPage = await page.context().newPage();
    pageErrors.expect(/status of 404/);
    await otherPage.goto(`${PUBLIC_URL}/robots.txt`);
    await expectForgotten(otherPage);
  });

  it.each(['somebody else', 'the same person'])(
    'books what was scanned after a sign-out for nobody until %s confirms it',
    async (who) => {
      const [mira, jonas] = [await newStaff('Mira'), await newStaff('Jonas')];
      const [own, foreign] = [await enrol(store), await enrol(store)];
      const page = await openPhone();
      await signIn(page, mira);
      const otherPage = await page.context().newPage();
      await signOut(otherPage);
      await page.context().setOffline(true);
      for (const { customerCard } of [own, foreign]) {
        await scanOffline(page, customerCard.code);
      }
      for (const entry of await readStore<object>(page, 'waiting')) {
        expect(entry).not.toHaveProperty('user_id');
      }
      await page.context().setOffline(false);
      const next = who === 'the same person' ? mira : jonas;
      await signIn(otherPage, next);
      await unattended(otherPage).getByText('Scanned while nobody was signed in').waitFor();
      await otherPage.getByText('To be confirmed: 2 stamps').waitFor();
      expect(await findStampers(own.path)).toEqual([]);
      await expectAccessiblePage(otherPage, 'counter-unattended');
      await unattended(otherPage).getByLabel(own.customerCard.code).uncheck();
      await unattended(otherPage).getByRole('button', { name: 'Discard' }).click();
      await otherPage.getByText('To be confirmed: 1 stamp').waitFor();
      await unattended(otherPage).getByRole('button', { name: 'Count in my name' }).click();
      await expectStampers(own.path, [next.userId]);
      await otherPage.locator('#waiting').waitFor({ state: 'hidden' });
      expect(await findStampers(foreign.path)).toEqual([]);
    },
  );

  it('sends what was scanned within a session, and asks about what was scanned after its end', async () => {
    const mira = await newStaff('Mira');
    const [before, after] = [await enrol(store), await enrol(store)];
    const page = await openPhone();
    await signIn(page, mira);
    await page.context().setOffline(true);
    await page.reload();
    await scanOffline(page, before.customerCard.code);
    await endSessions(mira);
    await scanOffline(page, after.customerCard.code);
    await page.context().setOffline(false);
    await page.getByText('Your session has ended.').waitFor();
    await signIn(page, mira);
    await expectStampers(before.path, [mira.userId]);
    await unattended(page).getByLabel(after.customerCard.code).waitFor();
    expect(await findStampers(after.path)).toEqual([]);
    await unattended(page).getByRole('button', { name: 'Count in my name' }).click();
    await expectStampers(after.path, [mira.userId]);
  });

  it('asks about what was scanned since some time when the browser lost its cookie', async () => {
    const mira = await newStaff('Mira');
    const { customerCard, path } = await enrol(store);
    const page = await openPhone();
    await signIn(page, mira);
    await page.context().setOffline(true);
    await page.context().clearCookies();
    await scanOffline(page, customerCard.code);
    await page.context().setOffline(false);
    await page.getByText('Your session has ended.').waitFor();
    await signIn(page, mira);
    await unattended(page).getByLabel(customerCard.code).waitFor();
    expect(await findStampers(path)).toEqual([]);
  });

  it('keeps what one person has scanned for them while another is signed in', async () => {
    const [mira, jonas] = [await newStaff('Mira'), await newStaff('Jonas')];
    const { customerCard, path } = await enrol(store);
    const page = await openPhone();
    await signIn(page, mira);
    await page.context().route('**/batch', (route) => route.abort());
    await scanOffline(page, customerCard.code);
    await signOut(page);
    await page.context().unroute('**/batch');
    await signIn(page, jonas);
    await page.getByText('Kept for another person: 1 stamp').waitFor();
    expect(await unattended(page).isHidden()).toBe(true);
    await signOut(page);
    expect(await findStampers(path)).toEqual([]);
    await signIn(page, mira);
    await expectStampers(path, [mira.userId]);
  });

  it('keeps it over a change of person by PIN, and shows nobody what another was refused', async () => {
    const [mira, jonas] = [await newStaff('Mira'), await newStaff('Jonas')];
    await setPin(mira);
    await setPin(jonas);
    const { customerCard, path } = await enrol(store);
    const page = await openPhone();
    await signIn(page, mira);
    await refuse(page);
    await page.context().route('**/batch', (route) => route.abort());
    await scanOffline(page, customerCard.code);
    await takeOver(page, 'Mira', 'Jonas');
    await page.context().unroute('**/batch');
    await page.reload();
    await page.getByText('Kept for another person: 1 stamp').waitFor();
    expect(await page.locator('#refused').isHidden()).toBe(true);
    await takeOver(page, 'Jonas', 'Mira');
    await expectStampers(path, [mira.userId]);
    await page.locator('#refused').getByText('Anna').waitFor();
  });

  it('books nothing for whom an open page still shows when another has taken over', async () => {
    const [mira, jonas] = [await newStaff('Mira'), await newStaff('Jonas')];
    await setPin(jonas);
    const { customerCard, path } = await enrol(store);
    const page = await openPhone();
    await signIn(page, mira);
    const otherPage = await page.context().newPage();
    await otherPage.goto(at());
    await takeOver(otherPage, 'Mira', 'Jonas');
    await waitForOfflinePage(otherPage);
    await page.context().setOffline(true);
    await scanOffline(page, customerCard.code, otherPage);
    await page.context().setOffline(false);
    await unattended(otherPage).getByRole('button', { name: 'Count in my name' }).click();
    await expectStampers(path, [jonas.userId]);
  });

  it('asks for each store about what was scanned there, and forgets all of them', async () => {
    const second = await service.newStore();
    const mira = await newStaff('Mira');
    const [here, there] = [await enrol(store), await enrol(second)];
    const page = await openPhone();
    await signIn(page, mira);
    await service.execute(new AddMember(cli, second.accountId, mira.email, 'staff'));
    const otherPage = await page.context().newPage();
    await otherPage.goto(at(second));
    await waitForOfflinePage(otherPage, at(second));
    await page.context().setOffline(true);
    await endSessions(mira);
    await scanOffline(page, here.customerCard.code);
    await scanOffline(otherPage, there.customerCard.code);
    await page.context().setOffline(false);
    await page.getByText('Your session has ended.').waitFor();
    await otherPage.getByText('Your session has ended.').waitFor();
    await eventually(
      () => page.evaluate<string[]>('caches.keys()'),
      (names) => names.length === 0,
    );
    await page.goto(at());
    await page.getByLabel('E-mail').fill(mira.email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).first().click();
    await unattended(page).getByLabel(here.customerCard.code).waitFor();
    expect(await unattended(page).locator('input').count()).toBe(1);
    await page.goto(at(second));
    await unattended(page).getByLabel(there.customerCard.code).waitFor();
    expect(await unattended(page).locator('input').count()).toBe(1);
  });
});

async function setPin({ email }: Staff): Promise<void> {
  const page = await openPhone();
  await signInAtCounter(page, at(), email);
  await page.goto(`${PUBLIC_URL}/app/account/pin`);
  await page.getByLabel('New PIN').fill(PIN);
  await page.getByLabel('Your password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Save the PIN' }).click();
  await page.getByText('Your PIN is set.').waitFor();
}

async function takeOver(page: Page, from: string, to: string): Promise<void> {
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: `${from}: change person` }).click();
  await page.getByText(to, { exact: true }).last().click();
  await page.getByLabel('PIN', { exact: true }).fill(PIN);
  await page.getByRole('link', { name: `${to}: change person` }).waitFor();
}
