import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startProgram } from '../support/services/program.js';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';

let database: TestDatabase;
let environment: NodeJS.ProcessEnv;

beforeAll(async () => {
  database = await createTestDatabase();
  environment = createTestEnvironment(database.url);
});

afterAll(() => database.close());

async function cli(
  args: string[],
  input?: string,
): Promise<{ code: number | null; output: string }> {
  const program = startProgram('dist/apps/cli/cli.js', environment, args, input);
  return { code: await program.exitCode, output: program.output() };
}

async function runJson<T = Record<string, unknown>>(args: string[], input?: string): Promise<T> {
  const { code, output } = await cli(args, input);
  if (code !== 0) throw new Error(output);
  return JSON.parse(output.split('\n').find((line) => line.startsWith('{')) ?? '') as T;
}

const GRACE = 'grace@shop.example';
const ADA = 'ada@shop.example';

/** The tests build on each other. */
describe('inkpad', () => {
  let store: number;
  let tokenId: number;

  it('generates a password for a new user without a terminal, and prints it', async () => {
    const user = await runJson(['user:create', '--email', GRACE, '--name', 'Grace']);
    expect(user).toEqual({ user_id: 1, email: GRACE, password: expect.stringMatching(/^.{16}$/) });
  });

  it('reads a password from standard input with --password-stdin, and does not print it', async () => {
    const args = ['user:create', '--email', ADA, '--name', 'Ada', '--password-stdin'];
    expect(await runJson(args, 'right horse\nmore\n')).toEqual({ user_id: 2, email: ADA });
    expect(await isPassword(ADA, 'right horse')).toBe(true);
    const otherSpelling = [
      'user:set-password',
      '--email',
      `\u202A${ADA}\u200B`,
      '--password-stdin',
    ];
    expect(await runJson(otherSpelling, 're\u0301al\u00A0horse \r\n')).toEqual({
      user_id: 2,
      email: ADA,
    });
    expect(await isPassword(ADA, 'réal horse ')).toBe(true);
  });

  it('warns that a password given as an argument is visible to others', async () => {
    const { code, output } = await cli([
      'user:set-password',
      '--email',
      ADA,
      '--password',
      'left horse!',
    ]);
    expect([code, output]).toEqual([
      0,
      expect.stringMatching(/^warning: a password given as an argument is visible/),
    ]);
    expect(await isPassword(ADA, 'left horse!')).toBe(true);
  });

  it.each([
    ['user:create', '--email', 'x@shop.example', '--name', 'X'],
    ['user:set-password', '--email', ADA],
  ])('%s refuses a password with fewer than 10 characters', async (...args) => {
    expect(await cli([...args, '--password-stdin'], 'too short\n')).toEqual({
      code: 1,
      output: 'password must have at least 10 characters\n',
    });
  });

  it('lists stores, users and tokens, without the tokens themselves', async () => {
    const createdStore = await runJson<{ account_id: number }>([
      'store:create',
      '--name',
      'Café',
      '--user',
      GRACE,
    ]);
    store = createdStore.account_id;
    const added = await cli([
      'member:add',
      '--store',
      `${store}`,
      '--user',
      ADA,
      '--role',
      'staff',
    ]);
    expect(added.code).toBe(0);
    expect(added.output).toContain(`${ADA} was never confirmed`);
    expect(added.output).toContain('"email_confirmed":false');
    const token = await runJson<{ token_id: number; api_token: string }>([
      'token:create',
      '--user',
      GRACE,
      '--name',
      'till',
      '--role',
      'manager',
      '--store',
      `${store}`,
      '--read-only',
    ]);
    tokenId = token.token_id;

    expect(await runJson(['store:list'])).toEqual({
      stores: [
        {
          account_id: store,
          name: 'Café',
          members: [
            { user_id: 1, email: GRACE, role: 'owner' },
            { user_id: 2, email: ADA, role: 'staff' },
          ],
        },
      ],
    });
    expect(await runJson(['store:list', '--user', 'nobody@shop.example'])).toEqual({ stores: [] });
    const user = (user_id: number, email: string, name: string, role: string, tokens: number) => ({
      user_id,
      email,
      name,
      created_at: expect.any(String),
      email_confirmed_at: null,
      removed_at: null,
      stores: [{ account_id: store, role }],
      tokens,
    });
    expect(await runJson(['user:list', '--store', `${store}`])).toEqual({
      users: [user(1, GRACE, 'Grace', 'owner', 1), user(2, ADA, 'Ada', 'staff', 0)],
    });
    const listing = await cli(['token:list', '--user', GRACE]);
    expect(JSON.parse(listing.output)).toEqual({
      tokens: [
        {
          token_id: tokenId,
          name: 'till',
          user_id: 1,
          email: GRACE,
          role: 'manager',
          account_ids: [store],
          read_only: true,
          per_minute: null,
          created_at: expect.any(String),
          expires_at: null,
          last_used_at: null,
          revoked_at: null,
        },
      ],
    });
    expect(listing.output).not.toContain(token.api_token.slice(4));
  });

  it('user:set-email changes the address, and ends the user’s sessions and password reset links', async () => {
    await database.query(
      `insert into sessions (user_id, sha256, awaits_code, by_company, created_at, seen_at, expires_at)
       values (2, sha256('a'), false, false, now(), now(), now() + interval '1 day')`,
    );
    await database.query(
      `insert into password_resets (sha256, user_id, created_at, expires_at)
       values (sha256('b'), 2, now(), now() + interval '1 hour')`,
    );
    const to = 'ada@new.example';
    expect(await runJson(['user:set-email', '--email', ADA, '--to', to])).toEqual({
      user_id: 2,
      email: to,
    });
    const { rows } = await database.query(
      `select (select count(*)::int from sessions) as sessions,
         (select count(*)::int from password_resets where used_at is null) as links`,
    );
    expect(rows).toEqual([{ sessions: 0, links: 0 }]);
    const { entries } = await runJson<{ entries: object[] }>([
      'audit:list',
      '--account',
      `${store}`,
      '--type',
      'user.updated',
    ]);
    expect(entries).toEqual([
      expect.objectContaining({
        actor: expect.objectContaining({ type: 'system', name: expect.any(String) }),
        subject: {
          user_id: 2,
          changes: { email: { from: 'a…@shop.example', to: 'a…@new.example' } },
          sessions_ended: 1,
        },
      }),
    ]);
    await runJson(['user:set-email', '--email', to, '--to', ADA]);
  });

  it('finds a user by another spelling of the e-mail address', async () => {
    const to = 'ada@Müller.example';
    const result = { user_id: 2, email: to };
    expect(await runJson(['user:set-email', '--email', ADA, '--to', to])).toEqual(result);
    const otherSpelling = 'ADA@xn--mller-kva.example';
    expect(await runJson(['user:unlink-company', '--email', otherSpelling])).toEqual({
      user_id: 2,
      email: otherSpelling,
      unlinked: 0,
    });
    const back = ['user:set-email', '--email', otherSpelling, '--to', ADA];
    expect(await runJson(back)).toEqual({ user_id: 2, email: ADA });
  });

  it.each([
    [['user:set-email', '--email', ADA, '--to', GRACE], 'email is used by another user\n'],
    [['user:set-email', '--email', ADA, '--to', 'nothing'], 'email is not an e-mail address\n'],
    [['user:remove', '--email', 'nobody@shop.example'], 'User nobody@shop.example not found\n'],
  ])('%j exits with 1 and one sentence that says why', async (args, output) => {
    expect(await cli(args)).toEqual({ code: 1, output });
  });

  it('user:remove names the stores without an owner, and lists and revokes the user’s tokens', async () => {
    const { code, output } = await cli(['user:remove', '--email', GRACE]);
    expect(code).toBe(0);
    expect(output).toContain(
      `Store ${store} has no owner any more: inkpad member:add --store ${store} --user … gives it one.`,
    );
    expect(JSON.parse(output.split('\n').find((line) => line.startsWith('{')) ?? '')).toEqual({
      user_id: 1,
      tokens_ended: 1,
      sessions_ended: 0,
      stores: [
        { account_id: store, name: 'Café', owners: 0, members: 1, webhook_subscriptions: 0 },
      ],
    });
    expect(await runJson(['token:list'])).toEqual({ tokens: [] });
    const all = await runJson<{ tokens: object[] }>(['token:list', '--all']);
    expect(all.tokens).toHaveLength(1);
    const remaining = await runJson<{ users: { user_id: number }[] }>(['user:list']);
    expect(remaining.users.map(({ user_id }) => user_id)).toEqual([2]);
    const allUsers = await runJson<{ users: object[] }>(['user:list', '--removed']);
    expect(allUsers.users).toHaveLength(2);
  });

  it('creates, lists and revokes tokens of the admin API, without listing the tokens themselves', async () => {
    const create = (...more: string[]) =>
      runJson<{ admin_token_id: number; admin_token: string }>([
        'admin-token:create',
        '--name',
        'terraform',
        ...more,
      ]);
    const { admin_token: token, ...created } = await create('--expires', '2100-12-31');
    expect([token, created]).toEqual([
      expect.stringMatching(/^inkadm_[\w-]{59}$/),
      { admin_token_id: expect.any(Number) },
    ]);
    const reader = await create('--read-only');
    const list = (...more: string[]) =>
      runJson<{ admin_tokens: object[] }>(['admin-token:list', ...more]);
    const { admin_tokens: tokens } = await list();
    const expected = {
      name: 'terraform',
      read_only: false,
      created_at: expect.any(String),
      expires_at: '2100-12-31T23:59:59.999Z',
      last_used_at: null,
      revoked_at: null,
    };
    expect(tokens).toEqual([
      { ...created, ...expected },
      { ...expected, admin_token_id: reader.admin_token_id, read_only: true, expires_at: null },
    ]);
    const revoke = ['admin-token:revoke', '--token-id', `${reader.admin_token_id}`];
    expect(await runJson(revoke)).toEqual({
      admin_token_id: reader.admin_token_id,
      revoked: true,
    });
    expect((await list()).admin_tokens).toHaveLength(1);
    expect((await list('--all')).admin_tokens).toHaveLength(2);
    const missing = await cli(['admin-token:revoke', '--token-id', '99']);
    expect([missing.code, missing.output]).toEqual([1, 'Admin token not found\n']);
    const { entries } = await runJson<{ entries: { type: string; subject: object }[] }>([
      'audit:list',
      '--type',
      'admin_token.created',
    ]);
    expect(entries.map(({ subject }) => subject)).toEqual([
      { admin_token_id: reader.admin_token_id, name: 'terraform', read_only: true },
      { ...created, name: 'terraform', expires_at: '2100-12-31T23:59:59.999Z' },
    ]);
  });

  it('--help describes every command and option, with an example of each command', async () => {
    const { code, output } = await cli(['--help']);
    expect(code).toBe(0);
    const commands = [...output.matchAll(/^ {2}(?!inkpad )([a-z][a-z:-]+) /gm)].map(
      ([, name]) => name ?? '',
    );
    expect(commands.length).toBeGreaterThan(20);
    for (const name of commands) {
      const help = (await cli([name, '--help'])).output;
      expect(help).toMatch(/\n\n\S.*\n/);
      expect(help).toContain(`inkpad ${name}`);
      expect(help.split('\n').filter((line) => /^ {2}--\S+( <\S+>)?\s*$/.test(line))).toEqual([]);
    }
  });

  it('exits with 2 for an invalid option value and for an unknown command', async () => {
    expect(await cli(['token:revoke', '--token-id', 'x'])).toEqual({
      code: 2,
      output: expect.stringMatching(/must be a positive integer/),
    });
    expect((await cli(['token:nothing'])).code).toBe(2);
  });

  it('store:create takes a country, and phones:conflicts lists no conflicts without customers', async () => {
    await runJson(['user:create', '--email', 'bob@shop.example', '--name', 'Bob']);
    const createStore = (country: string) =>
      cli(['store:create', '--name', 'X', '--user', 'bob@shop.example', '--country', country]);
    expect(await createStore('XX')).toEqual({
      code: 1,
      output: expect.stringContaining('country is not an ISO 3166-1 country code such as DE'),
    });
    expect(await createStore('de')).toEqual({
      code: 0,
      output: expect.stringContaining('account_id'),
    });
    const { rows } = await database.query('select country from accounts where country is not null');
    expect(rows).toEqual([{ country: 'DE' }]);
    expect(await runJson(['phones:conflicts'])).toEqual({ conflicts: [] });
    expect(await runJson(['phones:conflicts', '--store', '1'])).toEqual({ conflicts: [] });
  });
});

async function isPassword(email: string, password: string): Promise<boolean> {
  const { verify } = await import('@node-rs/argon2');
  const { rows } = await database.query('select password_hash from users where email = $1', [
    email,
  ]);
  return verify((rows[0] as { password_hash: string }).password_hash, password);
}
