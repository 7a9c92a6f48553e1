import { expect, it } from '@jest/globals';
import { readConfig } from '#configuration/config.js';
import { checkMail, describeAuthentication, type Dns } from './mail-checks.js';

const config = (settings: NodeJS.ProcessEnv) =>
  readConfig({
    DATABASE_URL: 'postgres://inkpad@127.0.0.1/inkpad',
    MASTER_KEY: `${'A'.repeat(43)}=`,
    ...settings,
  });
const MAIL = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'Inkpad <inkpad@cards.shop.example>' };

const fail = (code: string) => Promise.reject(Object.assign(new Error(code), { code }));

/** Responds with these records; a text instead of them is the code of an error. */
function createDns(texts: Record<string, string[] | string>, mx: string[] | string = []): Dns {
  return {
    resolveTxt: (name: string) => {
      const records = texts[name] ?? 'ENOTFOUND';
      return typeof records === 'string'
        ? fail(records)
        : Promise.resolve(records.map((text) => [text.slice(0, 5), text.slice(5)]));
    },
    resolveMx: () =>
      typeof mx === 'string'
        ? fail(mx)
        : Promise.resolve(mx.map((exchange) => ({ exchange, priority: 10 }))),
  };
}

async function listStates(dns: Dns): Promise<Record<string, string>> {
  const checks = checkMail(config(MAIL), dns);
  const findings = (await Promise.all(checks.map((check) => check()))).flat();
  return Object.fromEntries(findings.map(({ name, state }) => [name, state]));
}

it('says that no e-mail is set up', async () => {
  const findings = await Promise.all(checkMail(config({}), createDns({})).map((check) => check()));
  expect(findings.flat()).toMatchObject([{ state: 'warning', name: 'e-mail' }]);
});

it('looks for SPF, DMARC of the domain or one above, and who receives bounces', async () => {
  const good = createDns(
    {
      'cards.shop.example': ['other', 'v=spf1 include:relay.example -all'],
      '_dmarc.shop.example': ['v=DMARC1; p=none'],
    },
    ['mx.shop.example'],
  );
  expect(await listStates(good)).toEqual({
    SPF: 'ok',
    DMARC: 'ok',
    BOUNCE_ADDRESS: 'ok',
    SMTP_URL: 'wrong',
    BOUNCE_MAILBOX_URL: 'warning',
  });
});

it('tells what is missing from what could not be looked up', async () => {
  expect(await listStates(createDns({}, 'ENODATA'))).toMatchObject({
    SPF: 'warning',
    DMARC: 'warning',
    BOUNCE_ADDRESS: 'wrong',
  });
  const twice = createDns({ 'cards.shop.example': ['v=spf1 -all', 'v=spf1 a -all'] }, ['']);
  expect(await listStates(twice)).toMatchObject({ SPF: 'wrong', BOUNCE_ADDRESS: 'wrong' });
  const silent = createDns({ 'cards.shop.example': 'ETIMEOUT' }, 'ESERVFAIL');
  expect(await listStates(silent)).toMatchObject({ SPF: 'warning', BOUNCE_ADDRESS: 'warning' });
});

it.each([
  [
    'an aligned signature that covers the headers to unsubscribe',
    ['dkim=pass header.d=shop.example; spf=pass smtp.mailfrom=b@shop.example', 'shop.example'],
    ['ok', 'ok', 'ok', 'ok'],
  ],
  [
    'a signature of the relay alone',
    ['dkim=pass header.d=relay.example; spf=pass smtp.mailfrom=b@relay.example', 'relay.example'],
    ['ok', 'wrong', 'warning'],
  ],
  [
    'no signature',
    ['dkim=none; spf=fail smtp.mailfrom=b@shop.example', ''],
    ['ok', 'wrong', 'warning'],
  ],
])('judges %s', (_, [results, signer], states) => {
  const head = [
    `Authentication-Results: mx.shop.example; ${results}`,
    `DKIM-Signature: v=1; d=${signer}; h=From:List-Unsubscribe:List-Unsubscribe-Post; b=x`,
  ].join('\r\n');
  expect(describeAuthentication(head, 'shop.example').map(({ state }) => state)).toEqual(states);
});

it('judges nothing where the server says nothing, and warns of a signature that covers less', () => {
  expect(describeAuthentication('From: a@x.example', 'x.example')).toMatchObject([
    { state: 'ok' },
    { name: 'DKIM', state: 'warning' },
  ]);
  const head = [
    'Authentication-Results: mx.shop.example; dkim=pass header.d=shop.example',
    'DKIM-Signature: v=1; d=shop.example; h=From; b=x',
  ].join('\r\n');
  expect(describeAuthentication(head, 'shop.example')).toContainEqual(
    expect.objectContaining({ name: 'unsubscribing', state: 'warning' }),
  );
});
