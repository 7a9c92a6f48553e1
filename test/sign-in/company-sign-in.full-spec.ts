import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { MasterKeys } from '#platform/database/master-keys.js';
import { IdentityProvider, type VerifiedSignIn } from '#web/sign-in/company.client.js';
import { getTranslations } from '#translations/translations.js';
import { testConfig } from '../support/database/database.js';
import { CompanyProvider } from '../support/emulators/oidc-provider.js';

/** Tests the client of a company's sign-in against a provider that has the optional parts of the standard or not. */

const EMAIL = 'grace@company.example';
const { company: t } = getTranslations('en').t.signIn;
/** Seals nothing: only who reads the cookie needs that, and no cookie is sent here. */
const keys = {
  seal: (_: string, text: Buffer) => text,
  open: (_: string, sealed: Buffer) => sealed,
} as unknown as MasterKeys;

let company: CompanyProvider;
let warnings: string[];

beforeEach(async () => {
  company = await CompanyProvider.start();
  warnings = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((text: unknown) => {
    warnings.push(String(text));
  });
});
afterEach(() => company.stop());
afterAll(() => void jest.restoreAllMocks());

/** Signs in at the provider as a browser does. */
async function signIn(settings: NodeJS.ProcessEnv = {}): Promise<VerifiedSignIn> {
  const environment = { ...company.environment, ...settings };
  const provider = new IdentityProvider(testConfig('postgres://nowhere/none', environment), keys);
  const { url, sealed } = await provider.begin('/app', t);
  const response = await fetch(url, { redirect: 'manual' });
  const { search } = new URL(response.headers.get('location') ?? '');
  return provider.finish(search, sealed, t);
}

async function findEmail(settings?: NodeJS.ProcessEnv): Promise<string | null> {
  return (await signIn(settings)).person.email;
}

describe('the client of a company', () => {
  it.each([
    ['nothing', undefined, 'client_secret_basic'],
    ['an empty list', [], 'client_secret_basic'],
    ['basic', ['client_secret_basic'], 'client_secret_basic'],
    ['both', ['client_secret_post', 'client_secret_basic'], 'client_secret_basic'],
    ['post alone', ['client_secret_post'], 'client_secret_post'],
    ['post and others', ['private_key_jwt', 'client_secret_post'], 'client_secret_post'],
  ] as const)(
    'authenticates at a provider that names %s by what it accepts',
    async (_, named, method) => {
      company.authMethods = named;
      expect(await findEmail()).toBe(EMAIL);
      expect(company.authentications).toEqual([method]);
    },
  );

  it('sends no secret when none is set', async () => {
    company.authMethods = ['none'];
    expect(await findEmail({ OIDC_CLIENT_SECRET: '' })).toBe(EMAIL);
    expect(company.authentications).toEqual(['none']);
  });

  it.each(['client_secret_basic', 'client_secret_post'] as const)(
    'names invalid_client in the log when %s fails, and never the secret',
    async (method) => {
      company.authMethods = [method];
      const secret = 'another secret';
      await expect(signIn({ OIDC_CLIENT_SECRET: secret })).rejects.toMatchObject({ status: 403 });
      expect(warnings).toEqual([expect.stringContaining('invalid_client, status 401')]);
      expect(warnings.join()).not.toContain(secret);
    },
  );

  it('names the status of a response that is no JSON', async () => {
    company.failure = { status: 502, body: '<h1>Bad gateway</h1>' };
    await expect(signIn()).rejects.toMatchObject({ status: 403 });
    expect(warnings).toEqual([expect.stringContaining('status 502')]);
  });

  it('names the error of a provider that refuses the person, without what cannot be a code', async () => {
    const config = testConfig('postgres://nowhere/none', company.environment);
    const provider = new IdentityProvider(config, keys);
    for (const [code, isNamed] of [
      ['access_denied', true],
      ['"line\nbreak', false],
    ] as const) {
      const { url, sealed } = await provider.begin('/app', t);
      const state = new URL(url).searchParams.get('state') ?? '';
      const search = `?${new URLSearchParams({ error: code, state }).toString()}`;
      await expect(provider.finish(search, sealed, t)).rejects.toMatchObject({ status: 403 });
      expect(warnings.pop()?.includes(code)).toBe(isNamed);
    }
  });
});

describe('the address of a person', () => {
  const sub = '1';

  it.each<[string, object, object | undefined, string | null]>([
    ['true in the ID token', { email: EMAIL, email_verified: true }, undefined, EMAIL],
    ['the text "true"', { email: EMAIL, email_verified: 'true' }, undefined, EMAIL],
    ['false', { email: EMAIL, email_verified: false }, undefined, null],
    ['the text "false"', { email: EMAIL, email_verified: 'false' }, undefined, null],
    ['another text', { email: EMAIL, email_verified: 'yes' }, undefined, null],
    ['a number', { email: EMAIL, email_verified: 1 }, undefined, null],
    ['null', { email: EMAIL, email_verified: null }, undefined, null],
    [
      'null, and true in UserInfo',
      { email: EMAIL, email_verified: null },
      { email_verified: true },
      EMAIL,
    ],
    ['nothing', { email: EMAIL }, undefined, null],
    ['true without an address', { email_verified: true }, undefined, null],
    ['an address that is no text', { email: [EMAIL], email_verified: true }, undefined, null],
    ['both in UserInfo', {}, { email: EMAIL, email_verified: true }, EMAIL],
    ['both as text in UserInfo', {}, { email: EMAIL, email_verified: 'true' }, EMAIL],
    ['email_verified in UserInfo', { email: EMAIL }, { email_verified: true }, EMAIL],
    ['the address in UserInfo', { email_verified: true }, { email: EMAIL }, EMAIL],
    ['false in UserInfo', { email: EMAIL }, { email_verified: false }, null],
    ['nothing in UserInfo either', { email: EMAIL }, {}, null],
    [
      'another address in UserInfo, which is confirmed',
      { email: 'eve@company.example' },
      { email: EMAIL, email_verified: true },
      EMAIL,
    ],
    [
      'another address in UserInfo, which is not confirmed',
      { email_verified: true },
      { email: EMAIL, email_verified: false },
      null,
    ],
    [
      'no need of UserInfo',
      { email: EMAIL, email_verified: false },
      { email: EMAIL, email_verified: true },
      null,
    ],
  ])('counts as confirmed or not with %s', async (_, claims, userInfo, email) => {
    company.person = { sub, ...claims };
    company.userInfo = userInfo as typeof company.userInfo;
    expect(await findEmail()).toBe(email);
  });

  it.each<[string, object, object | undefined, string | null]>([
    ['nothing', { email: EMAIL }, undefined, EMAIL],
    ['nothing in UserInfo either', {}, { email: EMAIL }, EMAIL],
    ['true', { email: EMAIL, email_verified: true }, undefined, EMAIL],
    ['false', { email: EMAIL, email_verified: false }, undefined, null],
    ['the text "false"', { email: EMAIL, email_verified: 'false' }, undefined, null],
    ['false in UserInfo', { email: EMAIL }, { email_verified: false }, null],
    ['no address', {}, undefined, null],
  ])(
    'counts with OIDC_EMAILS_CONFIRMED unless the provider denies it: %s',
    async (_, claims, userInfo, email) => {
      company.person = { sub, ...claims };
      company.userInfo = userInfo as typeof company.userInfo;
      expect(await findEmail({ OIDC_EMAILS_CONFIRMED: 'true' })).toBe(email);
    },
  );

  it.each([401, 403, 404, 500, 200, 'reset', 'silence'] as const)(
    'counts with OIDC_EMAILS_CONFIRMED although UserInfo fails: %s',
    async (failure) => {
      company.person = { sub, email: EMAIL };
      company.userInfo = {};
      company.userInfoFailure = failure;
      expect(await findEmail({ OIDC_EMAILS_CONFIRMED: 'true' })).toBe(EMAIL);
      expect(warnings).toEqual([expect.stringContaining('UserInfo of the provider failed')]);
    },
  );

  it.each([403, 500, 'reset'] as const)(
    'is unknown, and the person is not, where the ID token says too little and UserInfo fails: %s',
    async (failure) => {
      company.person = { sub, email: EMAIL };
      company.userInfo = {};
      company.userInfoFailure = failure;
      expect((await signIn()).person).toMatchObject({ subject: sub, email: null });
      expect(warnings).toHaveLength(1);
    },
  );

  it('is never taken from UserInfo about another person', async () => {
    company.person = { sub };
    for (const otherAddress of ['2', undefined]) {
      company.userInfo = { sub: otherAddress, email: EMAIL, email_verified: true };
      await expect(signIn()).rejects.toMatchObject({ status: 403 });
    }
    expect(warnings).toHaveLength(2);
  });
});
