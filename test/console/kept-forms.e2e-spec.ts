import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { Browser } from '../support/browser/browser.js';
import { newPoster } from '../support/browser/signup.js';
import { enrol, type Enrolled } from '../support/fixtures/enrolled-customer.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests that an ended session eats no form: what was entered comes back to its user, and to nobody else. */

const PASSWORD = 'correct horse';
const MESSAGE = 'Nothing has been sent yet. Your text is kept.';

let service: LocalService;
let store: Client & { email: string };
let other: string;
let enrolled: Enrolled;

beforeAll(async () => {
  service = await startService({ TRUST_PROXY_HOPS: '1' });
  store = await service.newStore();
  enrolled = await enrol(store);
  other = `${randomUUID()}@member.example`;
  await service.execute(new CreateUser(cli, other, 'Mira', PASSWORD));
  await service.execute(new AddMember(cli, store.accountId, other, 'owner'));
});
afterAll(() => service?.stop());

const at = (path: string) => `/app/stores/${store.accountId}${path}`;
const readKept = (text: string) => /name="kept_form" value="([^"]+)"/.exec(text)?.[1] ?? '';
const readAction = (text: string) => /id="kept-form"[^>]* action="([^"]+)"/.exec(text)?.[1];
const endSessions = () => service.database.query('delete from sessions');
const countChanges = async () => {
  const { rows } = await service.database.query<{ head: string }>(
    'select count(*)::text as head from es.events',
  );
  return rows[0]?.head;
};

type Fields = Record<string, string>;
/** @property picture of a form with a file; empty: none was chosen */
type Sending = { page: string; action: string; fields: Fields; picture?: Buffer };

/** Sends a form after its session has ended. @returns the browser, at the page that leads to the sign-in */
async function sendSignedOut({ page, action, fields, picture }: Sending) {
  const browser = await Browser.signedIn(service, store.email);
  expect((await browser.get(page)).status).toBe(200);
  await endSessions();
  const response = picture
    ? await sendUpload(browser, action, fields, picture)
    : await browser.post(action, fields);
  return { browser, response };
}

/** Sends a form with a file, without loading its page again. */
async function sendUpload(browser: Browser, action: string, fields: Fields, picture: Buffer) {
  const body = new FormData();
  for (const [name, value] of Object.entries({ _csrf: browser.csrf, form_key: 'x', ...fields })) {
    body.append(name, value);
  }
  const name = picture.length > 0 ? 'picture.png' : '';
  body.append('picture', new Blob([new Uint8Array(picture)]), name);
  const response = await fetch(service.baseUrl + action, {
    method: 'POST',
    redirect: 'manual',
    headers: {
      accept: 'text/html',
      origin: browser.origin,
      'sec-fetch-site': 'same-origin',
      cookie: browser.cookie,
      'x-forwarded-for': browser.address,
    },
    body,
  });
  return {
    status: response.status,
    headers: response.headers,
    text: await response.text(),
    location: response.headers.get('location'),
  };
}

/** Signs in on the pages that carry a form. @returns the last of them */
async function signInWith(browser: Browser, sealedForm: string, email: string) {
  const page = await browser.post('/app/sign-in/kept', { kept_form: sealedForm });
  expect([page.status, page.text.includes(MESSAGE), readKept(page.text)]).toEqual([
    200,
    true,
    sealedForm,
  ]);
  // A wrong password first: the form is still there.
  const wrong = await browser.post('/app/sign-in', {
    email,
    password: 'wrong',
    kept_form: sealedForm,
  });
  expect([wrong.status, readKept(wrong.text)]).toEqual([422, sealedForm]);
  return browser.post('/app/sign-in', { email, password: PASSWORD, kept_form: sealedForm });
}

describe('a form whose session has ended', () => {
  const forms: Record<string, () => Promise<Sending & { hidden?: string[] }>> = {
    'of a message': async () => ({
      page: at('/messages/announcements/new'),
      action: at('/messages/announcements'),
      fields: { title: 'Closed on Monday', text: 'See you “soon” <b>', min_stamps: '3' },
    }),
    'of an automatic message': async () => ({
      page: at('/messages/rules/new?kind=inactive'),
      action: at('/messages/rules'),
      fields: { kind: 'inactive', title: 'We miss you', text: 'Come back!', threshold: '45' },
    }),
    'of the settings': async () => ({
      page: at('/settings'),
      action: at('/settings'),
      fields: {
        name: 'Café <Luisa>',
        privacy_text: 'Ask the barista.',
        time_zone: 'Europe/Berlin',
      },
    }),
    'of a new customer': async () => ({
      page: at('/customers/new'),
      action: at('/customers'),
      fields: { first_name: 'Gracе', last_name: 'Hopper-Murray', email: 'grace@navy.example' },
    }),
    'of a customer': async () => ({
      page: at(`/customers/${enrolled.customer.id}/edit`),
      action: at(`/customers/${enrolled.customer.id}/edit`),
      fields: { first_name: 'Adele', last_name: 'Goldberg' },
    }),
    'of a location': async () => ({
      page: at('/locations'),
      action: at('/locations'),
      fields: { name: 'Harbour Street', address: '1 Quay' },
    }),
    'of a poster': async () => ({
      page: at('/posters/new'),
      action: at('/posters'),
      fields: { card_id: String(enrolled.card.id), title: 'Collect with us' },
    }),
    'of an existing poster': async () => {
      const poster = await newPoster(store);
      const path = at(`/posters/${poster.id}`);
      return { page: path, action: path, fields: { title: 'Summer at the harbour' } };
    },
    'of the contact of the brand': async () => ({
      page: at('/brand'),
      action: at('/brand/contact'),
      fields: { website: 'https://luisa.example', terms_text: 'One stamp for each coffee.' },
    }),
    'of a webhook, without its password and its headers': async () => ({
      page: at('/webhooks/new'),
      action: at('/webhooks'),
      fields: {
        target_url: 'https://receiver.example/inkpad',
        description: 'The till in the back',
        headers: 'x-api-key: hunter2',
        current_password: PASSWORD,
      },
      hidden: ['hunter2', PASSWORD],
    }),
    'of a token, without its password': async () => ({
      page: at('/tokens'),
      action: at('/tokens'),
      fields: { name: 'Till in the back', current_password: 'hunter2' },
      hidden: ['hunter2'],
    }),
    'of the designer': async () => ({
      page: at('/cards/new?template=coffee'),
      action: at('/cards'),
      fields: { name: 'Ten coffees', stamps_required: '8' },
      picture: Buffer.alloc(0),
    }),
    'of a new store': async () => ({
      page: '/app/new-store',
      action: '/app/new-store',
      fields: { name: 'Second café', locale: 'en', time_zone: 'Europe/Berlin' },
    }),
    'of the own account': async () => ({
      page: '/app/account',
      action: '/app/account',
      fields: { name: 'Luisa Owner', email: store.email },
    }),
    'of a customer at the counter': async () => ({
      page: `/counter/${store.accountId}/find?q=ada`,
      action: `/counter/${store.accountId}/enrol`,
      fields: { q: 'ada', name: 'Ada Lovelace', contact: 'ada@lovelace.example' },
    }),
  };

  it.each(Object.keys(forms))(
    '%s comes back after signing in, and executes nothing',
    async (name) => {
      const form = await forms[name]?.();
      if (!form) throw new Error(`there is no form ${name}`);
      const before = await countChanges();
      const { browser, response } = await sendSignedOut(form);
      expect([response.status, response.text.includes(MESSAGE)]).toEqual([200, true]);
      expect(readAction(response.text)).toBe('/app/sign-in/kept');
      const sealedForm = readKept(response.text);
      // Sealed: the next person at this browser may look at the page.
      const values = [...Object.values(form.fields), ...(form.hidden ?? [])];
      const long = values.filter(({ length }) => length > 4);
      expect(long.filter((value) => response.text.includes(value))).toEqual([]);
      const passed = await signInWith(browser, sealedForm, store.email);
      expect([passed.status, readAction(passed.text)]).toEqual([200, form.action]);
      const again = form.picture
        ? await sendUpload(browser, form.action, { kept_form: sealedForm }, form.picture)
        : await browser.post(form.action, { kept_form: sealedForm });
      expect([again.status, again.text.includes(MESSAGE)]).toEqual([200, true]);
      const text = decode(again.text);
      for (const [field, value] of Object.entries(form.fields)) {
        const isHidden = form.hidden?.includes(value) === true || field === 'headers';
        expect([field, text.includes(value)]).toEqual([field, !isHidden]);
      }
      for (const value of form.hidden ?? []) expect(text).not.toContain(value);
      expect(text.includes('Passwords and headers are not kept')).toBe(form.hidden !== undefined);
      expect(await countChanges()).toBe(before);
    },
  );

  it('is executed when it is sent again', async () => {
    const fields = { name: 'Quay Street', address: '2 Quay' };
    const sending = { page: at('/locations'), action: at('/locations'), fields };
    const { browser, response } = await sendSignedOut(sending);
    const sealedForm = readKept(response.text);
    await signInWith(browser, sealedForm, store.email);
    await browser.post(at('/locations'), { kept_form: sealedForm });
    const { location } = await browser.post(at('/locations'), fields);
    expect(location).toContain('/locations');
    const { text } = await browser.get(at('/locations'));
    expect(text).toContain('Quay Street');
  });

  it('comes back without its file, and asks for it again', async () => {
    const { browser, response } = await sendSignedOut({
      page: at('/cards/new?template=coffee'),
      action: at('/cards'),
      fields: { name: 'Twelve coffees', stamps_required: '12' },
      picture: Buffer.from('89504e470d0a1a0a', 'hex'),
    });
    const sealedForm = readKept(response.text);
    const passed = await signInWith(browser, sealedForm, store.email);
    expect(passed.text).toContain('enctype="multipart/form-data"');
    const again = await sendUpload(
      browser,
      at('/cards'),
      { kept_form: sealedForm },
      Buffer.alloc(0),
    );
    const { text } = again;
    expect(again.status).toBe(200);
    expect(text).toContain(`${MESSAGE} Please choose the file again.`);
    expect(text).toContain('value="Twelve coffees"');
  });

  it('comes back too when its user has signed in again in another tab meanwhile', async () => {
    const browser = await Browser.signedIn(service, store.email);
    await browser.get(at('/messages/announcements/new'));
    const { csrf } = browser;
    await endSessions();
    await browser.signIn(store.email, PASSWORD);
    const fields = { _csrf: csrf, title: 'From the first tab', text: 'Hello' };
    const { status, text } = await browser.post(at('/messages/announcements'), fields);
    expect([status, text.includes(MESSAGE), text.includes('From the first tab')]).toEqual([
      200,
      true,
      true,
    ]);
  });

  it('is not shown to another user who signs in at the same browser', async () => {
    const { browser, response } = await sendSignedOut({
      page: at('/messages/announcements/new'),
      action: at('/messages/announcements'),
      fields: { title: 'A private idea', text: 'Nobody else reads this' },
    });
    const sealedForm = readKept(response.text);
    const passed = await signInWith(browser, sealedForm, other);
    expect([passed.status, passed.location]).toEqual([303, `/app/stores/${store.accountId}`]);
    const action = at('/messages/announcements');
    const tried = await browser.post(action, { kept_form: sealedForm });
    expect([tried.status, tried.location]).toEqual([303, '/app']);
    // Nor is the form of a tab that was open before accepted, or shown.
    const first = await Browser.signedIn(service, store.email);
    await first.get(at('/messages/announcements/new'));
    const fields = { _csrf: first.csrf, title: 'A private idea' };
    const refused = await browser.post(action, fields);
    expect([refused.status, refused.text.includes('A private idea')]).toEqual([403, false]);
  });

  it('leads only to where it was sent, and not when somebody has changed it', async () => {
    const { browser, response } = await sendSignedOut({
      page: at('/locations'),
      action: at('/locations'),
      fields: { name: 'Harbour Street' },
    });
    const sealedForm = readKept(response.text);
    await signInWith(browser, sealedForm, store.email);
    for (const [action, value] of [
      [at('/customers'), sealedForm],
      [at('/locations'), `${sealedForm.slice(0, -4)}AAAA`],
      [at('/locations'), 'nothing'],
    ] as const) {
      const { status, location } = await browser.post(action, { kept_form: value });
      expect([status, location]).toEqual([303, '/app']);
    }
  });

  it('is kept over the code of the second factor', async () => {
    const { browser, response } = await sendSignedOut({
      page: at('/locations'),
      action: at('/locations'),
      fields: { name: 'Harbour Street' },
    });
    const sealedForm = readKept(response.text);
    const wrong = await browser.post('/app/sign-in/code', {
      code: '123456',
      kept_form: sealedForm,
    });
    // Nobody waits for a code: the sign-in begins anew, with the form.
    expect([wrong.status, readKept(wrong.text)]).toEqual([200, sealedForm]);
  });

  const OWN_STORES = `account_id in (select m.account_id from memberships m join users u on u.id = m.user_id where u.email = $1)`;
  const tasks = [
    [
      'a password of their own',
      '/app/account/first-password',
      `update users set password_expires_at = now() + interval '1 day' where email = $1`,
      'update users set password_expires_at = null where email = $1',
    ],
    [
      'a second factor',
      '/app/account/codes',
      `insert into second_factor_stores (account_id) select account_id from memberships where ${OWN_STORES}`,
      `delete from second_factor_stores where ${OWN_STORES}`,
    ],
  ] as const;
  it.each(tasks)('comes back after its user has set %s first', async (_thing, page, begin, end) => {
    const own = await service.newStore();
    const path = `/app/stores/${own.accountId}/messages/announcements`;
    const fields = { title: 'Before the task', text: 'Hello' };
    // In a session that goes on, and in one that has ended.
    for (const hasEnded of [false, true]) {
      const browser = await Browser.signedIn(service, own.email);
      await browser.get(`${path}/new`);
      await service.database.query(begin, [own.email]);
      if (hasEnded) await endSessions();
      const response = await browser.post(path, fields);
      const sealedForm = readKept(response.text);
      expect([response.status, readAction(response.text)]).toEqual([200, '/app/sign-in/kept']);
      const task = hasEnded
        ? await signInWith(browser, sealedForm, own.email)
        : await browser.post('/app/sign-in/kept', { kept_form: sealedForm });
      expect(task.text).toContain(`href="${page}" target="_blank"`);
      expect(task.text).toContain(MESSAGE);
      // Too early.
      const early = await browser.post('/app/sign-in/kept', { kept_form: sealedForm });
      expect(early.text).toContain(`href="${page}"`);
      await service.database.query(end, [own.email]);
      const passed = await browser.post('/app/sign-in/kept', { kept_form: sealedForm });
      expect([passed.status, readAction(passed.text)]).toEqual([200, path]);
      const again = await browser.post(path, { kept_form: sealedForm });
      expect(again.text).toContain(fields.title);
    }
  });

  it('leads to the sign-in as before when there is nothing to keep, or a script has sent it', async () => {
    const browser = await Browser.signedIn(service, store.email);
    await browser.get(at('/cards'));
    await endSessions();
    const archive = at(`/cards/${enrolled.card.id}/archive`);
    expect((await browser.post(archive)).location).toBe('/app/sign-in');
    const referer = `${browser.origin}${at('/cards')}`;
    expect((await browser.post(archive, {}, { referer })).location).toBe(
      `/app/sign-in?return_to=${encodeURIComponent(at('/cards'))}`,
    );
    const fields = { title: 'By a script' };
    const { status } = await browser.post(at('/messages/announcements'), fields, { accept: '*/*' });
    expect(status).toBe(303);
    const foreign = await browser.post(
      at('/locations'),
      { name: 'x' },
      { origin: 'https://x.example' },
    );
    expect(foreign.status).toBe(403);
  });
});

function decode(html: string): string {
  return html
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
}
