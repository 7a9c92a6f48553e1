import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { InviteUser } from '#identity/invitation.commands.js';
import { CreateUser } from '#identity/identity.commands.js';
import { Browser } from './support/browser/browser.js';
import { eventually } from './support/jest/eventually.js';
import { MailServer } from './support/emulators/mail-server.js';
import type { Program } from './support/services/program.js';
import { cli, startService, type Service } from './support/services/service.js';
import { startDispatcher } from './support/services/webhook-dispatcher.js';

const PASSWORD = 'correct horse';

let service: Service;
let mails: MailServer;
let dispatcher: Program;

beforeAll(async () => {
  mails = await MailServer.start();
  service = await startService({
    SMTP_URL: mails.url,
    MAIL_FROM: 'inkpad@shop.example',
    TRUST_PROXY_HOPS: '1',
  });
  dispatcher = await startDispatcher(service);
});
afterAll(async () => {
  await dispatcher?.kill('SIGTERM');
  await service?.stop();
  await mails?.goAway();
});

async function signedIn(email: string, password = PASSWORD): Promise<Browser> {
  const browser = new Browser(service);
  expect(await browser.signIn(email, password)).toMatchObject({ status: 303, location: '/app' });
  return browser;
}

async function userId(email: string): Promise<number> {
  const { rows } = await service.database.query<{ id: number }>(
    'select id from users where email = $1',
    [email],
  );
  return Number(rows[0]?.id);
}

describe('a password that others try first', () => {
  const cases: [string, string][] = [
    ['one of the most common', 'password123'],
    ['one of them, written differently', 'P@ssw0rd2026'],
    ['the name of the service', 'Inkpad-2026'],
    ["one's own name", 'Grace-Hopper'],
    ["a part of one's own address", 'hopper1906!'],
  ];

  it.each(cases)('is not taken by user:create: %s', async (_what, password) => {
    const email = 'grace.hopper@shop.example';
    const creating = service.execute(new CreateUser(cli, email, 'Grace Hopper', password));
    await expect(creating).rejects.toThrow('is too easy to guess');
  });

  it('is not taken in the console, by a link in a mail, nor with an invitation; nor is the name of the store', async () => {
    const own = await service.newStore();
    await service.database.query(
      `update accounts set state = jsonb_set(state, '{name}', '"Kaffeehaus Prohaska"') where id = $1`,
      [own.accountId],
    );
    const weak = [
      'password123',
      'qwertyuiop',
      'inkpad2026!',
      'Prohaska2026',
      'Kaffeehaus-Prohaska',
    ];

    const browser = await signedIn(own.email);
    for (const password of weak) {
      await browser.get('/app/account');
      const fields = { current_password: PASSWORD, password };
      const answer = await browser.post('/app/account/password', fields);
      expect([password, answer.status]).toEqual([password, 422]);
      expect(answer.text).toContain('too easy to guess');
    }

    const forgetful = new Browser(service);
    await forgetful.get('/app/password/forgot');
    await forgetful.post('/app/password/forgot', { email: own.email });
    const mail = await eventually(
      () => mails.received.findLast(({ to }) => to === own.email),
      (result) => result !== undefined,
    );
    const token = /token=([\w-]+)/.exec(mail?.text ?? '')?.[1] ?? '';
    for (const password of weak) {
      const answer = await forgetful.post('/app/password/reset', { token, password });
      expect([password, answer.status]).toEqual([password, 422]);
    }

    const email = `${randomUUID()}@new.example`;
    const { secret } = await service.execute(
      new InviteUser(
        cli,
        await userId(own.email),
        own.accountId,
        email,
        'staff',
        async () => undefined,
      ),
    );
    const newcomer = new Browser(service);
    await newcomer.get(`/app/invitations/${secret}`);
    for (const password of [...weak, 'Ada-Lovelace']) {
      const fields = { name: 'Ada Lovelace', password };
      const answer = await newcomer.post(`/app/invitations/${secret}`, fields);
      expect([password, answer.status]).toEqual([password, 422]);
    }
    const good = { name: 'Ada Lovelace', password: 'twelve green bottles' };
    expect((await newcomer.post(`/app/invitations/${secret}`, good)).status).toBe(303);
  });
});

describe('wrong codes', () => {
  let userCount = 0;

  /** @returns what makes the codes, and the recovery codes */
  async function setUp(browser: Browser) {
    await browser.get('/app/account/codes');
    await browser.post('/app/account/codes/begin', { password: PASSWORD });
    const page = await browser.get('/app/account/codes');
    const [, key = ''] = /class="secret">([A-Z2-7 ]+)</.exec(page.text) ?? [];
    const totp = new TOTP({ secret: Secret.fromBase32(key.replaceAll(' ', '')) });
    const confirmation = await browser.post('/app/account/codes/confirm', {
      code: totp.generate(),
    });
    const codes = [...confirmation.text.matchAll(/<li>([a-z2-7 ]{19})<\/li>/g)].map(
      ([, code = '']) => code,
    );
    expect(codes).toHaveLength(10);
    return { totp, codes };
  }

  /** Somebody who knows the password. */
  async function thief(
    email: string,
    password = PASSWORD,
  ): Promise<(code: string) => Promise<number>> {
    const browser = new Browser(service);
    userCount++;
    expect((await browser.signIn(email, password)).location).toBe('/app/sign-in/code');
    let attempts = 0;
    return async (code) => {
      // From many addresses, each of which may try thirty times a minute.
      browser.address = `2001:db8:${userCount.toString(16)}:${(attempts++).toString(16)}::1`;
      return (await browser.post('/app/sign-in/code', { code })).status;
    };
  }

  const forgetPauses = () => service.database.query('delete from sign_in_failures');
  const failures = async (email: string) => {
    const { rows } = await service.database.query<{ code_failures: number }>(
      'select code_failures from second_factors where user_id = $1',
      [await userId(email)],
    );
    return rows[0]?.code_failures;
  };
  const mailsTo = (email: string) =>
    mails.received.filter(({ to, text }) => to === email && text.includes('wrong codes'));

  it('pause codes of the app, and no recovery code', async () => {
    const own = await service.newStore();
    const { totp, codes } = await setUp(await signedIn(own.email));
    const enter = await thief(own.email);
    for (let i = 0; i < 10; i++) expect(await enter('000000')).toBe(422);
    const next = totp.generate({ timestamp: Date.now() + 30_000 });
    expect(await enter(next)).toBe(429);
    const browser = new Browser(service);
    await browser.signIn(own.email, PASSWORD);
    expect((await browser.post('/app/sign-in/code', { code: next })).text).toContain(
      'one of your recovery codes',
    );
    expect((await browser.post('/app/sign-in/code', { code: codes[0] ?? '' })).location).toBe(
      '/app',
    );
    expect(await failures(own.email)).toBe(0);
    await eventually(
      () => mailsTo(own.email).length,
      (count) => count === 1,
    );
  });

  it('are counted in all: after fifty, the app is of no use until a recovery code or a new password', async () => {
    const own = await service.newStore();
    const browser = await signedIn(own.email);
    const { totp, codes } = await setUp(browser);
    const enter = await thief(own.email);
    for (let i = 0; i < 50; i++) {
      if (i % 10 === 0) await forgetPauses();
      expect(await enter(String(i).padStart(6, '0'))).toBe(422);
    }
    await forgetPauses();
    const right = () => totp.generate({ timestamp: Date.now() + 30_000 });
    expect(await enter(right())).toBe(422);
    const mailsSent = await eventually(
      () => mailsTo(own.email),
      ({ length }) => length === 2,
    );
    expect(mailsSent.map(({ text }) => /(\d+) wrong codes/.exec(text)?.[1])).toEqual(['10', '50']);
    for (const { text } of mailsSent) {
      expect(text).toContain('https://cards.example/app/password/forgot');
    }
    const { rows } = await service.database.query<{ subject: object }>(
      `select subject from audit_log where account_id = $1 and type = 'user.sign_in_paused'
         and subject ->> 'failures' = '50'`,
      [own.accountId],
    );
    expect(rows).toHaveLength(1);

    expect(await enter(codes[5] ?? '')).toBe(303);
    expect(await failures(own.email)).toBe(0);
    await forgetPauses();
    expect(await (await thief(own.email))(right())).toBe(303);
  });

  it('are reset by a new password that the guesser does not know', async () => {
    const own = await service.newStore();
    const browser = await signedIn(own.email);
    const { totp } = await setUp(browser);
    await service.database.query(
      'update second_factors set code_failures = 70 where user_id = $1',
      [await userId(own.email)],
    );
    await forgetPauses();
    const right = () => totp.generate({ timestamp: Date.now() + 30_000 });
    expect(await (await thief(own.email))(right())).toBe(422);
    await browser.get('/app/account');
    const fields = { current_password: PASSWORD, password: 'battery staple' };
    expect((await browser.post('/app/account/password', fields)).status).toBe(303);
    await forgetPauses();
    expect(await (await thief(own.email, 'battery staple'))(right())).toBe(303);
  });

  it('count when they come at the same time', async () => {
    const own = await service.newStore();
    const { codes } = await setUp(await signedIn(own.email));
    const enter = await thief(own.email);
    await Promise.all(Array.from({ length: 8 }, () => enter('000000')));
    expect(await failures(own.email)).toBe(8);
    const same = await Promise.all([enter(codes[1] ?? ''), enter(codes[1] ?? '')]);
    expect(same.filter((status) => status === 303)).toHaveLength(1);
  });

  it('that look like recovery codes count as well, and tell nothing of the stored ones', async () => {
    const own = await service.newStore();
    const { codes } = await setUp(await signedIn(own.email));
    const enter = await thief(own.email);
    for (let i = 0; i < 12; i++) expect(await enter('abcd efgh ijkl mnop')).toBe(422);
    expect(await failures(own.email)).toBe(12);
    const { rows } = await service.database.query<{ hash: Buffer }>(
      'select hash from recovery_codes where user_id = $1',
      [await userId(own.email)],
    );
    expect(rows.map(({ hash }) => hash.length)).toEqual(Array(10).fill(32));
    expect(await enter(`  ${(codes[2] ?? '').toUpperCase().replaceAll(' ', '-')}`)).toBe(303);
  });
});
