import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { InviteUser } from '#identity/invitation.commands.js';
import { CreateUser } from '#identity/identity.commands.js';
import { Browser } from '../support/browser/browser.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer } from '../support/emulators/mail-server.js';
import type { Program } from '../support/services/program.js';
import { cli, startService, type Service } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

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

async function signIn(email: string, password = PASSWORD): Promise<Browser> {
  const browser = new Browser(service);
  const { status, location } = await browser.signIn(email, password);
  expect([status, location]).toEqual([303, expect.stringMatching(/^[/]app([/]stores[/]\d+)?$/)]);
  return browser;
}

async function getUserId(email: string): Promise<number> {
  const { rows } = await service.database.query<{ id: number }>(
    'select id from users where email = $1',
    [email],
  );
  return Number(rows[0]?.id);
}

describe('a password that is easy to guess', () => {
  const cases: [string, string][] = [
    ['one of the most common', 'password123'],
    ['a common one in another spelling', 'P@ssw0rd2026'],
    ['the name of the service', 'Inkpad-2026'],
    ["the user's name", 'Grace-Hopper'],
    ["a part of the user's e-mail address", 'hopper1906!'],
  ];

  it.each(cases)('is refused by user:create: %s', async (_what, password) => {
    const email = 'grace.hopper@shop.example';
    const creation = service.execute(new CreateUser(cli, email, 'Grace Hopper', password));
    await expect(creation).rejects.toThrow('is too easy to guess');
  });

  it('is refused with 422 on the account page, by a reset link and with an invitation, as is the store’s name', async () => {
    const own = await service.newStore();
    await service.database.query(
      `update accounts set state = jsonb_set(state, '{name}', '"Kaffeehaus Prohaska"') where id = $1`,
      [own.accountId],
    );
    const weakPasswords = [
      'password123',
      'qwertyuiop',
      'inkpad2026!',
      'Prohaska2026',
      'Kaffeehaus-Prohaska',
    ];

    const browser = await signIn(own.email);
    for (const password of weakPasswords) {
      await browser.get('/app/account');
      const fields = { current_password: PASSWORD, password };
      const response = await browser.post('/app/account/password', fields);
      expect([password, response.status]).toEqual([password, 422]);
      expect(response.text).toContain('too easy to guess');
    }

    const forgetful = new Browser(service);
    await forgetful.get('/app/password/forgot');
    await forgetful.post('/app/password/forgot', { email: own.email });
    const mail = await eventually(
      () => mails.received.findLast(({ to }) => to === own.email),
      (result) => result !== undefined,
    );
    const token = /token=([\w-]+)/.exec(mail?.text ?? '')?.[1] ?? '';
    for (const password of weakPasswords) {
      const response = await forgetful.post('/app/password/reset', { token, password });
      expect([password, response.status]).toEqual([password, 422]);
    }

    const email = `${randomUUID()}@new.example`;
    let secret = '';
    const invited = await service.execute(
      new InviteUser(
        cli,
        await getUserId(own.email),
        own.accountId,
        email,
        'staff',
        async (_, invitation) => {
          secret = invitation.secret;
        },
      ),
    );
    expect(invited).toMatchObject({ email, secret: null });
    const newcomer = new Browser(service);
    await newcomer.get(`/app/invitations/${secret}`);
    for (const password of [...weakPasswords, 'Ada-Lovelace']) {
      const fields = { name: 'Ada Lovelace', password };
      const response = await newcomer.post(`/app/invitations/${secret}`, fields);
      expect([password, response.status]).toEqual([password, 422]);
    }
    const good = { name: 'Ada Lovelace', password: 'twelve green bottles' };
    expect((await newcomer.post(`/app/invitations/${secret}`, good)).status).toBe(303);
  });
});

describe('wrong sign-in codes', () => {
  let userCount = 0;

  /** Sets up two-step sign-in. @returns the generator of codes, and the recovery codes */
  async function setUpTwoStepSignIn(browser: Browser) {
    await browser.get('/app/account/codes');
    await browser.post('/app/account/codes/begin', { password: PASSWORD });
    const page = await browser.get('/app/account/codes');
    const [, key = ''] = /class="secret"[^>]*>([A-Z2-7 ]+)</.exec(page.text) ?? [];
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

  /** Signs in with the password alone. @returns a function that enters a code */
  async function enterPassword(
    email: string,
    password = PASSWORD,
  ): Promise<(code: string) => Promise<number>> {
    const browser = new Browser(service);
    userCount++;
    expect((await browser.signIn(email, password)).location).toBe('/app/sign-in/code');
    let attempts = 0;
    return async (code) => {
      // Each attempt has its own IP address: one address may try thirty times a minute.
      browser.address = `2001:db8:${userCount.toString(16)}:${(attempts++).toString(16)}::1`;
      return (await browser.post('/app/sign-in/code', { code })).status;
    };
  }

  const endPauses = () => service.database.query('delete from counts');
  const countFailures = async (email: string) => {
    const { rows } = await service.database.query<{ code_failures: number }>(
      'select code_failures from second_factors where user_id = $1',
      [await getUserId(email)],
    );
    return rows[0]?.code_failures;
  };
  const findMails = (email: string) =>
    mails.received.filter(({ to, text }) => to === email && text.includes('wrong codes'));

  it('block authenticator codes with 429 after ten, but not recovery codes, and are reported by e-mail', async () => {
    const own = await service.newStore();
    const { totp, codes } = await setUpTwoStepSignIn(await signIn(own.email));
    const enterCode = await enterPassword(own.email);
    for (let i = 0; i < 10; i++) expect(await enterCode('000000')).toBe(422);
    const next = totp.generate({ timestamp: Date.now() + 30_000 });
    expect(await enterCode(next)).toBe(429);
    const browser = new Browser(service);
    await browser.signIn(own.email, PASSWORD);
    expect((await browser.post('/app/sign-in/code', { code: next })).text).toContain(
      'one of your recovery codes',
    );
    expect((await browser.post('/app/sign-in/code', { code: codes[0] ?? '' })).location).toBe(
      `/app/stores/${own.accountId}`,
    );
    expect(await countFailures(own.email)).toBe(0);
    await eventually(
      () => findMails(own.email).length,
      (count) => count === 1,
    );
  });

  it('block authenticator codes for good after fifty, until a recovery code is used', async () => {
    const own = await service.newStore();
    const browser = await signIn(own.email);
    const { totp, codes } = await setUpTwoStepSignIn(browser);
    const enterCode = await enterPassword(own.email);
    const wrongCodes = Array.from({ length: 60 }, (_, i) => String(i).padStart(6, '0'))
      .filter((token) => totp.validate({ token, window: 20 }) === null)
      .slice(0, 50);
    for (const [i, code] of wrongCodes.entries()) {
      if (i % 10 === 0) await endPauses();
      expect(await enterCode(code)).toBe(422);
    }
    await endPauses();
    const generateNextCode = () => totp.generate({ timestamp: Date.now() + 30_000 });
    expect(await enterCode(generateNextCode())).toBe(422);
    const mailsSent = await eventually(
      () => findMails(own.email),
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

    expect(await enterCode(codes[5] ?? '')).toBe(303);
    expect(await countFailures(own.email)).toBe(0);
    await endPauses();
    expect(await (await enterPassword(own.email))(generateNextCode())).toBe(303);
  });

  it('no longer block authenticator codes once the user has changed the password', async () => {
    const own = await service.newStore();
    const browser = await signIn(own.email);
    const { totp } = await setUpTwoStepSignIn(browser);
    await service.database.query(
      'update second_factors set code_failures = 70 where user_id = $1',
      [await getUserId(own.email)],
    );
    await endPauses();
    const generateNextCode = () => totp.generate({ timestamp: Date.now() + 30_000 });
    expect(await (await enterPassword(own.email))(generateNextCode())).toBe(422);
    await browser.get('/app/account');
    const fields = { current_password: PASSWORD, password: 'battery staple' };
    expect((await browser.post('/app/account/password', fields)).status).toBe(303);
    await endPauses();
    expect(await (await enterPassword(own.email, 'battery staple'))(generateNextCode())).toBe(303);
  });

  it('are all counted when sent concurrently, and a recovery code sent twice signs in once', async () => {
    const own = await service.newStore();
    const { codes } = await setUpTwoStepSignIn(await signIn(own.email));
    const enterCode = await enterPassword(own.email);
    await Promise.all(Array.from({ length: 8 }, () => enterCode('000000')));
    expect(await countFailures(own.email)).toBe(8);
    const countSessions = async () => {
      const { rows } = await service.database.query<{ count: number }>(
        'select count(*)::int as count from sessions where user_id = $1 and not awaits_code',
        [await getUserId(own.email)],
      );
      return rows[0]?.count ?? 0;
    };
    const sessionCount = await countSessions();
    // The second one gets 422, or a redirect back to the sign-in page when the first one has ended the pending sign-in.
    const statuses = await Promise.all([enterCode(codes[1] ?? ''), enterCode(codes[1] ?? '')]);
    expect(statuses).toContain(303);
    expect(await countSessions()).toBe(sessionCount + 1);
  });

  it('are counted when they look like recovery codes, which are stored as hashes and accepted in capitals', async () => {
    const own = await service.newStore();
    const { codes } = await setUpTwoStepSignIn(await signIn(own.email));
    const enterCode = await enterPassword(own.email);
    for (let i = 0; i < 12; i++) expect(await enterCode('abcd efgh ijkl mnop')).toBe(422);
    expect(await countFailures(own.email)).toBe(12);
    const { rows } = await service.database.query<{ hash: Buffer }>(
      'select hash from recovery_codes where user_id = $1',
      [await getUserId(own.email)],
    );
    expect(rows.map(({ hash }) => hash.length)).toEqual(Array(10).fill(32));
    expect(await enterCode(`  ${(codes[2] ?? '').toUpperCase().replaceAll(' ', '-')}`)).toBe(303);
  });
});
