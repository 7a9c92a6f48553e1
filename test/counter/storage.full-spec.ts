import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { closeContexts, keepPicture, SIZES, startChromium } from '../support/browser/chromium.js';
import { createStaff, LASTING_OUTCOMES, signInAtCounter } from '../support/browser/counter.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests the counter on phones whose browser loses the storage of the page, or has none: every scan has an outcome. */

const PUBLIC_URL = 'http://cards.localhost';

let service: LocalService;
let store: Client & { email: string };
let browser: Browser;
const contexts: BrowserContext[] = [];

beforeAll(async () => {
  service = await startService({ PUBLIC_URL });
  store = await service.newStore();
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
beforeEach(() => pageErrors.allow(/ERR_(INTERNET_DISCONNECTED|FAILED)/));
afterEach(() => closeContexts(contexts));
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

/** @param script runs before those of the page, from the first page on that shows the counter */
async function openCounter(script = ''): Promise<Page> {
  const context = await browser.newContext({ viewport: SIZES.phone, locale: 'en-GB' });
  contexts.push(context);
  await context.addInitScript({ content: LASTING_OUTCOMES });
  const page = await context.newPage();
  const { email } = await createStaff(service, store, 'Mira');
  await signInAtCounter(page, `${PUBLIC_URL}/counter/${store.accountId}`, email);
  await page.evaluate('present');
  if (script !== '') {
    await context.addInitScript({ content: script });
    await page.reload();
    await page.evaluate('present');
  }
  return page;
}

async function type(page: Page, code: string): Promise<void> {
  await page.keyboard.press('Escape');
  await page.getByLabel('Code of the card').fill(code);
  await page.getByRole('button', { name: 'Stamp', exact: true }).click();
}

/** Holds something back until it is released. */
function hold(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((act) => (resolve = act));
  return { promise, resolve };
}

const readStampCount = async (path: string) =>
  (await store.get<CustomerCardDetailJson>(path)).body.stamps_count;

/** What a browser does to the open database of the page. */
const LOSSES: Record<string, string> = {
  'with an event': `queue.database.then((database) => {
    database.close();
    database.dispatchEvent(new Event('close'));
  })`,
  'without an event (InvalidStateError)': `queue.database.then((database) => database.close())`,
  'as WebKit does (UnknownError)': `queue.database.then((database) => {
    database.transaction = () => {
      throw new DOMException('Connection to Indexed Database server lost.', 'UnknownError');
    };
  })`,
  'and never calls back': `queue.database.then((database) => {
    database.transaction = () => Object.assign(new EventTarget(), {
      abort() {},
      objectStore: () => ({ put() {}, get() {}, index: () => ({ getAll() {} }) }),
    });
  })`,
  'for a page of another version': `new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase('inkpad-counter');
    request.onsuccess = () => resolve();
    request.onblocked = () => reject(new Error('blocked'));
  })`,
};

/** What a browser does to everything that the page stores, from when it loads. */
const FAILURES: Record<string, string> = {
  'opens no database': `indexedDB.open = () => {
    const request = new EventTarget();
    setTimeout(() => request.dispatchEvent(new Event('error')));
    return request;
  };`,
  'never says whether it opens': 'indexedDB.open = () => new EventTarget();',
  'does not know storage at all': `Object.defineProperty(globalThis, 'indexedDB', {
    get() { throw new DOMException('denied', 'SecurityError'); },
  });`,
  'is full': `IDBObjectStore.prototype.put = () => {
    throw new DOMException('full', 'QuotaExceededError');
  };`,
  'aborts what is written': `{
    const { put } = IDBObjectStore.prototype;
    IDBObjectStore.prototype.put = function (...values) {
      const request = put.apply(this, values);
      this.transaction.abort();
      return request;
    };
  }`,
  'cannot be read': `IDBIndex.prototype.getAll = IDBObjectStore.prototype.get = () => {
    throw new DOMException('Attempt to get records failed', 'UnknownError');
  };`,
  'never finishes': `IDBDatabase.prototype.transaction = () =>
    Object.assign(new EventTarget(), {
      abort() {},
      objectStore: () => ({ put() {}, get() {}, getAll() {}, index: () => ({ getAll() {} }) }),
    });`,
};

describe('the counter without a reliable storage', () => {
  it.each(Object.keys(LOSSES))(
    'stamps the next card after the browser has closed the database %s',
    async (loss) => {
      const page = await openCounter();
      const [first, second] = [await enrol(store), await enrol(store)];
      await type(page, first.customerCard.code);
      await page.locator('#result').getByText('1 of 10').waitFor();
      await page.evaluate(`${LOSSES[loss]}`);
      await type(page, second.customerCard.code);
      await page.locator('#result').getByText('1 of 10').waitFor();
      expect(page.url()).toBe(`${PUBLIC_URL}/counter/${store.accountId}`);
      expect(await readStampCount(second.path)).toBe(1);
      // What is stored afterwards is found again.
      await page.context().setOffline(true);
      await type(page, first.customerCard.code);
      await page.getByText('Still to send: 1 stamp').waitFor();
    },
  );

  it('stamps the next card after the site data were cleared', async () => {
    const page = await openCounter();
    const { customerCard, path } = await enrol(store);
    const session = await page.context().newCDPSession(page);
    await session.send('Storage.clearDataForOrigin', {
      origin: PUBLIC_URL,
      storageTypes: 'indexeddb',
    });
    await type(page, customerCard.code);
    await eventually(
      () => readStampCount(path),
      (count) => count === 1,
    );
  });

  it.each(Object.keys(FAILURES))(
    'stamps with a connection, and says without one that it did not, where the browser %s',
    async (failure) => {
      const page = await openCounter(FAILURES[failure]);
      const { customerCard, path, rewards } = await enrol(store, { rewards: [2] });
      await type(page, customerCard.code);
      await page.getByText('1 of 10').waitFor();
      expect(await readStampCount(path)).toBe(1);
      await page.goto(`${PUBLIC_URL}/counter/${store.accountId}`);
      await page.context().setOffline(true);
      await type(page, customerCard.code);
      // What can be written is saved, also if it cannot be read.
      const outcome = failure === 'cannot be read' ? 'Saved for later' : 'Nothing was stamped';
      await page.locator('#result').getByText(outcome).waitFor();
      expect(await readStampCount(path)).toBe(1);
      expect(rewards).toHaveLength(1);
    },
  );

  it('adds a stamp and redeems with the buttons of an outcome when the storage is full by then', async () => {
    const page = await openCounter();
    const { customerCard, path } = await enrol(store, { rewards: [2] });
    await type(page, customerCard.code);
    const result = page.locator('#result');
    await result.getByText('1 of 10').waitFor();
    await page.evaluate(`${FAILURES['is full']}`);
    await result.getByRole('button', { name: '+1' }).click();
    await page.getByText('2 of 10').waitFor();
    expect(await readStampCount(path)).toBe(2);
    await page.goto(`${PUBLIC_URL}/counter/${store.accountId}`);
    await type(page, customerCard.code);
    await result.getByRole('button', { name: 'Redeem' }).waitFor();
    await page.evaluate(`${FAILURES['is full']}`);
    await result.getByRole('button', { name: 'Redeem' }).click();
    await page.getByText('Reward at 2 redeemed. Hand it over.').waitFor();
    expect(await readStampCount(path)).toBe(0);
  });

  it('counts a stamp once that was stored although the browser said otherwise', async () => {
    const page = await openCounter();
    const { customerCard, path } = await enrol(store);
    await page.evaluate(`{
      const add = queue.add.bind(queue);
      queue.add = (entry) => add(entry).then(() => Promise.reject(new Error('lost')));
    }`);
    await type(page, customerCard.code);
    await page.getByText('1 of 10').waitFor();
    await page.goto(`${PUBLIC_URL}/counter/${store.accountId}`);
    await page.waitForFunction(`queue.list('waiting').then((entries) => entries.length === 0)`);
    expect(await readStampCount(path)).toBe(1);
  });

  it('keeps nobody from signing out when the storage never calls back', async () => {
    const page = await openCounter(FAILURES['never says whether it opens']);
    // What the button waits for.
    await page.evaluate('forgetPerson()');
    await page.evaluate('caches.delete = () => new Promise(() => {}); forgetPerson()');
    expect(await page.evaluate('document.readyState')).toBe('complete');
  });

  it('asks the browser to keep what it stores', async () => {
    const page = await openCounter(`navigator.storage.persist = async () => {
      globalThis.isAsked = true;
      return true;
    };`);
    await page.waitForFunction('globalThis.isAsked === true');
    expect(await page.locator('#result').isHidden()).toBe(true);
  });
});

describe('the counter on a slow network', () => {
  it('says at once that a stamp is under way, and then its outcome', async () => {
    const page = await openCounter();
    const { customerCard, path } = await enrol(store);
    const response = hold();
    await page.context().route('**/batch', async (route) => {
      await response.promise;
      await route.fallback();
    });
    const [start, end] = [customerCard.code.slice(0, 4), customerCard.code.slice(4)];
    // Within the event itself, so that no measurement of time is needed.
    const text = await page.evaluate(
      `field.value = '${customerCard.code}'; typed.requestSubmit(); result.innerText`,
    );
    expect(text).toBe(`Stamping ${start} ${end}…`);
    expect(await page.locator('#result').isVisible()).toBe(true);
    await keepPicture(page, 'counter-progress');
    expect(await readStampCount(path)).toBe(0);
    response.resolve();
    await page.locator('#result').getByText('1 of 10').waitFor();
    expect(await page.getByText('Stamping').count()).toBe(0);
  });

  it('says of each button of an outcome that it is at work', async () => {
    const page = await openCounter();
    const { customerCard, path } = await enrol(store, { rewards: [2] });
    await store.stamp(path);
    const result = page.locator('#result');
    for (const [name, at] of [
      ['Add another', '**/batch'],
      ['+1', '**/batch'],
      ['Redeem', '**/batch'],
      ['Undo', '**/undo'],
    ] as const) {
      if (name === 'Add another') await type(page, customerCard.code);
      const button = result.getByRole('button', { name }).first();
      await button.waitFor();
      const response = hold();
      await page.context().route(at, async (route) => {
        await response.promise;
        await route.fallback();
      });
      await button.click();
      await result.getByText('One moment…').waitFor();
      await keepPicture(page, `counter-at-work-${name}`);
      response.resolve();
      await result.getByText('One moment…').waitFor({ state: 'detached' });
      await page.context().unroute(at);
    }
    await result.getByText('Undone').waitFor();
    expect(await readStampCount(path)).toBe(3);
  });

  it('says on its other pages that what was pressed is under way', async () => {
    const page = await openCounter();
    const response = hold();
    await page.context().route('**/find**', async (route) => {
      await response.promise;
      await route.fallback();
    });
    const progress = page.locator('#progress');
    expect(await progress.isVisible()).toBe(false);
    const text = await page.evaluate(`document.querySelector('a[href$="/find"]').click();
      document.getElementById('progress').innerText`);
    expect(text).toBe('One moment…');
    response.resolve();
    await page.getByLabel('Name, phone or e-mail').fill('nobody@mail.example');
    expect(await progress.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByRole('button', { name: 'Add the customer' }).waitFor();
  });
});
