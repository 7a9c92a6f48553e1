import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { Browser } from '../support/browser/browser.js';
import { CompanyProvider } from '../support/emulators/oidc-provider.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests which forms of the console ask for the password again, of whom, and for how long they do not (ADR-0140). */

const PASSWORD = 'correct horse';

let company: CompanyProvider;
let service: LocalService;
let store: Client & { email: string };
let page: string;
let memberId: number;

beforeAll(async () => {
  company = await CompanyProvider.start();
  service = await startService({ TRUST_PROXY_HOPS: '1', ...company.environment });
  store = await service.newStore();
  page = `/app/stores/${store.accountId}`;
  const email = `${randomUUID()}@member.example`;
  ({ userId: memberId } = await service.execute(new CreateUser(cli, email, 'Mira', PASSWORD)));
  await service.execute(new AddMember(cli, store.accountId, email, 'staff'));
});
afterAll(async () => {
  await service?.stop();
  await company?.stop();
});

async function signIn(email = store.email): Promise<Browser> {
  const browser = new Browser(service);
  expect((await browser.signIn(email, PASSWORD)).status).toBe(303);
  return browser;
}

async function signInWithCompany(email = store.email): Promise<Browser> {
  company.person = { sub: email, email, email_verified: true };
  await service.database.query('update users set email_confirmed_at = now() where email = $1', [
    email,
  ]);
  const browser = new Browser(service);
  const { location } = await browser.get('/app/sign-in/company');
  const consent = await fetch(location ?? '', { redirect: 'manual' });
  const back = new URL(consent.headers.get('location') ?? '');
  expect((await browser.get(back.pathname + back.search)).status).toBe(303);
  return browser;
}

/** Adds a webhook without the page. @returns its path */
async function createWebhook(): Promise<string> {
  const { body } = await store.post<{ id: number }>(`${store.store}/webhook_subscriptions`, {
    target_url: 'https://shop.example/hooks',
    events: ['*'],
  });
  return `${page}/webhooks/${body.id}`;
}

type Step = {
  /** The page with the form. */
  formPage: () => Promise<string> | string;
  action: (formPage: string) => string;
  fields?: Record<string, string>;
  /** Counts what the step creates or changes. */
  count: string;
  keepsCookie?: true;
};

const newWebhook = { target_url: 'https://shop.example/new', scope: 'all' };
const steps: Record<string, Step> = {
  'an API token': {
    formPage: () => `${page}/tokens`,
    action: (formPage) => formPage,
    fields: { name: 'till', lifetime: '' },
    count: 'select count(*)::int from api_tokens',
    keepsCookie: true,
  },
  'an invitation of an owner': {
    formPage: () => `${page}/users`,
    action: (formPage) => `${formPage}/invitations`,
    fields: { email: 'new@owner.example', role: 'owner' },
    count: 'select count(*)::int from invitations',
    keepsCookie: true,
  },
  'an invitation of staff': {
    formPage: () => `${page}/users`,
    action: (formPage) => `${formPage}/invitations`,
    fields: { email: 'new@staff.example', role: 'staff' },
    count: 'select count(*)::int from invitations',
    keepsCookie: true,
  },
  'a higher role': {
    formPage: () => `${page}/users`,
    action: (formPage) => `${formPage}/${memberId}/role`,
    fields: { role: 'owner', sure: 'yes' },
    count: `select count(*)::int from memberships where role = 'owner'`,
    keepsCookie: true,
  },
  'a new webhook': {
    formPage: () => `${page}/webhooks/new`,
    action: () => `${page}/webhooks`,
    fields: { ...newWebhook, form_key: randomUUID() },
    count: 'select count(*)::int from webhook_subscriptions',
    keepsCookie: true,
  },
  'another address of a webhook': {
    formPage: async () => `${await createWebhook()}/edit`,
    action: (formPage) => formPage,
    fields: newWebhook,
    count: `select count(*)::int from webhook_subscriptions where target_url like '%/new'`,
    keepsCookie: true,
  },
  'a new secret of a webhook': {
    formPage: async () => `${await createWebhook()}/rotate`,
    action: (formPage) => formPage,
    fields: { form_key: randomUUID(), grace_seconds: '0', signature: 'hmac' },
    count: `select count(*)::int from audit_log where type = 'webhook_subscription.secret_rotated'`,
    keepsCookie: true,
  },
  'the end of one other session': {
    formPage: async () => {
      await signIn();
      const { rows } = await service.database.query<{ id: number }>(
        `select max(s.id)::int as id from sessions s join users u on u.id = s.user_id where u.email = $1`,
        [store.email],
      );
      return `/app/account/sessions/${rows[0]?.id}/end`;
    },
    action: (formPage) => formPage,
    count: `select -count(*)::int as count from sessions`,
  },
  'the end of all other sessions': {
    formPage: async () => {
      await signIn();
      return '/app/account/sessions/end';
    },
    action: (formPage) => formPage,
    count: `select -count(*)::int as count from sessions`,
  },
};

async function count(text: string): Promise<number> {
  const { rows } = await service.database.query<{ count: number }>(text);
  return rows[0]?.count ?? 0;
}

describe('the console asks for the password again', () => {
  it.each(Object.entries(steps))('before %s', async (_, step) => {
    const browser = await signIn();
    const formPage = await step.formPage();
    const action = step.action(formPage);
    const before = await count(step.count);
    expect((await browser.get(formPage)).status).toBe(200);
    for (const wrong of [{}, { current_password: '' }, { current_password: 'not it' }]) {
      const { status, text } = await browser.post(action, { ...step.fields, ...wrong });
      expect([status, text.includes('The password is wrong. Please try again.')]).toEqual([
        422,
        true,
      ]);
      expect(text).toContain('name="current_password"');
    }
    expect(await count(step.count)).toBe(before);
    const cookie = browser.cookies.get('__Host-inkpad');
    const { status } = await browser.post(action, { ...step.fields, current_password: PASSWORD });
    expect([200, 303]).toContain(status);
    expect(await count(step.count)).toBeGreaterThan(before);
    expect(browser.cookies.get('__Host-inkpad') === cookie).toBe(step.keepsCookie === true);
    expect((await browser.get('/app/account')).status).toBe(200);
    await service.database.query(`update memberships set role = 'staff' where user_id = $1`, [
      memberId,
    ]);
  });

  it('before more rights on a page of its own, and not before fewer', async () => {
    const browser = await signIn();
    await browser.get(`${page}/users`);
    const role = `${page}/users/${memberId}/role`;
    const question = await browser.post(role, { role: 'manager' });
    expect([question.status, question.text.includes('Give more rights?')]).toEqual([200, true]);
    expect(question.text).toContain('name="current_password"');
    const raised = await browser.post(role, {
      role: 'manager',
      sure: 'yes',
      current_password: PASSWORD,
    });
    expect(raised.status).toBe(303);
    await browser.get(`${page}/users`);
    expect((await browser.post(role, { role: 'staff' })).status).toBe(303);
  });

  it('ten times at most in a quarter of an hour', async () => {
    const { email, accountId } = await service.newStore();
    const browser = await signIn(email);
    const tokens = `/app/stores/${accountId}/tokens`;
    await browser.get(tokens);
    const create = (password: string) =>
      browser.post(tokens, { name: 'till', lifetime: '', current_password: password });
    for (let i = 0; i < 10; i += 1) await create('not it');
    const { status, text } = await create(PASSWORD);
    expect([status, text.includes('Too many wrong attempts')]).toEqual([422, true]);
  });
});

describe('a user whom a company has signed in', () => {
  const form = { name: 'till', lifetime: '' };

  it('is asked for no password for ten minutes', async () => {
    const browser = await signInWithCompany();
    const formPage = await browser.get(`${page}/tokens`);
    expect(formPage.text).not.toContain('name="current_password"');
    const { text } = await browser.post(`${page}/tokens`, form);
    expect(text).toContain('ink_');
    expect((await browser.get('/app/account')).text).not.toContain('name="current_password"');
  });

  it('is asked after that, and told to sign in with the company again', async () => {
    const browser = await signInWithCompany();
    await service.database.query(`update sessions set created_at = now() - interval '11 minutes'`);
    const formPage = await browser.get(`${page}/tokens`);
    expect(formPage.text).toContain('name="current_password"');
    const { status, text } = await browser.post(`${page}/tokens`, form);
    expect([status, text.includes('ink_')]).toEqual([422, false]);
    expect(text).toContain('Sign in with your company again');
    const again = await browser.post(`${page}/tokens`, { ...form, current_password: PASSWORD });
    expect(again.text).toContain('ink_');
  });
});
