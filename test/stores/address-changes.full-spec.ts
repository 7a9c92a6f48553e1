import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Browser } from '../support/browser/browser.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer } from '../support/emulators/mail-server.js';
import type { Program } from '../support/services/program.js';
import { CreateUser } from '#identity/identity.commands.js';
import { cli, startService, type Service } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const PASSWORD = 'correct horse';

let service: Service;
let mails: MailServer;
let dispatcher: Program;

beforeAll(async () => {
  mails = await MailServer.start();
  service = await startService({
    TRUST_PROXY_HOPS: '1',
    SMTP_URL: mails.url,
    MAIL_FROM: 'inkpad@shop.example',
  });
  dispatcher = await startDispatcher(service);
});
afterAll(async () => {
  await dispatcher?.kill('SIGTERM');
  await service?.stop();
  await mails?.goAway();
});

async function signIn(email: string): Promise<Browser> {
  const browser = new Browser(service);
  const { status, location } = await browser.signIn(email, PASSWORD);
  expect([status, location]).toEqual([303, expect.stringMatching(/^[/]app([/]stores[/]\d+)?$/)]);
  return browser;
}

/** Creates a user, signs them in, and names an address that they could change to. */
async function signInNewUser() {
  const { email } = await service.newStore();
  return { email, browser: await signIn(email), newEmail: email.replace('@', '+new@') };
}

async function requestChange(browser: Browser, email: string) {
  await browser.get('/app/account');
  return browser.post('/app/account', { name: 'Grace', email, current_password: PASSWORD });
}

const SENT = '/app/account?done=address_link';

const waitForMail = (address: string, subject = 'Your e-mail address for Inkpad') =>
  eventually(
    () => mails.received.findLast((mail) => mail.to === address && mail.subject === subject),
    (result) => result !== undefined,
  );

/** Waits for the newest mail to the address, and returns the path of its link. */
async function waitForLink(address: string): Promise<string> {
  const text = (await waitForMail(address))?.text ?? '';
  const link = /https:\/\/cards\.example(\/app\/account\/address\?token=[\w-]{43})\s/.exec(text);
  if (!link?.[1]) throw new Error(`no link in ${text}`);
  return link[1];
}

async function openLink(browser: Browser, link: string) {
  const page = await browser.get(link);
  // A page that says what is wrong has no form.
  if (page.status !== 200) await browser.get('/app/account');
  const token = link.split('token=')[1] ?? '';
  return { page, confirmation: await browser.post('/app/account/address', { token }) };
}

async function findExisting(...addresses: string[]): Promise<string[]> {
  const { rows } = await service.database.query<{ email: string }>(
    'select email from users where email = any ($1) order by email',
    [addresses],
  );
  return rows.map(({ email }) => email);
}

describe('a new e-mail address', () => {
  it('is refused with 422 without the current password, or when it is not an e-mail address', async () => {
    const { browser, newEmail } = await signInNewUser();
    await browser.get('/app/account');
    const rejection = await browser.post('/app/account', { name: 'Grace', email: newEmail });
    expect([rejection.status, rejection.text.includes('is wrong')]).toEqual([422, true]);
    const wrong = await requestChange(browser, 'no address');
    expect([wrong.status, wrong.text.includes('a complete e-mail address')]).toEqual([422, true]);
  });

  it('takes effect once its link is opened, and is announced to the former address', async () => {
    const { browser, email, newEmail } = await signInNewUser();
    expect((await requestChange(browser, newEmail)).location).toBe(SENT);
    expect((await browser.get(SENT)).text).toContain('We are sending a link to your new address.');
    expect(await findExisting(email, newEmail)).toEqual([email]);
    const { page, confirmation } = await openLink(browser, await waitForLink(newEmail));
    expect([page.status, page.text.includes(newEmail)]).toEqual([200, true]);
    expect(confirmation.location).toBe('/app/account?done=address');
    expect((await browser.get('/app/account?done=address')).text).toContain(newEmail);
    expect(await findExisting(email, newEmail)).toEqual([newEmail]);
    const { rows } = await service.database.query<{ confirmed: boolean }>(
      'select email_confirmed_at is not null as confirmed from users where email = $1',
      [newEmail],
    );
    expect(rows).toEqual([{ confirmed: true }]);
    const notices = await waitForMail(email, 'Your e-mail address for Inkpad has changed');
    expect(notices?.text).toContain(newEmail);
    await signIn(newEmail);
  });

  it('invalidates the password reset links that went to the former address', async () => {
    const { browser, email, newEmail } = await signInNewUser();
    await browser.post('/app/password/forgot', { email });
    const reset = await waitForMail(email, 'A new password for Inkpad');
    const [, path = ''] = /cards\.example(\S+)/.exec(reset?.text ?? '') ?? [];
    expect((await browser.get(path)).status).toBe(200);
    await requestChange(browser, newEmail);
    await openLink(browser, await waitForLink(newEmail));
    expect((await browser.get(path)).status).toBe(404);
  });

  it('cannot be confirmed by another user, who gets 404, or without signing in', async () => {
    const thief = await signInNewUser();
    const victim = await signInNewUser();
    await requestChange(thief.browser, thief.newEmail);
    const link = await waitForLink(thief.newEmail);
    const { page, confirmation } = await openLink(victim.browser, link);
    expect([page.status, confirmation.status]).toEqual([404, 404]);
    expect(page.text).toContain(`signed in as ${victim.email}`);
    const stranger = await new Browser(service).get(link);
    expect(stranger.location).toBe(`/app/sign-in?return_to=${encodeURIComponent(link)}`);
    expect(await findExisting(thief.email, thief.newEmail, victim.email)).toEqual(
      [thief.email, victim.email].sort(),
    );
  });

  it('that belongs to another user gets the usual response, but a mail without a link', async () => {
    const { browser, email } = await signInNewUser();
    const { email: takenEmail } = await service.newStore();
    const spelling = takenEmail.replace(/^./, (letter) => letter.toUpperCase());
    expect((await requestChange(browser, spelling)).location).toBe(SENT);
    const mail = await waitForMail(spelling);
    expect(mail?.text).toContain('It already has an account');
    expect(mail?.text).not.toContain('token=');
    expect(await findExisting(email, takenEmail)).toEqual([email, takenEmail].sort());
  });

  it('that looks like another user’s is a different address with its own mailbox', async () => {
    const { browser, email } = await signInNewUser();
    const victim = email.replace('owner.example', 'github.example');
    await service.execute(new CreateUser(cli, victim, 'Victim', PASSWORD));
    const lookalike = victim.replace('github', 'gİthub');
    expect((await requestChange(browser, lookalike)).location).toBe(SENT);
    const mailbox = victim.replace('github', 'xn--github-qyd');
    // The spelling in which the mail server receives it.
    const receivedAddress = victim.replace('github', 'gi\u0307thub');
    expect(
      (await openLink(browser, await waitForLink(receivedAddress))).confirmation.location,
    ).toContain('done=address');
    expect(await findExisting(victim, lookalike)).toEqual([victim, lookalike].sort());
    const { rows } = await service.database.query(
      'select email from users where email_key = any ($1) order by email_key',
      [[victim, mailbox]],
    );
    expect(rows).toEqual([{ email: victim }, { email: lookalike }]);
    const stranger = new Browser(service);
    expect((await stranger.signIn(victim.replace('i', 'ı'), PASSWORD)).status).toBe(422);
    expect((await stranger.signIn(lookalike, PASSWORD)).status).toBe(303);
  });

  it('is refused with 409 when another user has taken it before its link is opened', async () => {
    const [first, second] = [await signInNewUser(), await signInNewUser()];
    await requestChange(first.browser, first.newEmail);
    const link = await waitForLink(first.newEmail);
    await service.database.query('update users set email = $2, email_key = $2 where email = $1', [
      second.email,
      first.newEmail,
    ]);
    const { confirmation } = await openLink(first.browser, link);
    expect([
      confirmation.status,
      confirmation.text.includes('Another user signs in with it'),
    ]).toEqual([409, true]);
    expect(await findExisting(first.email)).toEqual([first.email]);
  });
});

describe('the confirmation link for a new e-mail address', () => {
  it('works once, even when it is used twice concurrently', async () => {
    const { browser, newEmail } = await signInNewUser();
    await requestChange(browser, newEmail);
    const link = await waitForLink(newEmail);
    await browser.get(link);
    const token = link.split('token=')[1] ?? '';
    const responses = await Promise.all(
      [1, 2].map(() => browser.post('/app/account/address', { token })),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([303, 404]);
    expect((await browser.get(link)).status).toBe(404);
  });

  it('expires after 24 hours', async () => {
    const { browser, email, newEmail } = await signInNewUser();
    await requestChange(browser, newEmail);
    const link = await waitForLink(newEmail);
    const { rows } = await service.database.query(
      `update address_changes n set created_at = n.created_at - interval '1 day', expires_at = n.expires_at - interval '1 day'
       where n.email = $1 returning n.expires_at <= now() as late, n.expires_at - n.created_at = interval '24 hours' as a_day`,
      [newEmail],
    );
    expect(rows).toEqual([{ late: true, a_day: true }]);
    const { page, confirmation } = await openLink(browser, link);
    expect([page.status, confirmation.status]).toEqual([404, 404]);
    expect(await findExisting(email, newEmail)).toEqual([email]);
  });

  it('is invalidated by the next one, and the fourth within an hour is refused with 422', async () => {
    const { browser, email, newEmail } = await signInNewUser();
    await requestChange(browser, `1${newEmail}`);
    const first = await waitForLink(`1${newEmail}`);
    await requestChange(browser, `2${newEmail}`);
    expect((await openLink(browser, first)).confirmation.status).toBe(404);
    // Each change renews the token of its session, so in one browser the second might be signed out.
    const otherBrowser = await signIn(email);
    const responses = await Promise.all([
      requestChange(browser, `3${newEmail}`),
      requestChange(otherBrowser, `4${newEmail}`),
    ]);
    expect(responses.map(({ status }) => status).sort()).toEqual([303, 422]);
    expect(responses.map(({ text }) => text).join()).toContain('try again in an hour');
    expect(await findExisting(email)).toEqual([email]);
  });
});

it('a change of e-mail address is refused with 422 on a service without a mail server', async () => {
  const serviceWithoutMail = await startService();
  try {
    const { email } = await serviceWithoutMail.newStore();
    const browser = new Browser(serviceWithoutMail);
    await browser.signIn(email, PASSWORD);
    const response = await requestChange(browser, `new.${email}`);
    expect(response.status).toBe(422);
    expect(response.text).toContain(
      'this service sends no e-mail. Ask the person who runs this service.',
    );
  } finally {
    await serviceWithoutMail.stop();
  }
});

describe('mails to one address', () => {
  it('are limited per day across stores, users and spellings of the address', async () => {
    const victim = `${randomUUID()}@victim.example`;
    const invite = async (browser: Browser, accountId: number, email: string) => {
      const users = `/app/stores/${accountId}/users`;
      await browser.get(users);
      return browser.post(`${users}/invitations`, {
        email,
        role: 'staff',
        current_password: PASSWORD,
      });
    };
    const owners = await Promise.all(
      [1, 2, 3].map(async () => {
        const { email, accountId } = await service.newStore();
        return { accountId, browser: await signIn(email) };
      }),
    );
    const [first, second, third] = owners;
    if (!first || !second || !third) throw new Error('there are three stores');
    const tagged = Array.from({ length: 7 }, (_, i) => victim.replace('@', `+tag${i}@`));
    const spellings = [victim, victim.toUpperCase(), ...tagged];
    for (const email of spellings) {
      expect((await invite(first.browser, first.accountId, email)).status).toBe(303);
    }
    expect((await invite(second.browser, second.accountId, victim)).status).toBe(303);
    for (const { browser, accountId } of owners) {
      const rejection = await invite(browser, accountId, victim);
      expect(rejection.status).toBe(429);
      expect(rejection.text).toContain(
        'has received too many e-mails today. Please try again in 24 hours',
      );
      expect(Number(rejection.headers.get('retry-after'))).toBeGreaterThan(86_000);
    }
    const lookalike = await requestChange(third.browser, victim);
    expect([lookalike.status, lookalike.text]).toEqual([
      422,
      expect.stringContaining('has received too many e-mails today'),
    ]);
    // A refused invitation is not stored, and invitations to other addresses still work.
    expect((await third.browser.get(`/app/stores/${third.accountId}/users`)).text).not.toContain(
      victim,
    );
    const otherEmail = `${randomUUID()}@other.example`;
    expect((await invite(third.browser, third.accountId, otherEmail)).status).toBe(303);
    await eventually(
      () => mails.received.filter(({ to }) => to === otherEmail),
      ({ length }) => length === 1,
    );
    const received = mails.received.filter(({ to }) =>
      to.toLowerCase().endsWith('@victim.example'),
    );
    expect(received).toHaveLength(10);
  });
});
