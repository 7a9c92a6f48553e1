import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Browser } from './support/browser/browser.js';
import { eventually } from './support/jest/eventually.js';
import { MailServer } from './support/emulators/mail-server.js';
import type { Program } from './support/services/program.js';
import { CreateUser } from '#identity/identity.commands.js';
import { cli, startService, type Service } from './support/services/service.js';
import { startDispatcher } from './support/services/webhook-dispatcher.js';

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
    MAX_MESSAGES_PER_ADDRESS_PER_DAY: '4',
  });
  dispatcher = await startDispatcher(service);
});
afterAll(async () => {
  await dispatcher?.kill('SIGTERM');
  await service?.stop();
  await mails?.goAway();
});

async function signedIn(email: string): Promise<Browser> {
  const browser = new Browser(service);
  expect(await browser.signIn(email, PASSWORD)).toMatchObject({ status: 303, location: '/app' });
  return browser;
}

/** Somebody with an account, in front of a browser, and an address that they want. */
async function somebody() {
  const { email } = await service.newStore();
  return { email, browser: await signedIn(email), newEmail: email.replace('@', '+new@') };
}

async function want(browser: Browser, email: string) {
  await browser.get('/app/account');
  return browser.post('/app/account', { name: 'Grace', email, current_password: PASSWORD });
}

const SENT = '/app/account?done=address_link';

const mailTo = (address: string, subject = 'Your e-mail address for Inkpad') =>
  eventually(
    () => mails.received.findLast((mail) => mail.to === address && mail.subject === subject),
    (result) => result !== undefined,
  );

/** @returns the path of the link in the newest mail to the address */
async function linkTo(address: string): Promise<string> {
  const text = (await mailTo(address))?.text ?? '';
  const link = /https:\/\/cards\.example(\/app\/account\/address\?token=[\w-]{43})\s/.exec(text);
  if (!link?.[1]) throw new Error(`no link in ${text}`);
  return link[1];
}

async function open(browser: Browser, link: string) {
  const page = await browser.get(link);
  // A page that says what is wrong has no form.
  if (page.status !== 200) await browser.get('/app/account');
  const token = link.split('token=')[1] ?? '';
  return { page, answer: await browser.post('/app/account/address', { token }) };
}

async function addressesOf(...addresses: string[]): Promise<string[]> {
  const { rows } = await service.database.query<{ email: string }>(
    'select email from users where email = any ($1) order by email',
    [addresses],
  );
  return rows.map(({ email }) => email);
}

describe('a new address', () => {
  it('is taken only with the password', async () => {
    const { browser, newEmail } = await somebody();
    await browser.get('/app/account');
    const refused = await browser.post('/app/account', { name: 'Grace', email: newEmail });
    expect([refused.status, refused.text.includes('is wrong')]).toEqual([422, true]);
    const wrong = await want(browser, 'no address');
    expect([wrong.status, wrong.text.includes('is not an e-mail address')]).toEqual([422, true]);
  });

  it('counts once its link is opened, and the former one is told', async () => {
    const { browser, email, newEmail } = await somebody();
    expect((await want(browser, newEmail)).location).toBe(SENT);
    expect((await browser.get(SENT)).text).toContain('open the link that we have sent to it');
    expect(await addressesOf(email, newEmail)).toEqual([email]);
    const { page, answer } = await open(browser, await linkTo(newEmail));
    expect([page.status, page.text.includes(newEmail)]).toEqual([200, true]);
    expect(answer.location).toBe('/app/account?done=address');
    expect((await browser.get('/app/account?done=address')).text).toContain(newEmail);
    expect(await addressesOf(email, newEmail)).toEqual([newEmail]);
    const { rows } = await service.database.query<{ confirmed: boolean }>(
      'select email_confirmed_at is not null as confirmed from users where email = $1',
      [newEmail],
    );
    expect(rows).toEqual([{ confirmed: true }]);
    const notices = await mailTo(email, 'Your e-mail address for Inkpad has changed');
    expect(notices?.text).toContain(newEmail);
    await signedIn(newEmail);
  });

  it('ends the links for a new password that went to the former one', async () => {
    const { browser, email, newEmail } = await somebody();
    await browser.post('/app/password/forgot', { email });
    const reset = await mailTo(email, 'A new password for Inkpad');
    const [, path = ''] = /cards\.example(\S+)/.exec(reset?.text ?? '') ?? [];
    expect((await browser.get(path)).status).toBe(200);
    await want(browser, newEmail);
    await open(browser, await linkTo(newEmail));
    expect((await browser.get(path)).status).toBe(404);
  });

  it('is refused for another user who opens its link', async () => {
    const thief = await somebody();
    const victim = await somebody();
    await want(thief.browser, thief.newEmail);
    const link = await linkTo(thief.newEmail);
    const { page, answer } = await open(victim.browser, link);
    expect([page.status, answer.status]).toEqual([404, 404]);
    expect(page.text).toContain(`signed in as ${victim.email}`);
    const stranger = await new Browser(service).get(link);
    expect(stranger.location).toBe(`/app/sign-in?return_to=${encodeURIComponent(link)}`);
    expect(await addressesOf(thief.email, thief.newEmail, victim.email)).toEqual(
      [thief.email, victim.email].sort(),
    );
  });

  it('that another user has is refused to that user alone', async () => {
    const { browser, email } = await somebody();
    const { email: takenEmail } = await service.newStore();
    const spelled = takenEmail.replace(/^./, (letter) => letter.toUpperCase());
    expect((await want(browser, spelled)).location).toBe(SENT);
    const mail = await mailTo(spelled);
    expect(mail?.text).toContain('It already has an account');
    expect(mail?.text).not.toContain('token=');
    expect(await addressesOf(email, takenEmail)).toEqual([email, takenEmail].sort());
  });

  it('that looks like that of another user is mailed to as what it is', async () => {
    const { browser, email } = await somebody();
    const victim = email.replace('owner.example', 'github.example');
    await service.execute(new CreateUser(cli, victim, 'Victim', PASSWORD));
    const lookalike = victim.replace('github', 'gİthub');
    expect((await want(browser, lookalike)).location).toBe(SENT);
    const mailbox = victim.replace('github', 'xn--github-qyd');
    // As the mail server of the tests shows it.
    const normalized = victim.replace('github', 'gi\u0307thub');
    expect((await open(browser, await linkTo(normalized))).answer.location).toContain(
      'done=address',
    );
    expect(await addressesOf(victim, lookalike)).toEqual([victim, lookalike].sort());
    const { rows } = await service.database.query(
      'select email from users where email_key = any ($1) order by email_key',
      [[victim, mailbox]],
    );
    expect(rows).toEqual([{ email: victim }, { email: lookalike }]);
    const stranger = new Browser(service);
    expect((await stranger.signIn(victim.replace('i', 'ı'), PASSWORD)).status).toBe(422);
    expect((await stranger.signIn(lookalike, PASSWORD)).status).toBe(303);
  });

  it('that another user has got meanwhile is refused', async () => {
    const [first, second] = [await somebody(), await somebody()];
    await want(first.browser, first.newEmail);
    const link = await linkTo(first.newEmail);
    await service.database.query('update users set email = $2, email_key = $2 where email = $1', [
      second.email,
      first.newEmail,
    ]);
    const { answer } = await open(first.browser, link);
    expect([answer.status, answer.text.includes('Another user signs in with it')]).toEqual([
      409,
      true,
    ]);
    expect(await addressesOf(first.email)).toEqual([first.email]);
  });
});

describe('a link to a new address', () => {
  it('works once, even when it is used twice at the same time', async () => {
    const { browser, newEmail } = await somebody();
    await want(browser, newEmail);
    const link = await linkTo(newEmail);
    await browser.get(link);
    const token = link.split('token=')[1] ?? '';
    const answers = await Promise.all(
      [1, 2].map(() => browser.post('/app/account/address', { token })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 404]);
    expect((await browser.get(link)).status).toBe(404);
  });

  it('works for a day', async () => {
    const { browser, email, newEmail } = await somebody();
    await want(browser, newEmail);
    const link = await linkTo(newEmail);
    const { rows } = await service.database.query(
      `update address_changes n set created_at = n.created_at - interval '1 day', expires_at = n.expires_at - interval '1 day'
       where n.email = $1 returning n.expires_at <= now() as late, n.expires_at - n.created_at = interval '24 hours' as a_day`,
      [newEmail],
    );
    expect(rows).toEqual([{ late: true, a_day: true }]);
    const { page, answer } = await open(browser, link);
    expect([page.status, answer.status]).toEqual([404, 404]);
    expect(await addressesOf(email, newEmail)).toEqual([email]);
  });

  it('ends with the next one, and there are three in an hour', async () => {
    const { browser, email, newEmail } = await somebody();
    await want(browser, `1${newEmail}`);
    const first = await linkTo(`1${newEmail}`);
    await want(browser, `2${newEmail}`);
    expect((await open(browser, first)).answer.status).toBe(404);
    const two = [`3${newEmail}`, `4${newEmail}`];
    const answers = await Promise.all(two.map((address) => want(browser, address)));
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 422]);
    expect(answers.map(({ text }) => text).join()).toContain('Try again in an hour');
    expect(await addressesOf(email)).toEqual([email]);
  });
});

it('refuses a change of address without a mail server', async () => {
  const silent = await startService();
  try {
    const { email } = await silent.newStore();
    const browser = new Browser(silent);
    await browser.signIn(email, PASSWORD);
    const answer = await want(browser, `new.${email}`);
    expect(answer.status).toBe(422);
    expect(answer.text).toContain('this service sends no e-mail. Ask your administrator');
  } finally {
    await silent.stop();
  }
});

describe('mails to an address that somebody else has entered', () => {
  it('are limited in a day, from all stores and users together', async () => {
    const victim = `${randomUUID()}@victim.example`;
    const invite = async (browser: Browser, accountId: number, email: string) => {
      const users = `/app/stores/${accountId}/users`;
      await browser.get(users);
      return browser.post(`${users}/invitations`, { email, role: 'staff' });
    };
    const owners = await Promise.all(
      [1, 2, 3].map(async () => {
        const { email, accountId } = await service.newStore();
        return { accountId, browser: await signedIn(email) };
      }),
    );
    const [first, second, third] = owners;
    if (!first || !second || !third) throw new Error('there are three stores');
    const spellings = [victim, victim.toUpperCase(), victim.replace('@', '+tag@')];
    for (const email of spellings) {
      expect((await invite(first.browser, first.accountId, email)).status).toBe(303);
    }
    expect((await invite(second.browser, second.accountId, victim)).status).toBe(303);
    for (const { browser, accountId } of owners) {
      const refused = await invite(browser, accountId, victim);
      expect(refused.status).toBe(429);
      expect(refused.text).toContain('has received too many e-mails today. Try again in 24 hours');
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(86_000);
    }
    const lookalike = await want(third.browser, victim);
    expect([lookalike.status, lookalike.text]).toEqual([
      422,
      expect.stringContaining('has received too many e-mails today'),
    ]);
    // An invitation that was refused is none, and others go on.
    expect((await third.browser.get(`/app/stores/${third.accountId}/users`)).text).not.toContain(
      victim,
    );
    const other = `${randomUUID()}@other.example`;
    expect((await invite(third.browser, third.accountId, other)).status).toBe(303);
    await eventually(
      () => mails.received.filter(({ to }) => to === other),
      ({ length }) => length === 1,
    );
    const got = mails.received.filter(({ to }) => to.toLowerCase().endsWith('@victim.example'));
    expect(got).toHaveLength(4);
  });
});
