import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { CreateUser, RemoveUser } from '#identity/identity.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { UnlinkCompany } from '#identity/user.commands.js';
import { Secret, TOTP } from 'otpauth';
import { Browser, type BrowserResponse } from '../support/browser/browser.js';
import { CompanyProvider } from '../support/emulators/oidc-provider.js';
import { createTestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer } from '../support/emulators/mail-server.js';
import type { Program } from '../support/services/program.js';
import { cli, Client, startService, type Service } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const PASSWORD = 'correct horse';

let service: Service;
let mails: MailServer;
let company: CompanyProvider;
let dispatcher: Program;
let store: Client & { email: string };

beforeAll(async () => {
  [mails, company] = await Promise.all([MailServer.start(), CompanyProvider.start()]);
  service = await startService({
    TRUST_PROXY_HOPS: '1',
    SMTP_URL: mails.url,
    MAIL_FROM: 'inkpad@shop.example',
    // Few, so that a request which waits for a second connection would deadlock.
    DATABASE_POOL: '4',
    ...company.environment,
  });
  await service.database.query(
    `insert into audit_log (type, actor, channel, request_id, ip_address, subject, recorded_at)
     select 'user.signed_in', '{}', 'owner', 'old', '192.0.2.7', '{}', now() - make_interval(days => days)
     from unnest(array[91, 89]) days`,
  );
  dispatcher = await startDispatcher(service);
  store = await service.newStore();
});
afterAll(async () => {
  await dispatcher?.kill('SIGTERM');
  await service?.stop();
  await mails?.goAway();
  await company?.stop();
});

async function get(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(service.baseUrl + path, {
    redirect: 'manual',
    headers: { accept: 'text/html', ...headers },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe('pages', () => {
  it('link a stylesheet that browsers may cache for a year, by the hash in its path', async () => {
    const page = await get('/app/sign-in');
    expect(page.status).toBe(200);
    const [, path = ''] = /href="([^"]+\.css)"/.exec(page.text) ?? [];
    const style = await get(path);
    expect([
      style.status,
      style.headers.get('cache-control'),
      style.headers.get('content-type'),
    ]).toEqual([200, 'public, max-age=31536000, immutable', 'text/css; charset=utf-8']);
    // A page of another version of the service asks for its own style.
    const other = await get(path.replace(/-[\w-]{12}\./, '-AAAAAAAAAAAA.'));
    expect([other.status, other.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect((await get('/assets/nothing-AAAAAAAAAAAA.css')).status).toBe(404);
  });

  it('may not be framed, run scripts or load anything from another origin', async () => {
    const { headers, text } = await get('/app/password/forgot');
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('cache-control')).toBe('no-store, no-transform');
    expect(text).not.toMatch(/style="|<script|https?:\/\/(?!www\.w3\.org)/);
  });

  it('show errors as a page to browsers and as JSON to other clients', async () => {
    const missing = await get('/app/nothing/of/the/kind');
    expect([missing.status, missing.headers.get('content-type')]).toEqual([
      404,
      'text/html; charset=utf-8',
    ]);
    expect(missing.text).toContain('This page does not exist');
    const german = await get('/join/nothing/here', { 'accept-language': 'de-AT,de;q=0.9' });
    expect([german.status, german.headers.get('vary')]).toEqual([
      404,
      expect.stringContaining('Accept-Language'),
    ]);
    expect(german.text).toContain('Diese Seite gibt es nicht');
    const script = await get('/join/nothing/here', { accept: '*/*' });
    expect(JSON.parse(script.text)).toMatchObject({ code: 'not_found' });
    const api = await get('/api/v1/nothing');
    expect(JSON.parse(api.text)).toMatchObject({ code: 'unauthorized' });
  });
});

async function signIn(email = store.email): Promise<Browser> {
  const browser = new Browser(service);
  const { status, location } = await browser.signIn(email, PASSWORD);
  expect([status, location]).toEqual([303, expect.stringMatching(/^[/]app([/]stores[/]\d+)?$/)]);
  return browser;
}

function toStorePath(page: string): string {
  return `/app/stores/${store.accountId}/${page}`;
}

async function listAuditTypes(): Promise<string[]> {
  const { rows } = await service.database.query<{ type: string }>(
    'select type from audit_log where account_id = $1 order by id',
    [store.accountId],
  );
  return rows.map(({ type }) => type);
}

describe('sign-in', () => {
  it('leads to the stores of the user, and shows the store of another user like a missing one', async () => {
    const browser = await signIn();
    const home = await browser.get('/app');
    expect(home.text).toContain('Corner Café');
    expect(home.text).toContain(`href="/app/stores/${store.accountId}"`);
    expect((await browser.get(`/app/stores/${store.accountId}`)).status).toBe(200);
    const other = await service.newStore();
    const foreign = await browser.get(`/app/stores/${other.accountId}`);
    const missing = await browser.get('/app/stores/987654321');
    expect([foreign.status, missing.status]).toEqual([404, 404]);
    const withoutIds = (text: string) =>
      text.replaceAll(/Request \S+|name="form_key" value="[^"]+"/g, '');
    expect(withoutIds(foreign.text)).toBe(withoutIds(missing.text));
  });

  it('shows no message for an unknown value of ?done=', async () => {
    const browser = await signIn();
    const pages = ['/app/account', ...['users', 'tokens'].map((page) => toStorePath(page))];
    for (const done of ['constructor', '__proto__', 'toString', 'removed&done=role']) {
      for (const page of pages) {
        const response = await browser.get(`${page}?done=${done}`);
        expect([response.status, response.text]).toEqual([
          200,
          expect.not.stringContaining('"status"'),
        ]);
      }
      const { text } = await get(`/app/sign-in?done=${done}`);
      expect(text).not.toContain('role="status"');
    }
  });

  it('sets a host-only, HttpOnly cookie whose token is not in the database', async () => {
    const browser = new Browser(service);
    const response = await browser.signIn(store.email, PASSWORD);
    const [session = '', trustedBrowser = ''] = response.headers.getSetCookie();
    expect(session).toMatch(
      /^__Host-inkpad=[\w-]{43}; Max-Age=2592000; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    expect(trustedBrowser).toMatch(/^__Host-inkpad-browser=[\w-]{43}; Max-Age=31536000; /);
    const { rows } = await service.database.query('select * from sessions');
    const token = browser.cookies.get('__Host-inkpad') ?? '';
    expect(token).not.toBe('');
    expect(JSON.stringify(rows)).not.toContain(token);
  });

  it('starts a new session and ends the one of the former cookie', async () => {
    const browser = await signIn();
    const before = browser.cookies.get('__Host-inkpad') ?? '';
    await browser.post('/app/sign-in', { email: store.email, password: PASSWORD });
    expect(browser.cookies.get('__Host-inkpad')).not.toBe(before);
    browser.cookies.set('__Host-inkpad', before);
    expect(await browser.get('/app')).toMatchObject({ status: 303, location: '/app/sign-in' });
  });

  it('gives the same response for a wrong password and an unknown e-mail address', async () => {
    const browser = new Browser(service);
    const email = `${'x'.repeat(8)}@nobody.example`;
    const wrong = await browser.signIn(store.email, 'not it at all');
    const unknown = await browser.signIn(email, 'not it at all');
    expect([wrong.status, unknown.status]).toEqual([422, 422]);
    const strip = (text: string, address: string) =>
      text.replaceAll(address, '').replaceAll(/ nonce="[^"]+"/g, '');
    expect(strip(wrong.text, store.email)).toBe(strip(unknown.text, email));
    expect(wrong.headers.getSetCookie()).toEqual([]);
  });

  it.each(['\u202A%\u202C', '%\u200B', '\uFEFF%', ' %\r\n', 'o\u2060%'])(
    'ignores spaces and invisible characters in an e-mail address: %j',
    async (spelling) => {
      const email = spelling.startsWith('o') ? store.email.replace('o', 'o\u2060') : store.email;
      expect(await signIn(spelling.replace(/o\u2060%|%/, email))).toBeDefined();
    },
  );

  it('returns to the requested page, and not to another site', async () => {
    const browser = new Browser(service);
    const target = `/app/stores/${store.accountId}?tab=2`;
    const sent = await browser.get(target);
    expect(sent).toMatchObject({
      status: 303,
      location: `/app/sign-in?return_to=${encodeURIComponent(target)}`,
    });
    const form = await browser.get(sent.location ?? '');
    expect(form.text).toContain(`name="return_to" value="${target}"`);
    const fields = { email: store.email, password: PASSWORD };
    const back = await browser.post('/app/sign-in', { ...fields, return_to: target });
    expect(back.location).toBe(target);
    const away = await browser.post('/app/sign-in', { ...fields, return_to: '//evil.example' });
    expect(away.location).toBe(`/app/stores/${store.accountId}`);
  });

  it('refuses a form from another origin with 403', async () => {
    const browser = new Browser(service);
    const fields = { email: store.email, password: PASSWORD };
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { origin: 'null' },
    ]) {
      const refused = await browser.post('/app/sign-in', fields, headers);
      expect([refused.status, refused.headers.getSetCookie()]).toEqual([403, []]);
    }
    expect((await browser.post('/app/sign-in', fields)).status).toBe(303);
  });

  it('leads to a session that ends at once with sign-out or the removal of the user', async () => {
    const browser = await signIn();
    await browser.get('/app');
    const out = await browser.post('/app/sign-out');
    expect(out).toMatchObject({ status: 303, location: '/app/sign-in?done=signed_out' });
    expect(browser.cookies.has('__Host-inkpad')).toBe(false);
    const other = await service.newStore();
    const removedBrowser = await signIn(other.email);
    await service.execute(new RemoveUser(cli, other.email));
    expect((await removedBrowser.get('/app')).status).toBe(303);
    expect(await listAuditTypes()).toContain('user.signed_out');
  });

  it('leads to a session that ends after 12 hours without a request, and when it expires', async () => {
    for (const past of ["seen_at = now() - interval '12 hours 1 second'", 'expires_at = now()']) {
      const browser = await signIn();
      expect((await browser.get('/app')).status).toBe(200);
      await service.database.query(`update sessions set ${past}`);
      expect([past, (await browser.get('/app')).status]).toEqual([past, 303]);
    }
  });

  it('leaves no IP address in the audit log for longer than 90 days', async () => {
    const { rows } = await eventually(
      () =>
        service.database.query<{ ip: string | null }>(
          `select host(ip_address) as ip from audit_log where request_id = 'old' order by id`,
        ),
      ({ rows: all }) => all.some(({ ip }) => ip === null),
    );
    expect(rows).toEqual([{ ip: null }, { ip: '192.0.2.7' }]);
  });

  it('pauses after ten wrong passwords, except in a browser that the user has signed in with before', async () => {
    const victim = await service.newStore();
    const victimBrowser = await signIn(victim.email);
    const stranger = new Browser(service);
    const tries = Array.from({ length: 10 }, () => stranger.signIn(victim.email, 'guessed wrong'));
    expect((await Promise.all(tries)).map(({ status }) => status)).toEqual(Array(10).fill(422));
    const pausedResponse = await stranger.signIn(victim.email, PASSWORD);
    expect([pausedResponse.status, Number(pausedResponse.headers.get('retry-after'))]).toEqual([
      429,
      expect.any(Number),
    ]);
    expect(pausedResponse.text).toContain('Too many wrong attempts');
    expect((await victimBrowser.signIn(victim.email, PASSWORD)).status).toBe(303);
    const { rows } = await service.database.query(
      "select subject from audit_log where account_id = $1 and type = 'user.sign_in_paused'",
      [victim.accountId],
    );
    expect(rows).toEqual([{ subject: { user_id: expect.any(Number), failures: 10 } }]);
    const entries = await service.database.query(
      `select type, subject ->> 'times' as times, ip_address = $2::inet as "isStranger"
       from audit_log where account_id = $1 and type in ('user.sign_in_failed', 'user.signed_in') order by id`,
      [victim.accountId, stranger.address],
    );
    const successEntry = { type: 'user.signed_in', times: null, isStranger: false };
    const failureEntry = { type: 'user.sign_in_failed', isStranger: true };
    expect(entries.rows).toEqual([
      successEntry,
      { ...failureEntry, times: '1' },
      { ...failureEntry, times: '10' },
      successEntry,
    ]);
    await service.database.query("update counts set until = now() - interval '1 second'");
    expect((await stranger.signIn(victim.email, PASSWORD)).status).toBe(303);
  });

  it('compares e-mail addresses by their normalized form, whatever collation the column has', async () => {
    const database = await createTestDatabase();
    await database.query(
      `create collation loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)`,
    );
    await database.query('alter table users alter email type text collate loose');
    const lax = await startService({}, database);
    try {
      const { email } = await lax.newStore();
      const stranger = new Browser(lax);
      expect((await stranger.signIn(email.replace('owner', 'öwner'), PASSWORD)).status).toBe(422);
      expect((await stranger.signIn(email.replace('owner', 'ＯＷＮＥＲ'), PASSWORD)).status).toBe(
        303,
      );
    } finally {
      await lax.stop();
    }
  });

  it('audits only the 1st and the 10th of ten failures with unknown e-mail addresses', async () => {
    const ownService = await startService();
    try {
      const stranger = new Browser(ownService);
      for (const [who, times] of [4, 3, 3].entries()) {
        for (let i = 0; i < times; i++) {
          expect((await stranger.signIn(`${who}@nobody.example`, 'guess')).status).toBe(422);
        }
      }
      const { rows } = await ownService.database.query(
        `select subject ->> 'times' as times from audit_log where type = 'user.sign_in_failed' order by id`,
      );
      expect(rows).toEqual([{ times: '1' }, { times: '10' }]);
    } finally {
      await ownService.stop();
    }
  });

  it('shows a page with the seconds to wait once an IP address exceeds its rate limit', async () => {
    const browser = new Browser(service);
    const responses = await Promise.all(
      Array.from({ length: 31 }, (_, i) => browser.signIn(`${i}@nobody.example`, 'guess')),
    );
    const refused = responses.find(({ status }) => status === 429);
    expect(refused?.text).toContain('Too many requests');
    expect(refused?.headers.get('retry-after')).toMatch(/^\d+$/);
    const seconds = Number(refused?.headers.get('retry-after'));
    const wait = seconds === 1 ? '1 second' : `${seconds} seconds`;
    expect(refused?.text).toContain(`Please try again in ${wait}.`);
  });
});

describe('a form of the console', () => {
  it('counts as empty when it is sent without a body', async () => {
    const origin = 'https://cards.example';
    for (const [path, status] of [
      ['/app/sign-in', 422],
      ['/app/sign-in/code', 303],
      ['/app/password/forgot', 303],
      ['/app/password/reset', 404],
      ['/app/invitations/nothing', 404],
    ] as const) {
      const headers = { origin, accept: 'text/html' };
      const init = { method: 'POST', headers, redirect: 'manual' } as const;
      const response = await fetch(service.baseUrl + path, init);
      expect([path, response.status]).toEqual([path, status]);
    }
  });

  it('gets 403 unless it carries the CSRF token of its session', async () => {
    const browser = await signIn();
    await browser.get('/app/account');
    const fields = { name: 'Owner', email: store.email };
    const other = await signIn();
    await other.get('/app/account');
    for (const token of ['', 'x']) {
      const refused = await browser.post('/app/account', { ...fields, _csrf: token });
      expect([token, refused.status]).toEqual([token, 403]);
    }
    // A form of an earlier session of the same person comes back to them, and changes nothing.
    const response = await browser.post('/app/account', {
      ...fields,
      name: 'Late',
      _csrf: other.csrf,
    });
    expect([response.status, response.text.includes('value="Late"')]).toEqual([200, true]);
    expect((await browser.get('/app/account')).text).not.toContain('value="Late"');
    await browser.get('/app/account');
    expect((await browser.post('/app/account', fields)).status).toBe(303);
  });

  it('shows the sign-in once the session has ended', async () => {
    const browser = await signIn();
    await browser.get('/app/account');
    await service.database.query('delete from sessions');
    const lateResponse = await browser.post('/app/account', { name: 'Late' });
    expect(lateResponse).toMatchObject({ status: 200, location: null });
    expect(lateResponse.text).toContain('action="/app/sign-in/kept"');
  });
});

/** Waits until this many transactions wait for a lock. */
async function waitForLockedTransactions(count: number): Promise<void> {
  await eventually(
    async () => {
      const { rows } = await service.database.query<{ count: number }>(
        `select count(*)::int as count from pg_locks
         where not granted and pid in (select pid from pg_stat_activity where datname = current_database())`,
      );
      return rows[0]?.count ?? 0;
    },
    (waiting) => waiting >= count,
  );
}

/** Changes the password while a sign-in that has checked the former one waits to be committed. */
async function changePasswordDuring(
  browser: Browser,
  signIn: () => Promise<BrowserResponse>,
): Promise<void> {
  await browser.get('/app/account');
  await service.database.query('begin; lock table known_browsers in exclusive mode');
  const lateResponse = signIn();
  await waitForLockedTransactions(1);
  const fields = { current_password: PASSWORD, password: 'battery staple' };
  const set = browser.post('/app/account/password', fields);
  await Promise.race([set, waitForLockedTransactions(2)]);
  await service.database.query('commit');
  expect((await set).location).toBe('/app/account?done=password');
  await lateResponse;
}

describe('the account page', () => {
  it('saves the name', async () => {
    const ownStore = await service.newStore();
    const browser = await signIn(ownStore.email);
    await browser.get('/app/account');
    const response = await browser.post('/app/account', { name: 'Grace', email: ownStore.email });
    expect(response.location).toBe('/app/account?done=saved');
    const { text } = await browser.get('/app/account?done=saved');
    expect(text).toContain('Your name is saved.');
    expect(text).toContain('value="Grace"');
  });

  it('changes the password and ends all other sessions', async () => {
    const ownStore = await service.newStore();
    const browser = await signIn(ownStore.email);
    const elsewhere = await signIn(ownStore.email);
    await browser.get('/app/account');
    const fields = { current_password: PASSWORD, password: 'short' };
    const short = await browser.post('/app/account/password', fields);
    expect([short.status, short.text.includes('at least 10 characters')]).toEqual([422, true]);
    const set = await browser.post('/app/account/password', {
      ...fields,
      password: 'battery staple',
    });
    expect(set.location).toBe('/app/account?done=password');
    expect((await browser.get('/app')).status).toBe(200);
    expect((await elsewhere.get('/app')).status).toBe(303);
    const newBrowser = new Browser(service);
    expect((await newBrowser.signIn(ownStore.email, PASSWORD)).status).toBe(422);
    expect((await newBrowser.signIn(ownStore.email, 'battery staple')).status).toBe(303);
  });

  it('sets a password that matches in any Unicode form and with any space, but not trimmed or in another width', async () => {
    const ownStore = await service.newStore();
    const set = ' Cafe\u0301\u00A0au lait １ ';
    const browser = await signIn(ownStore.email);
    await browser.get('/app/account');
    const first = { current_password: PASSWORD, password: set };
    expect((await browser.post('/app/account/password', first)).location).toContain('password');
    const other = new Browser(service);
    for (const wrong of [set.trim(), set.replace('１', '1'), ' Cafe au lait １ ']) {
      expect((await other.signIn(ownStore.email, wrong)).status).toBe(422);
    }
    for (const right of [' Café au lait １ ', ' Cafe\u0301\u3000au\u2003lait １\u00A0']) {
      const { location } = await new Browser(service).signIn(ownStore.email, right);
      expect(location).toBe(`/app/stores/${ownStore.accountId}`);
    }
    const hidden = { current_password: set, password: 'battery\u200Bstaple' };
    await browser.get('/app/account');
    expect((await browser.post('/app/account/password', hidden)).status).toBe(422);
    const second = { current_password: set.normalize('NFC'), password: 'battery staple' };
    await browser.get('/app/account');
    expect((await browser.post('/app/account/password', second)).location).toContain('password');
  });

  it('changes the password so that a concurrent sign-in with the old one gets no session', async () => {
    const ownStore = await service.newStore();
    const browser = await signIn(ownStore.email);
    const thief = new Browser(service);
    await changePasswordDuring(browser, () => thief.signIn(ownStore.email, PASSWORD));
    expect((await thief.get('/app')).status).toBe(303);
  });

  it('ends sessions in other browsers', async () => {
    const ownStore = await service.newStore();
    const [browser, elsewhere] = [await signIn(ownStore.email), await signIn(ownStore.email)];
    expect((await browser.get('/app/account')).text).toContain('Sign out everywhere else');
    await browser.post('/app/account/sessions/end', { current_password: PASSWORD });
    expect((await elsewhere.get('/app')).status).toBe(303);
    expect((await browser.get('/app/account')).text).toContain('not signed in anywhere else');
  });
});

describe('a forgotten password', () => {
  /** Requests a link to reset the password. @returns the path of the link in the mail */
  async function requestLink(browser: Browser, email: string): Promise<string> {
    const sent = await browser.post('/app/password/forgot', { email });
    expect(sent.location).toBe('/app/password/forgot?done=sent');
    const mail = await eventually(
      () => mails.received.findLast(({ to }) => to === email),
      (result) => result !== undefined,
    );
    return /https:\/\/cards\.example(\S+)/.exec(mail?.text ?? '')?.[1] ?? '';
  }

  it('is reset once by a link in an e-mail', async () => {
    const ownStore = await service.newStore();
    const elsewhere = await signIn(ownStore.email);
    const browser = new Browser(service);
    const link = await requestLink(browser, ownStore.email);
    const token = new URLSearchParams(link.split('?')[1]).get('token') ?? '';
    expect(token).toMatch(/^[\w-]{43}$/);
    const { rows } = await service.database.query('select * from password_resets');
    expect(JSON.stringify(rows)).not.toContain(token);
    expect((await browser.get(link)).text).toContain(ownStore.email);
    const short = await browser.post('/app/password/reset', { token, password: 'short' });
    expect([short.status, short.text.includes('at least 10')]).toEqual([422, true]);
    const password = 'batterie cassée';
    const responses = await Promise.all(
      [1, 2].map(() => browser.post('/app/password/reset', { token, password })),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([303, 404]);
    expect((await elsewhere.get('/app')).status).toBe(303);
    expect((await browser.get(link)).text).toContain('no longer works');
    const { location } = await browser.signIn(ownStore.email, password.normalize('NFD'));
    expect(location).toBe(`/app/stores/${ownStore.accountId}`);
  });

  it('sends a mail into which a name cannot inject lines', async () => {
    const ownStore = await service.newStore();
    const browser = await signIn(ownStore.email);
    await browser.get('/app/account');
    const name = 'Grace\n\nYour account is in danger. Call 0900 1234';
    const response = await browser.post('/app/account', { name, email: ownStore.email });
    expect(response.location).toBe('/app/account?done=saved');
    await requestLink(browser, ownStore.email);
    const mail = mails.received.findLast(({ to }) => to === ownStore.email);
    expect(mail?.text).toMatch(
      /^Hello Grace Your account [^\n]*1234,\n\nYou \(or someone else\) asked/,
    );
  });

  it('can be reset by a user whom strangers have locked out', async () => {
    const ownStore = await service.newStore();
    const stranger = new Browser(service);
    await Promise.all(Array.from({ length: 11 }, () => stranger.signIn(ownStore.email, 'guessed')));
    const browser = new Browser(service);
    expect((await browser.signIn(ownStore.email, PASSWORD)).status).toBe(429);
    const token = (await requestLink(browser, ownStore.email)).split('token=')[1] ?? '';
    await browser.post('/app/password/reset', { token, password: 'battery staple' });
    const { location } = await browser.signIn(ownStore.email, 'battery staple');
    expect(location).toBe(`/app/stores/${ownStore.accountId}`);
  });

  it('gets the same response for an unknown e-mail address, and three links an hour at most', async () => {
    const ownStore = await service.newStore();
    const browser = new Browser(service);
    const requestReset = (email: string) => browser.post('/app/password/forgot', { email });
    const responses = await Promise.all([
      requestReset('nobody@nowhere.example'),
      ...Array.from({ length: 5 }, () => requestReset(ownStore.email)),
    ]);
    const seen = responses.map(({ status, location, text }) => [status, location, text]);
    expect(new Set(seen.map((one) => JSON.stringify(one))).size).toBe(1);
    const { rows } = await service.database.query(
      `select count(*)::int as count from password_resets r join users u on u.id = r.user_id
       where u.email = any ($1)`,
      [[ownStore.email, 'nobody@nowhere.example']],
    );
    expect(rows).toEqual([{ count: 3 }]);
  });

  it('is reset, which revokes the API tokens only if the e-mail address was never confirmed', async () => {
    const ownStore = await service.newStore();
    const elsewhere = await signIn(ownStore.email);
    const browser = new Browser(service);
    for (const [isFirst, password] of [
      [true, 'battery staple'],
      [false, 'staple battery'],
    ] as const) {
      const link = await requestLink(browser, ownStore.email);
      const token = link.split('token=')[1] ?? '';
      expect((await browser.get(link)).text.includes('API tokens stop')).toBe(isFirst);
      const { token: tillToken } = await service.execute(
        new CreateToken(cli, ownStore.email, 'till'),
      );
      expect((await browser.post('/app/password/reset', { token, password })).status).toBe(303);
      const client = new Client(service.baseUrl, ownStore.accountId, tillToken);
      expect((await client.get('/api/v1/accounts')).status).toBe(isFirst ? 401 : 200);
      mails.received.length = 0;
    }
    expect((await elsewhere.get('/app')).status).toBe(303);
    const { rows } = await service.database.query<{ type: string; subject: object }>(
      `select type, subject from audit_log where account_id = $1 and type like 'user.a%' order by id`,
      [ownStore.accountId],
    );
    expect(rows).toEqual([
      {
        type: 'user.address_confirmed',
        subject: { user_id: expect.any(Number), by: 'password_link' },
      },
      {
        type: 'user.access_ended',
        subject: { user_id: expect.any(Number), sessions_ended: 1, tokens_revoked: 2 },
      },
    ]);
  });

  it('cannot be reset with an expired link', async () => {
    const ownStore = await service.newStore();
    const browser = new Browser(service);
    const link = await requestLink(browser, ownStore.email);
    await service.database.query('update password_resets set expires_at = now()');
    expect((await browser.get(link)).status).toBe(404);
  });
});

describe('a second factor', () => {
  /** Turns on the second factor. @returns its key, the code that was used, the next code and the recovery codes */
  async function setUp(browser: Browser) {
    await browser.get('/app/account/codes');
    const wrong = await browser.post('/app/account/codes/begin', { password: 'not it' });
    expect(wrong.status).toBe(422);
    await browser.post('/app/account/codes/begin', { password: PASSWORD });
    const page = await browser.get('/app/account/codes');
    const [, key = ''] = /class="secret"[^>]*>([A-Z2-7 ]+)</.exec(page.text) ?? [];
    expect(page.text).toContain('<svg');
    const totp = new TOTP({ secret: Secret.fromBase32(key.replaceAll(' ', '')) });
    const timestamp = Date.now();
    const used = totp.generate({ timestamp });
    const next = totp.generate({ timestamp: timestamp + 30_000 });
    const confirmation = await browser.post('/app/account/codes/confirm', { code: used });
    const codes = [...confirmation.text.matchAll(/<li>([a-z2-7 ]{19})<\/li>/g)].map(
      ([, code = '']) => code,
    );
    expect(codes).toHaveLength(10);
    return { key, used, next, codes };
  }

  it('is required at sign-in, and accepts each code of the app and each recovery code once', async () => {
    const ownStore = await service.newStore();
    const { key, used, next, codes } = await setUp(await signIn(ownStore.email));
    const { rows } = await service.database.query('select secret from second_factors');
    const bytes = Buffer.from(Secret.fromBase32(key.replaceAll(' ', '')).buffer);
    for (const { secret } of rows) expect((secret as Buffer).includes(bytes)).toBe(false);

    const browser = new Browser(service);
    const signInResponse = await browser.signIn(ownStore.email, PASSWORD);
    expect(signInResponse.location).toBe('/app/sign-in/code');
    // The password alone lets nobody in.
    expect((await browser.get('/app')).location).toBe('/app/sign-in');
    const enter = (code: string) => browser.post('/app/sign-in/code', { code });
    // This code was used up by turning the second factor on.
    expect((await enter(used)).status).toBe(422);
    expect((await enter(next)).location).toBe(`/app/stores/${ownStore.accountId}`);
    await browser.get('/app');
    await browser.post('/app/sign-out');

    await browser.signIn(ownStore.email, PASSWORD);
    expect((await enter(next)).status).toBe(422);
    expect((await enter(codes[3] ?? '')).location).toBe(`/app/stores/${ownStore.accountId}`);
    expect((await browser.get('/app/account')).text).toContain('Recovery codes left: 9');
    await browser.post('/app/sign-out');
    await browser.signIn(ownStore.email, PASSWORD);
    expect((await enter((codes[3] ?? '').toUpperCase())).status).toBe(422);
    const tries = await Promise.all(Array.from({ length: 10 }, () => enter('000000')));
    expect(new Set(tries.map(({ status }) => status))).toEqual(new Set([422, 429]));
  });

  it('refuses a code when the password changes during the sign-in', async () => {
    const ownStore = await service.newStore();
    const browser = await signIn(ownStore.email);
    const { codes } = await setUp(browser);
    const thief = new Browser(service);
    await thief.signIn(ownStore.email, PASSWORD);
    const enter = () => thief.post('/app/sign-in/code', { code: codes[0] ?? '' });
    await changePasswordDuring(browser, enter);
    expect((await thief.get('/app')).status).toBe(303);
  });

  it('can be turned off with the password, and is audited at each step', async () => {
    const ownStore = await service.newStore();
    const browser = await signIn(ownStore.email);
    const { codes } = await setUp(browser);
    await browser.get('/app/account/codes');
    const renewed = await browser.post('/app/account/codes/recovery', { password: PASSWORD });
    expect(renewed.text).not.toContain(codes[0]);
    await browser.get('/app/account/codes');
    expect((await browser.post('/app/account/codes/off', { password: 'no' })).status).toBe(422);
    const off = await browser.post('/app/account/codes/off', { password: PASSWORD });
    expect(off.location).toBe('/app/account?done=second_factor_off');
    await signIn(ownStore.email);
    const { rows } = await service.database.query<{ type: string }>(
      `select type from audit_log where account_id = $1 and type like 'user.%' order by id`,
      [ownStore.accountId],
    );
    // The password was wrong twice, and the codes were set up.
    expect(rows.map(({ type }) => type)).toEqual([
      'user.signed_in',
      'user.reauthentication_failed',
      'user.second_factor_started',
      'user.second_factor_added',
      'user.recovery_codes_renewed',
      'user.second_factor_removed',
      'user.signed_in',
    ]);
  });
});

describe('company sign-in', () => {
  /** Signs in with the company and follows its redirect. @returns the response to the callback */
  async function signInWithCompany(browser: Browser, path = '/app/sign-in/company') {
    const response = await browser.get(path);
    expect(response.status).toBe(303);
    const consent = await fetch(response.location ?? '', { redirect: 'manual' });
    const back = new URL(consent.headers.get('location') ?? '');
    expect(back.origin).toBe('https://cards.example');
    return browser.get(back.pathname + back.search);
  }

  /** Creates a store whose owner has confirmed the e-mail address. */
  async function createConfirmedStore() {
    const ownStore = await service.newStore();
    await service.database.query('update users set email_confirmed_at = now() where email = $1', [
      ownStore.email,
    ]);
    return ownStore;
  }

  /** Creates the claims that the company signs. */
  function createClaims(email: string, subject: string = randomUUID()) {
    return { sub: subject, email, email_verified: true };
  }

  it('signs in the user whose verified e-mail address the company sends', async () => {
    const ownStore = await createConfirmedStore();
    company.person = createClaims(ownStore.email.toUpperCase());
    const browser = new Browser(service);
    expect((await browser.get('/app/sign-in')).text).toContain('Sign in with your company');
    const target = `/app/stores/${ownStore.accountId}`;
    const query = `?return_to=${encodeURIComponent(target)}`;
    const back = await signInWithCompany(browser, `/app/sign-in/company${query}`);
    expect(back).toMatchObject({ status: 303, location: target });
    expect((await browser.get(target)).status).toBe(200);
    expect((await ownStore.get('/api/v1/accounts')).status).toBe(200);
    await signIn(ownStore.email);
  });

  it('ends all former access to an account whose e-mail address was never confirmed', async () => {
    const ownStore = await service.newStore();
    const squatter = await signIn(ownStore.email);
    await service.database.query(
      `insert into second_factors (user_id, secret, created_at, confirmed_at)
       select id, '', now(), now() from users where email = $1`,
      [ownStore.email],
    );
    company.person = createClaims(ownStore.email);
    const browser = new Browser(service);
    expect((await signInWithCompany(browser)).location).toBe('/app/account?done=afresh');
    const response = await browser.get('/app/account?done=afresh');
    expect(response.text).toContain('API tokens and all other sessions have ended');
    expect((await squatter.get('/app')).status).toBe(303);
    expect((await squatter.signIn(ownStore.email, PASSWORD)).status).toBe(422);
    expect((await ownStore.get('/api/v1/accounts')).status).toBe(401);
    const { rows } = await service.database.query(
      `select (select count(*)::int from second_factors f where f.user_id = u.id) as factors,
         (select count(*)::int from known_browsers b where b.user_id = u.id) as browsers
       from users u where u.email = $1`,
      [ownStore.email],
    );
    expect(rows).toEqual([{ factors: 0, browsers: 1 }]);
    const { rows: entries } = await service.database.query<{ type: string; subject: object }>(
      `select type, subject from audit_log where account_id = $1 and type <> 'user.sign_in_failed'
       order by id desc limit 4`,
      [ownStore.accountId],
    );
    expect(entries.map(({ type }) => type)).toEqual([
      'user.signed_in',
      'user.access_ended',
      'token.revoked',
      'user.address_confirmed',
    ]);
    expect(entries[1]?.subject).toEqual({
      user_id: expect.any(Number),
      sessions_ended: 1,
      tokens_revoked: 1,
      password_removed: true,
      second_factor_removed: true,
    });
    const { token } = await service.execute(new CreateToken(cli, ownStore.email, 'till'));
    const { location } = await signInWithCompany(new Browser(service));
    expect(location).toBe(`/app/stores/${ownStore.accountId}`);
    const till = new Client(service.baseUrl, ownStore.accountId, token);
    expect((await till.get('/api/v1/accounts')).status).toBe(200);
  });

  it('links an account to one person of the company, whatever their e-mail address becomes, until it is unlinked', async () => {
    const ownStore = await createConfirmedStore();
    const subject = randomUUID();
    company.person = createClaims(ownStore.email, subject);
    expect((await signInWithCompany(new Browser(service))).status).toBe(303);
    company.person = { sub: subject, email: 'married@company.example', email_verified: false };
    const browser = new Browser(service);
    expect((await signInWithCompany(browser)).status).toBe(303);
    expect((await browser.get('/app/account')).text).toContain(ownStore.email);
    company.person = createClaims(ownStore.email);
    const other = new Browser(service);
    const refused = await signInWithCompany(other);
    expect([refused.status, other.cookies.has('__Host-inkpad')]).toEqual([403, false]);
    expect(refused.text).toContain('to unlink the account');
    const result = await service.execute(new UnlinkCompany(cli, ownStore.email));
    expect(result).toMatchObject({ unlinked: 1 });
    expect((await browser.get('/app')).status).toBe(303);
    expect((await signInWithCompany(other)).status).toBe(303);
    company.person = createClaims(ownStore.email, subject);
    expect((await signInWithCompany(new Browser(service))).status).toBe(403);
  });

  it('matches an e-mail address in every spelling of its domain, and no lookalike', async () => {
    const local = randomUUID();
    const email = `${local}@müller.example`;
    await service.execute(new CreateUser(cli, email, 'Grace', PASSWORD));
    company.person = createClaims(`${local.toUpperCase()}@XN--mller-kva.example`);
    expect((await signInWithCompany(new Browser(service))).status).toBe(303);
    await service.execute(new CreateUser(cli, `${local}@gİthub.example`, 'Eve', PASSWORD));
    for (const lookalike of ['github', 'gıthub', 'gi\u0307thub.evil']) {
      company.person = createClaims(`${local}@${lookalike}.example`);
      expect((await signInWithCompany(new Browser(service))).status).toBe(403);
    }
  });

  it.each([
    ['an e-mail address that no user has', { email: 'new@company.example' }, {}],
    ['an invalid e-mail address', { email: 'company' }, {}],
    ['an e-mail address that is not verified', { email_verified: false }, {}],
    ['an e-mail address without email_verified', { email_verified: undefined }, {}],
    ['a token with another nonce', {}, { nonce: 'another' }],
    ['a token for another client', {}, { aud: 'another' }],
    ['a token of another company', {}, { iss: 'https://evil.example' }],
    ['an expired token', {}, { exp: 1 }],
  ])('refuses %s', async (_, person, wrongClaims) => {
    company.person = { ...createClaims(store.email), ...person };
    company.lies = wrongClaims;
    const browser = new Browser(service);
    const back = await signInWithCompany(browser).finally(() => (company.lies = {}));
    expect(back.status).toBe(403);
    expect(browser.cookies.has('__Host-inkpad')).toBe(false);
  });

  /** Begins a sign-in, and agrees at the provider. @returns the callback */
  async function begin(browser: Browser): Promise<string> {
    const response = await browser.get('/app/sign-in/company');
    const consent = await fetch(response.location ?? '', { redirect: 'manual' });
    const { pathname, search } = new URL(consent.headers.get('location') ?? '');
    return pathname + search;
  }

  it.each([
    ['first', [0, 1]],
    ['second', [1, 0]],
  ])('accepts two that are under way in one browser, the %s one first', async (_, order) => {
    company.person = createClaims((await createConfirmedStore()).email);
    const browser = new Browser(service);
    const callbacks = [await begin(browser), await begin(browser)];
    for (const place of order) {
      expect((await browser.get(callbacks[place] ?? '')).status).toBe(303);
    }
  });

  it('goes on with one although another one was refused', async () => {
    company.person = createClaims((await createConfirmedStore()).email);
    const browser = new Browser(service);
    const callback = await begin(browser);
    const other = new URL(await begin(browser), 'https://cards.example');
    const state = other.searchParams.get('state') ?? '';
    const denial = `${other.pathname}?${new URLSearchParams({ error: 'access_denied', state })}`;
    expect((await browser.get(denial)).status).toBe(403);
    expect((await browser.get(callback)).status).toBe(303);
  });

  it('keeps the newest five that are under way', async () => {
    company.person = createClaims((await createConfirmedStore()).email);
    const browser = new Browser(service);
    const callbacks: string[] = [];
    for (let i = 0; i < 7; i++) callbacks.push(await begin(browser));
    const statuses: number[] = [];
    for (const callback of callbacks) statuses.push((await browser.get(callback)).status);
    expect(statuses).toEqual([403, 403, 303, 303, 303, 303, 303]);
  });

  it('accepts a callback once, and only in the browser that started it', async () => {
    company.person = createClaims(store.email);
    const browser = new Browser(service);
    const response = await browser.get('/app/sign-in/company');
    const consent = await fetch(response.location ?? '', { redirect: 'manual' });
    const { pathname, search } = new URL(consent.headers.get('location') ?? '');
    const other = new Browser(service);
    expect((await other.get(pathname + search)).status).toBe(403);
    await other.get('/app/sign-in/company');
    expect((await other.get(pathname + search)).status).toBe(403);
    expect((await browser.get(pathname + search)).status).toBe(303);
    expect((await browser.get(pathname + search)).status).toBe(403);
  });
});
