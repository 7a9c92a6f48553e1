import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { AddressUpkeep } from '#identity/address-upkeep.service.js';
import { CreateUser, RemoveUser } from '#identity/identity.commands.js';
import { AddMember, RemoveMember } from '#identity/member.commands.js';
import { UNNAMED_STORE } from '#loyalty/accounts/account.js';
import { isAllowed, ROLES, type Operation, type Role } from '#identity/roles.js';
import { CreateToken } from '#identity/token.commands.js';
import { TokenUses } from '#identity/token-uses.service.js';
import { UNRESTRICTED } from '#identity/token.js';
import { Config } from '#configuration/config.js';
import { runJob } from '#platform/database/job-runner.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import { createTimeFormats } from '#web/pages/local-time.js';
import { NAVIGATION } from '#web/pages/navigation.js';
import { Browser } from '../support/browser/browser.js';
import { eventually } from '../support/jest/eventually.js';
import { createMailHandler } from '../support/services/message-dispatcher.js';
import {
  cli,
  Client,
  startService,
  type LocalService,
  type Service,
} from '../support/services/service.js';

const PASSWORD = 'correct horse';
const { minute: formatMinute } = createTimeFormats('en', 'UTC');

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;
let page: string;

beforeAll(async () => {
  service = await startService({ TRUST_PROXY_HOPS: '1', PAGE_RATE_LIMIT_PER_MINUTE: '100000' });
  store = await service.newStore();
  page = `/app/stores/${store.accountId}`;
  owner = await signIn(store.email);
});
afterAll(() => service?.stop());

async function signIn(email: string, at: Service = service): Promise<Browser> {
  const browser = new Browser(at);
  expect(await browser.signIn(email, PASSWORD)).toMatchObject({ status: 303 });
  return browser;
}

async function addMember(role: Role): Promise<{ email: string; id: number; browser: Browser }> {
  const email = `${randomUUID()}@member.example`;
  const { userId } = await service.execute(new CreateUser(cli, email, role, PASSWORD));
  await service.execute(new AddMember(cli, store.accountId, email, role));
  return { email, id: userId, browser: await signIn(email) };
}

const findSecret = (text: string) => /\/app\/invitations\/([\w-]{43})/.exec(text)?.[1] ?? '';

/** Invites somebody as an owner. @returns the path of the invitation link */
async function invite(email: string, role: Role): Promise<string> {
  await owner.get(`${page}/users`);
  const invitation = await owner.post(`${page}/users/invitations`, {
    email,
    role,
    current_password: PASSWORD,
  });
  expect(invitation.status).toBe(200);
  return `/app/invitations/${findSecret(invitation.text)}`;
}

async function readLastAudit(): Promise<{ type: string; actor: { type: string; id: number } }> {
  const { rows } = await service.database.query<{
    type: string;
    actor: { type: string; id: number };
  }>('select type, actor from audit_log where account_id = $1 order by id desc limit 1', [
    store.accountId,
  ]);
  if (!rows[0]) throw new Error('the audit log is empty');
  return rows[0];
}

describe('the console’s API tokens', () => {
  it('are shown once, listed with their last use, and revoked', async () => {
    await owner.get(`${page}/tokens`);
    const creation = await owner.post(`${page}/tokens`, {
      name: '<till> 2',
      lifetime: '30',
      current_password: PASSWORD,
    });
    const token = /ink_[\w-]{59}/.exec(creation.text)?.[0] ?? '';
    expect([creation.status, creation.text.includes('&lt;till&gt; 2')]).toEqual([200, true]);
    const client = new Client(service.baseUrl, store.accountId, token);
    const readLastUse = async () => {
      const { text } = await owner.get(`${page}/tokens`);
      return /&lt;till&gt; 2<[^]*?<td data-label="Last used">([^<]*)/.exec(text)?.[1];
    };
    expect(await readLastUse()).toBe('Never');
    // Shown to the minute, one of which may end meanwhile.
    const before = formatMinute(new Date());
    expect((await client.get(client.store)).status).toBe(200);
    await service.app.get(TokenUses, { strict: false }).write();
    expect([before, formatMinute(new Date())]).toContain(await readLastUse());
    const list = await owner.get(`${page}/tokens`);
    expect(list.text).not.toContain(token);
    const id = /tokens\/(\d+)\/revoke/.exec(list.text)?.[1];
    expect((await owner.post(`${page}/tokens/${id}/revoke`)).status).toBe(303);
    expect((await readLastAudit()).type).toBe('token.revoked');
    await eventually(
      async () => (await client.get(client.store)).status,
      (status) => status === 401,
    );
  });

  it('are created with a lower role, for one store and read-only, and listed with that', async () => {
    await owner.get(`${page}/tokens`);
    const creation = await owner.post(`${page}/tokens`, {
      name: 'restricted till',
      lifetime: '',
      role: 'staff',
      reach: 'one',
      read_only: 'yes',
      current_password: PASSWORD,
    });
    expect(creation.text).toContain('Access: At most staff, read only, only this store.');
    const token = /ink_[\w-]{59}/.exec(creation.text)?.[0] ?? '';
    const client = new Client(service.baseUrl, store.accountId, token);
    expect((await client.get<object>('/api/v1/token')).body).toMatchObject({
      role: 'staff',
      account_ids: [store.accountId],
      read_only: true,
    });
    const list = await owner.get(`${page}/tokens`);
    expect(list.text).toContain('<td data-label="Access">At most staff, read only');
  });

  it('are refused with 422 for a role or a reach that the form does not have', async () => {
    await owner.get(`${page}/tokens`);
    for (const wrong of [{ role: 'admin' }, { reach: '7' }]) {
      const rejection = await owner.post(`${page}/tokens`, {
        name: 'till',
        lifetime: '',
        ...wrong,
      });
      expect([wrong, rejection.status, rejection.text.includes('ink_')]).toEqual([
        wrong,
        422,
        false,
      ]);
    }
  });

  it('for other stores only are shown to their user alone, who can revoke them', async () => {
    const { browser: manager, email } = await addMember('manager');
    const otherStore = await service.newStore();
    await service.execute(new AddMember(cli, otherStore.accountId, email, 'owner'));
    const { tokenId } = await service.execute(
      new CreateToken(cli, email, 'elsewhere', null, {
        ...UNRESTRICTED,
        accountIds: [otherStore.accountId],
      }),
    );
    expect((await owner.get(`${page}/tokens`)).text).not.toContain('elsewhere');
    expect((await owner.post(`${page}/tokens/${tokenId}/revoke`)).status).toBe(422);
    const own = await manager.get(`${page}/tokens`);
    expect(own.text).toContain('Only 1 other store');
    expect((await manager.post(`${page}/tokens/${tokenId}/revoke`)).status).toBe(303);
  });

  it('for this store only can be revoked by its owners, whatever other stores their user has', async () => {
    const { email } = await addMember('manager');
    const otherStore = await service.newStore();
    await service.execute(new AddMember(cli, otherStore.accountId, email, 'staff'));
    const { tokenId } = await service.execute(
      new CreateToken(cli, email, 'only here', null, {
        ...UNRESTRICTED,
        accountIds: [store.accountId],
      }),
    );
    expect((await owner.get(`${page}/tokens`)).text).toContain('only here');
    expect((await owner.post(`${page}/tokens/${tokenId}/revoke`)).status).toBe(303);
  });

  it('are refused with 422 without a visible name', async () => {
    await owner.get(`${page}/tokens`);
    for (const name of [' ', '\u200B', '\u3164 \u2800']) {
      const rejection = await owner.post(`${page}/tokens`, {
        name,
        lifetime: '',
        current_password: PASSWORD,
      });
      expect([rejection.status, rejection.text.includes('between 1 and 255')]).toEqual([422, true]);
    }
  });

  it('of other users are visible to owners, who cannot revoke those of members of another store', async () => {
    const { browser: manager, email } = await addMember('manager');
    await manager.get(`${page}/tokens`);
    await manager.post(`${page}/tokens`, {
      name: 'of the manager',
      lifetime: '',
      current_password: PASSWORD,
    });
    const list = await owner.get(`${page}/tokens`);
    expect(list.text).toContain('of the manager');
    const [, id] = /tokens\/(\d+)\/revoke/.exec(list.text) ?? [];
    const otherStore = await service.newStore();
    const elsewhere = new AddMember(cli, otherStore.accountId, email, 'staff');
    await service.execute(elsewhere);
    const rejection = await owner.post(`${page}/tokens/${id}/revoke`);
    expect([rejection.status, rejection.text.includes('other stores')]).toEqual([422, true]);
    // A manager sees and revokes no more than their own.
    const own = await manager.get(`${page}/tokens`);
    expect(own.text).not.toContain('&lt;till');
    const { rows } = await service.database.query<{ id: number }>(
      `select t.id from api_tokens t join users u on u.id = t.user_id where u.email = $1`,
      [store.email],
    );
    expect((await manager.post(`${page}/tokens/${rows[0]?.id}/revoke`)).status).toBe(422);
    expect((await store.get(store.store)).status).toBe(200);
  });
});

describe('the users of a store', () => {
  it.each([
    ['en', 'Please enter a complete e-mail address, such as name@shop.example.'],
    ['de', 'Bitte eine vollständige E-Mail-Adresse eingeben, zum Beispiel name@laden.example.'],
  ])(
    'are not invited by an incomplete address, which the page says in %s',
    async (language, sentence) => {
      await owner.get(`${page}/users`);
      const form = { email: 'name@shop', role: 'staff', current_password: PASSWORD };
      const headers = { 'accept-language': language };
      const { status, text } = await owner.post(`${page}/users/invitations`, form, headers);
      expect(status).toBe(422);
      expect(text).toContain(sentence);
      expect(text).not.toContain('must be a whole address');
    },
  );

  it('join by an invitation link that works once, and choose a password', async () => {
    const email = `${randomUUID()}@new.example`;
    const link = await invite(`\u202A${email}\u202C\u200B`, 'staff');
    const newcomer = new Browser(service);
    expect((await newcomer.get(link)).text).toContain('Choose a password');
    const weak = await newcomer.post(link, { name: 'Ada', password: 'short' });
    expect([weak.status, weak.text.includes('at least 10')]).toEqual([422, true]);
    const nameless = { name: '\u3164', password: 'twelve gre\u0301en bottles' };
    const rejection = await newcomer.post(link, nameless);
    expect([rejection.status, rejection.text.includes('1 and 255')]).toEqual([422, true]);
    const acceptance = await newcomer.post(link, { ...nameless, name: '\u200BAda' });
    expect([acceptance.status, acceptance.location]).toEqual([303, `/counter/${store.accountId}`]);
    expect((await newcomer.get(page)).status).toBe(200);
    expect((await newcomer.get(`${page}/tokens`)).status).toBe(403);
    const { rows } = await service.database.query<{ id: number }>(
      'select id from users where email = $1',
      [email],
    );
    const audit = await service.database.query<{ actor: object }>(
      `select actor from audit_log where account_id = $1 and type = 'member.added'
       order by id desc limit 1`,
      [store.accountId],
    );
    expect(audit.rows[0]?.actor).toEqual({ type: 'user', id: rows[0]?.id });
    expect((await new Browser(service).get(link)).status).toBe(404);
    const again = await new Browser(service).signIn(email, 'twelve gréen bottles');
    expect(again.location).toBe('/counter');
  });

  it('who have an account already accept an invitation by signing in with the invited address', async () => {
    const otherStore = await service.newStore();
    const link = await invite(otherStore.email.toUpperCase(), 'manager');
    const nobody = new Browser(service);
    expect((await nobody.get(link)).text).toContain('Sign in to accept');
    const acceptance = await nobody.post(link, { name: 'Eve', password: 'twelve green bottles' });
    expect(acceptance.status).toBe(422);
    const stranger = await signIn((await service.newStore()).email);
    await stranger.get(link);
    expect((await stranger.post(link)).status).toBe(422);
    const invitee = await signIn(otherStore.email);
    await invitee.get(link);
    expect((await invitee.post(link)).location).toBe(page);
    expect((await invitee.get(`${page}/settings`)).status).toBe(200);
    expect((await invitee.get(`${page}/users`)).status).toBe(403);
    const users = await owner.get(`${page}/users`);
    expect(users.text).toContain(otherStore.email);
    // Nobody can confirm an address here, as this service sends no e-mail.
    expect(users.text).not.toContain('Not confirmed');
    const { rows } = await service.database.query(
      `select subject from audit_log where account_id = $1 and type in ('user.invited', 'invitation.withdrawn')`,
      [store.accountId],
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain('@');
  });

  it('get 404 for an invitation that was withdrawn, or whose sender has left', async () => {
    const first = await invite(`${randomUUID()}@new.example`, 'owner');
    const list = await owner.get(`${page}/users`);
    const id = /invitations\/(\d+)\/withdraw/.exec(list.text)?.[1];
    expect((await owner.post(`${page}/users/invitations/${id}/withdraw`)).status).toBe(303);
    expect((await new Browser(service).get(first)).status).toBe(404);

    const leaver = await addMember('owner');
    await leaver.browser.get(`${page}/users`);
    const invitation = await leaver.browser.post(`${page}/users/invitations`, {
      email: `${randomUUID()}@new.example`,
      role: 'owner',
      current_password: PASSWORD,
    });
    const link = `/app/invitations/${findSecret(invitation.text)}`;
    expect((await new Browser(service).get(link)).status).toBe(200);
    await owner.get(`${page}/users`);
    expect((await owner.post(`${page}/users/${leaver.id}/remove`)).status).toBe(303);
    const late = await new Browser(service).post(link, {
      name: 'Eve',
      password: 'twelve green bottles',
    });
    expect(late.status).toBe(404);
  });

  it('can change role or leave, except the only owner', async () => {
    const alone = await service.newStore();
    const browser = await signIn(alone.email);
    const usersPath = `/app/stores/${alone.accountId}/users`;
    await browser.get(usersPath);
    const { rows } = await service.database.query<{ id: number }>(
      'select id from users where email = $1',
      [alone.email],
    );
    const self = `${usersPath}/${rows[0]?.id}`;
    for (const [action, fields] of [
      ['remove', {}],
      ['role', { role: 'staff', sure: 'yes' }],
    ] as const) {
      const rejection = await browser.post(`${self}/${action}`, fields);
      expect([rejection.status, rejection.text.includes('only owner')]).toEqual([422, true]);
    }
    const { browser: manager, id } = await addMember('manager');
    expect((await manager.get(`${page}/settings`)).status).toBe(200);
    await owner.get(`${page}/users`);
    expect((await owner.post(`${page}/users/${id}/role`, { role: 'staff' })).status).toBe(303);
    expect((await readLastAudit()).type).toBe('member.role_changed');
    expect((await manager.get(`${page}/settings`)).status).toBe(403);
    expect((await owner.post(`${page}/users/${id}/remove`)).status).toBe(303);
    expect((await manager.get(page)).status).toBe(404);
  });

  it('confirm before they remove a user, leave, or stop being an owner', async () => {
    const second = await addMember('owner');
    const getText = async (path: string) =>
      (await second.browser.get(`${page}/users/${path}`)).text;
    expect(await getText(`${second.id}/remove`)).toContain('Leave this store?');
    const { id } = await addMember('staff');
    expect(await getText(`${id}/remove`)).toContain('Remove this user?');
    const role = `${page}/users/${second.id}/role`;
    await second.browser.get(`${page}/users`);
    const { status, text } = await second.browser.post(role, { role: 'staff' });
    expect([status, text.includes('Stop being an owner')]).toEqual([200, true]);
    expect((await second.browser.get(`${page}/users`)).status).toBe(200);
    expect((await second.browser.post(role, { role: 'staff', sure: 'yes' })).status).toBe(303);
    expect((await second.browser.get(`${page}/users`)).status).toBe(403);
    // The users, invitations and tokens of another store are not found.
    const otherStore = await service.newStore();
    const otherPage = `/app/stores/${otherStore.accountId}`;
    const boss = await signIn(otherStore.email);
    for (const path of [`users/${id}/remove`, 'users/invitations/1/withdraw', 'tokens/1/revoke']) {
      expect((await boss.get(`${otherPage}/${path}`)).status).toBe(404);
    }
  });

  it('keep one owner when the last two remove each other concurrently', async () => {
    const second = await addMember('owner');
    const { rows } = await service.database.query<{ id: number }>(
      'select id from users where email = $1',
      [store.email],
    );
    await Promise.all([owner.get(`${page}/users`), second.browser.get(`${page}/users`)]);
    const responses = await Promise.all([
      owner.post(`${page}/users/${second.id}/remove`),
      second.browser.post(`${page}/users/${rows[0]?.id}/remove`),
    ]);
    expect(responses.filter(({ status }) => status === 303)).toHaveLength(1);
    const { rows: owners } = await service.database.query<{ user_id: number }>(
      `select user_id from memberships where account_id = $1 and role = 'owner'`,
      [store.accountId],
    );
    expect(owners).toHaveLength(1);
    if (owners[0]?.user_id === rows[0]?.id) return;
    await service.execute(new AddMember(cli, store.accountId, store.email, 'owner'));
  });
});

describe('the pages and forms of a store', () => {
  it.each(ROLES)('are allowed or refused as the table of roles says: %s', async (role) => {
    const { browser } = await addMember(role);
    const describeOutcome = async (operation: Operation, request: Promise<{ status: number }>) => {
      const { status } = await request;
      return [operation, status === 403 ? 'refused' : 'taken'];
    };
    for (const { path, operation } of NAVIGATION) {
      const expected = [operation, isAllowed(role, operation) ? 'taken' : 'refused'];
      expect(await describeOutcome(operation, browser.get(`${page}/${path}`))).toEqual(expected);
    }
    const forms: [string, Operation][] = [
      ['settings', 'store.settings'],
      ['tokens', 'tokens.create'],
      ['tokens/999999/revoke', 'tokens.revoke'],
      ['users/invitations', 'users.invite'],
      ['users/invitations/999999/withdraw', 'users.invite'],
      ['users/999999/role', 'users.change_role'],
      ['users/999999/remove', 'users.remove'],
      ['locations/999999/pin', 'locations.pin'],
      ['locations/999999/unpin', 'locations.pin'],
      [`messages/links/${randomUUID()}/send`, 'outbox.send'],
      ['transfers/imports/999999/columns', 'imports.choose_columns'],
      ['transfers/imports/999999/start', 'startImport'],
      ['transfers/imports/999999/discard', 'discardImport'],
      ['transfers/imports/999999/undo', 'undoImport'],
    ];
    for (const [path, operation] of forms) {
      await browser.get(page);
      const expected = [operation, isAllowed(role, operation) ? 'taken' : 'refused'];
      expect(await describeOutcome(operation, browser.post(`${page}/${path}`))).toEqual(expected);
    }
    // Without a CSRF token, any role is refused.
    const bare = await browser.post(`${page}/settings`, { _csrf: '' });
    expect(bare.status).toBe(403);
  });
});

describe('the console', () => {
  it('saves the settings of a store, and refuses invalid ones with 422', async () => {
    await owner.get(`${page}/settings`);
    const wrong = await owner.post(`${page}/settings`, {
      name: '',
      time_zone: 'Mars/Olympus',
      locale: 'de',
      country: 'XX',
    });
    expect(wrong.status).toBe(422);
    expect(wrong.text).toContain('Please choose a time zone.');
    expect(wrong.text).toContain('Please choose a country.');
    const blank = { name: '\u3164\u200B', time_zone: 'Europe/Berlin', locale: 'de' };
    expect((await owner.post(`${page}/settings`, blank)).status).toBe(422);
    const place = { time_zone: 'Europe/Berlin', locale: 'de', country: 'DE' };
    const right = { name: 'Bakery', store_name: '', ...place };
    const form = { ...right, name: '\u200BBakery\uFEFF', store_name: '\u3164', locale: 'de\u200B' };
    expect((await owner.post(`${page}/settings`, form)).status).toBe(303);
    const { body } = await store.get(store.store);
    expect(body).toMatchObject({ ...right, store_name: null });
    const { text } = await owner.get(`${page}/settings?done=saved`);
    expect(text).toContain('The settings of the store are saved.');
    expect(text).toContain('<option value="DE" selected>Germany');
    expect((await owner.post(`${page}/settings`, { ...right, country: '' })).status).toBe(303);
    expect((await store.get(store.store)).body).toMatchObject({ country: null });
  });

  it('saves how customers are addressed', async () => {
    const settings = { name: 'Bakery', time_zone: 'Europe/Berlin', locale: 'de' };
    await owner.get(`${page}/settings`);
    const wrong = await owner.post(`${page}/settings`, { ...settings, address_form: 'thou' });
    expect(wrong.status).toBe(422);
    expect(wrong.text).toContain('Please choose one of the options.');
    for (const [address_form, saved] of [
      ['formal', 'formal'],
      ['', null],
    ] as const) {
      const response = await owner.post(`${page}/settings`, { ...settings, address_form });
      expect(response.status).toBe(303);
      expect((await store.get(store.store)).body).toMatchObject({ address_form: saved });
      const { text } = await owner.get(`${page}/settings`);
      expect(text).toContain(`<option value="${address_form}" selected>`);
    }
  });

  it('offers a locale that has no name, and refuses an invalid one with 422', async () => {
    const odd = await service.newStore();
    const locale = 'de-DE-u-co-phonebk';
    const set = await odd.send('PATCH', odd.store, { account: { locale } });
    expect(set.status).toBe(200);
    const browser = await signIn(odd.email);
    for (const path of [`/app/stores/${odd.accountId}/settings`, '/app/new-store']) {
      const response = await browser.get(path);
      // A new store begins with the language of the browser.
      const option = path === '/app/new-store' ? ' value="en" selected>' : ` selected>${locale}`;
      expect([response.status, response.text]).toEqual([
        200,
        expect.stringContaining(`<option${option}`),
      ]);
      const fields = { name: 'Odd', time_zone: 'UTC', locale: 'no language' };
      const wrong = await browser.post(path, fields);
      expect([wrong.status, wrong.text]).toEqual([
        422,
        expect.stringContaining('Please choose a language.'),
      ]);
    }
  });

  it('saves the consent text and the privacy URL of the signup form, and refuses an http URL with 422', async () => {
    await owner.get(`${page}/settings`);
    const form = {
      name: 'Bakery',
      store_name: '',
      time_zone: 'Europe/Berlin',
      locale: 'de',
      marketing_consent_text: 'The <bakery> may write to me.',
      privacy_url: 'http://bakery.example/privacy',
    };
    const wrong = await owner.post(`${page}/settings`, form);
    expect([wrong.status, wrong.text.includes('begins with https://')]).toEqual([422, true]);
    expect(wrong.text).toContain('The &lt;bakery&gt; may write to me.');
    const right = { ...form, privacy_url: 'https://bakery.example/privacy' };
    expect((await owner.post(`${page}/settings`, right)).status).toBe(303);
    const { text } = await owner.get(`${page}/settings`);
    expect(text).toContain('The &lt;bakery&gt; may write to me.');
    expect(text).toContain('value="https://bakery.example/privacy"');
  });

  it('saves the further countries that a store sends SMS to, and refuses an unknown code with 422', async () => {
    await owner.get(`${page}/settings`);
    const form = { name: 'Bakery', store_name: '', time_zone: 'Europe/Berlin', locale: 'de' };
    const wrong = await owner.post(`${page}/settings`, { ...form, sms_countries: 'AT <XY>' });
    expect(wrong.status).toBe(422);
    expect(wrong.text).toContain('is not a country.');
    expect(wrong.text).toContain('value="AT &lt;XY&gt;"');
    expect(wrong.text).toContain('This store has no country');
    const right = { ...form, country: 'DE', sms_countries: 'ch;AT ch' };
    expect((await owner.post(`${page}/settings`, right)).status).toBe(303);
    const savedText = (await owner.get(`${page}/settings`)).text;
    expect(savedText).toContain('value="AT, CH"');
    expect(savedText).toContain('go to numbers in Germany');
    expect((await owner.post(`${page}/settings`, form)).status).toBe(303);
    expect((await owner.get(`${page}/settings`)).text).not.toContain('value="AT, CH"');
  });

  it('asks for the name of a store that nobody has named yet, before its first poster', async () => {
    const unnamed = await service.newStore();
    await unnamed.send('PATCH', unnamed.store, { account: { name: UNNAMED_STORE } });
    const browser = await signIn(unnamed.email);
    const base = `/app/stores/${unnamed.accountId}`;
    expect((await browser.get(base)).text).toContain(`href="${base}/settings/name"`);
    const poster = await browser.get(`${base}/posters/new`);
    expect(poster.location).toBe(`${base}/settings/name?next=poster`);
    const { text } = await browser.get(`${base}/settings/name?next=poster`, {
      'accept-language': 'de-AT, en;q=0.5',
    });
    expect(text).toContain('Geschäft benennen');
    expect(text).toContain('<option value="de" selected>');
    expect(text).toContain('<option value="AT" selected>');
    expect(text).not.toContain(`value="${UNNAMED_STORE}"`);
    const save = (name: string) =>
      browser.post(`${base}/settings/name?next=poster`, {
        name,
        locale: 'de',
        country: 'AT',
        time_zone: 'Europe/Vienna',
      });
    expect((await save('')).status).toBe(422);
    expect((await save('Bäckerei')).location).toBe(`${base}/posters/new`);
    expect((await unnamed.get(unnamed.store)).body).toMatchObject({
      name: 'Bäckerei',
      locale: 'de',
      country: 'AT',
      time_zone: 'Europe/Vienna',
    });
    expect((await browser.get(base)).text).not.toContain('settings/name');
    expect((await browser.get(`${base}/posters/new`)).status).toBe(200);
    const afterwards = await browser.get(`${base}/settings/name`);
    expect(afterwards.location).toBe(`${base}/settings`);
  });

  it('lets owners create another store, and refuses managers with 403', async () => {
    await owner.get('/app/new-store');
    const fields = { name: 'Second', store_name: '', time_zone: 'UTC', locale: 'fr' };
    const creation = await owner.post('/app/new-store', fields);
    expect(creation.status).toBe(303);
    expect((await owner.get(`${creation.location}/users`)).status).toBe(200);
    const { rows } = await service.database.query<{ type: string }>(
      'select type from audit_log where account_id = $1',
      [creation.location?.split('/').at(-1)],
    );
    expect(rows).toEqual([{ type: 'member.added' }]);
    const { browser } = await addMember('manager');
    expect((await browser.get('/app/new-store')).status).toBe(403);
    expect((await browser.post('/app/new-store', fields)).status).toBe(403);
  });

  it('shows the old and new value and the IP address of a change in the audit log', async () => {
    const { id: userId } = await addMember('staff');
    await owner.get(`${page}/users`);
    await owner.post(`${page}/users/${userId}/role`, {
      role: 'manager',
      sure: 'yes',
      current_password: PASSWORD,
    });
    const { text } = await owner.get(`${page}/audit`);
    expect(text).toContain('Role: Staff → Manager');
    expect(text).toMatch(/from 127\.0\.0\.1|from 2001:db8:/);
  });

  it('shows changes of users and tokens in the audit log, page by page', async () => {
    const text = async (path: string) => (await owner.get(path)).text;
    const first = await text(`${page}/audit`);
    expect(first).toContain('API token revoked');
    const older = /audit\?after=(\d+)/.exec(first)?.[1];
    const pages = first + (older ? await text(`${page}/audit?after=${older}`) : '');
    expect(pages).toContain('Joined the store');
    expect(pages).toMatch(/Invited[^@]*@new\.example/);
    expect((await owner.get(`${page}/audit?after=x`)).status).toBe(200);
  });
});

describe('with a mail server', () => {
  it('an invitation link is mailed to the invited user only, and encrypted in the outbox', async () => {
    const second = await startService(
      // Only the dispatcher connects to it.
      { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'Inkpad <cards@shop.example>' },
      { ...service.database, close: async () => {} },
    );
    try {
      const browser = await signIn(store.email, second);
      await browser.get(`${page}/users`);
      const email = `${randomUUID()}@new.example`;
      const response = await browser.post(`${page}/users/invitations`, {
        email,
        role: 'staff',
        current_password: PASSWORD,
      });
      expect([response.status, response.location]).toEqual([303, `${page}/users?done=invited`]);
      const { rows } = await service.database.query<{ dump: string; sealed: Buffer }>(
        `select row_to_json(m)::text as dump, sealed from outgoing_messages m where kind = 'mail'`,
      );
      const outbox = second.app.get(MailOutbox, { strict: false });
      const pool = second.app.get(Pool, { strict: false });
      const session = second.app.get(ProcessSession, { strict: false });
      const config = second.app.get(Config, { strict: false });
      const handler = createMailHandler(pool, session, outbox, config);
      const mails = (await handler.claim(rows.length)).map((queued) => outbox.open(queued));
      const [invitationMail] = mails.filter((mail) => mail?.to === email);
      const secret = findSecret(invitationMail?.text ?? '');
      const storedText = rows.map(({ dump, sealed }) => dump + sealed.toString('latin1')).join();
      for (const clear of [email, secret, 'Einladung', '/app/']) {
        expect(invitationMail?.subject + (invitationMail?.text ?? '') + email).toContain(clear);
        expect(storedText).not.toContain(clear);
      }
      const link = `/app/invitations/${secret}`;
      const newcomer = new Browser(second);
      expect((await newcomer.get(link)).status).toBe(200);
      const person = { name: 'Ada', password: 'twelve green bottles' };
      // Staff begin at the counter.
      expect((await newcomer.post(link, person)).location).toBe(`/counter/${store.accountId}`);
      // The holder of the link reads the mails to the address.
      const { text: users } = await browser.get(`${page}/users`);
      const tag = ' <span class="tag">Not confirmed</span>';
      expect([users.includes(email + tag), users.includes(store.email + tag)]).toEqual([
        false,
        true,
      ]);
      // A mail that was moved to another row cannot be decrypted: retried for a day and by the whole schedule, then dropped.
      await service.database.query('delete from outgoing_messages where sealed <> $1', [
        rows.at(-1)?.sealed,
      ]);
      await service.database.query(
        `update outgoing_messages set uuid = $1, due_at = now() where kind = 'mail'`,
        [randomUUID()],
      );
      const attempt = async () => {
        const [message] = await handler.claim(1);
        if (!message) throw new Error('nothing was claimed');
        expect(outbox.open(message)).toBeNull();
        const log = new Logger('mail');
        await runJob(handler, message, log, AbortSignal.timeout(1_000));
        const { rows: outboxRows } = await service.database.query<{ later: boolean }>(
          `select due_at > now() as later from outgoing_messages where kind = 'mail'`,
        );
        return outboxRows;
      };
      expect(await attempt()).toEqual([{ later: true }]);
      await service.database.query(
        `update outgoing_messages set due_at = now(), give_up_at = now(), attempts = 20 where kind = 'mail'`,
      );
      expect(await attempt()).toEqual([]);
    } finally {
      await second.stop();
    }
  });
});

describe('an e-mail address', () => {
  const upkeep = () =>
    new AddressUpkeep(
      service.app.get(Pool, { strict: false }),
      service.app.get(Config, { strict: false }),
    );
  const deleteOld = () => upkeep().deleteOld(new AbortController().signal);

  async function readUsers(...ids: number[]) {
    const { rows } = await service.database.query<{ email: string | null }>(
      `select email, email_key is null and email is null as forgotten, removed_at is not null as removed
       from users where id = any ($1) order by id`,
      [ids],
    );
    return rows;
  }

  it('is deleted 30 days after the user was removed, with the known browsers, while the name stays', async () => {
    const [early, late] = [await addMember('staff'), await addMember('staff')];
    for (const { email } of [early, late]) await service.execute(new RemoveUser(cli, email));
    await service.database.query(
      `update users set removed_at = removed_at - interval '31 days' where id = $1`,
      [early.id],
    );
    const both = [early.id, late.id];
    await service.database.query(
      `insert into known_browsers (user_id, sha256, seen_at)
       select id, sha256(id::text::bytea), now() from unnest($1::bigint[]) id`,
      [both],
    );
    await deleteOld();
    expect(await readUsers(...both)).toEqual([
      { email: null, forgotten: true, removed: true },
      { email: late.email, forgotten: false, removed: true },
    ]);
    const { rows: browsers } = await service.database.query<{ user_id: string }>(
      'select distinct user_id from known_browsers where user_id = any ($1)',
      [both],
    );
    expect(browsers.map(({ user_id: id }) => Number(id))).toEqual([late.id]);
    const { rows } = await service.database.query(
      `select u.name, l.subject from audit_log l, users u
       where l.type = 'user.address_deleted' and u.id = (l.subject ->> 'user_id')::bigint`,
    );
    expect(rows).toEqual([{ name: 'staff', subject: { user_id: early.id } }]);
  });

  it('is deleted with the user 30 days after they left their last store, unless they joined one again', async () => {
    const [gone, back, recent] = [
      await addMember('staff'),
      await addMember('staff'),
      await addMember('staff'),
    ];
    for (const { email } of [gone, back, recent]) {
      await service.execute(new RemoveMember(cli, store.accountId, email));
    }
    await service.database.query(
      `update users set left_stores_at = left_stores_at - interval '31 days' where id = any ($1)`,
      [[gone.id, back.id]],
    );
    await service.execute(new AddMember(cli, store.accountId, back.email, 'staff'));
    await deleteOld();
    expect(await readUsers(gone.id, back.id, recent.id)).toEqual([
      { email: null, forgotten: true, removed: true },
      { email: back.email, forgotten: false, removed: false },
      { email: recent.email, forgotten: false, removed: false },
    ]);
    expect((await gone.browser.get('/app')).status).toBe(303);
    expect((await recent.browser.get('/app')).status).toBe(200);
    const { userId } = await service.execute(new CreateUser(cli, gone.email, 'Next', PASSWORD));
    expect(userId).not.toBe(gone.id);
  });

  it('is deleted with the user after 30 days without any store', async () => {
    const create = () =>
      service.execute(new CreateUser(cli, `${randomUUID()}@shop.example`, 'Nobody', PASSWORD));
    const [old, fresh] = [await create(), await create()];
    await service.database.query(
      `update users set left_stores_at = left_stores_at - interval '31 days' where id = $1`,
      [old.userId],
    );
    await deleteOld();
    expect(await readUsers(old.userId, fresh.userId)).toMatchObject([
      { email: null, removed: true },
      { removed: false },
    ]);
  });

  it('is kept for 30 days after the user left the last of several stores, even concurrently', async () => {
    const user = await addMember('staff');
    const others = [await service.newStore(), await service.newStore(), await service.newStore()];
    const stores = [store, ...others];
    for (const { accountId } of others) {
      await service.execute(new AddMember(cli, accountId, user.email, 'staff'));
    }
    await service.database.query(
      `update users set left_stores_at = now() - interval '31 days' where id = $1`,
      [user.id],
    );
    await Promise.all(
      stores.map(({ accountId }) => service.execute(new RemoveMember(cli, accountId, user.email))),
    );
    await deleteOld();
    expect(await readUsers(user.id)).toMatchObject([{ removed: false }]);
    await service.database.query(
      `update users set left_stores_at = left_stores_at - interval '31 days' where id = $1`,
      [user.id],
    );
    await deleteOld();
    expect(await readUsers(user.id)).toMatchObject([{ removed: true }]);
  });

  it('is deleted from expired address changes, and from invitations that expired a month ago', async () => {
    const email = `${randomUUID()}@new.example`;
    const { rows: before } = await service.database.query<{ count: number }>(
      'select count(*)::int as count from invitations where email <> $1',
      [email],
    );
    const link = await invite(email, 'staff');
    await service.database.query(
      `update invitations set expires_at = expires_at - interval '38 days' where email = $1`,
      [email],
    );
    await service.database.query(
      `insert into address_changes (sha256, user_id, email, created_at, expires_at)
       select sha256(email::bytea), id, 'new@shop.example', now() - interval '25 hours', now() - interval '1 hour'
       from users where email = $1`,
      [store.email],
    );
    await deleteOld();
    const { rows } = await service.database.query<{ count: number }>(
      `select (select count(*)::int from invitations) as invitations,
         (select count(*)::int from invitations where email = $1) as old,
         (select count(*)::int from address_changes) as links`,
      [email],
    );
    expect(rows).toEqual([{ invitations: before[0]?.count, old: 0, links: 0 }]);
    expect((await new Browser(service).get(link)).status).toBe(404);
  });
});
