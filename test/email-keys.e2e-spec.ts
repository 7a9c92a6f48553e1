import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { dataSource } from '#database/data-source.js';
import { EmailKeys } from '#database/migrations/0065-email-keys.js';
import { testConfig, testDatabase, type TestDatabase } from './support/database.js';

let database: TestDatabase;
let source: DataSource;

beforeAll(async () => {
  database = await testDatabase();
  source = dataSource(testConfig(database.ownerUrl), 'test');
  await source.initialize();
});
afterAll(async () => {
  await source?.destroy();
  await database?.close();
});

it('keys of addresses are given to the users and invitations that there are', async () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const runner = source.createQueryRunner();
  const migration = new EmailKeys();
  await migration.down(runner);
  await runner.query(`
    insert into users (email, name, password_hash, created_at, removed_at) values
      ('Grace@Müller.example', 'first', '', now(), null),
      ('grace@xn--mller-kva.example', 'second', '', now(), null),
      ('grace@müller.example', 'gone', '', now(), now()),
      ('victim@gİthub.example', 'other', '', now(), null),
      ('nobody@%67ithub.example', 'third', '', now(), null);
    insert into invitations (account_id, email, role, sha256, invited_by, created_at, expires_at) values
      (1, 'ada@müller.example', 'staff', sha256('1'), 1, now(), now()),
      (1, 'ada@xn--mller-kva.example', 'staff', sha256('2'), 1, now(), now()),
      (2, 'ada@xn--mller-kva.example', 'staff', sha256('3'), 1, now(), now())`);
  await migration.up(runner);
  expect(await runner.query('select name, email_key from users order by id')).toEqual([
    { name: 'first', email_key: 'grace@xn--mller-kva.example' },
    { name: 'second', email_key: null },
    { name: 'gone', email_key: null },
    { name: 'other', email_key: 'victim@xn--github-qyd.example' },
    { name: 'third', email_key: null },
  ]);
  expect(warn.mock.calls.join()).toMatch(/^users \d+, \d+ cannot sign in: .* user:set-email/);
  expect(
    await runner.query(
      'select email_key, withdrawn_at is not null as withdrawn from invitations order by id',
    ),
  ).toEqual([
    { email_key: 'ada@xn--mller-kva.example', withdrawn: false },
    { email_key: null, withdrawn: true },
    { email_key: 'ada@xn--mller-kva.example', withdrawn: false },
  ]);
  warn.mockRestore();
  await runner.release();
});
