import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { CreateUser } from '#identity/identity.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { checkpointKey, startSigning } from '../support/fixtures/checkpoints.js';
import { createTestEnvironment } from '../support/database/database.js';
import { findValues } from '../support/database/personal-data.js';
import { startProgram, type Program } from '../support/services/program.js';
import { Client, cli, startService, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** Moves a store to another instance whose customers were erased, merged, unmerged and given another key. */

const SLOW = 300_000;
const key = checkpointKey();

let from: Service;
let to: Service;
let dispatcher: Program;

beforeAll(async () => {
  from = await startService();
  to = await startService();
  ({ dispatcher } = await startSigning(from, key));
}, SLOW);
afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await Promise.all([from.stop(), to.stop()]);
}, SLOW);

async function run(service: Service, program: string, ...args: string[]) {
  const environment = createTestEnvironment(service.database.url, {
    ...service.environment,
    DATABASE_MIGRATION_URL: service.database.ownerUrl,
  });
  const child = startProgram(`dist/apps/cli/${program}.js`, environment, args);
  return { code: await child.exitCode, output: child.output() };
}

async function expectSuccess(promise: Promise<{ status: number; text: string }>): Promise<void> {
  const { status, text } = await promise;
  expect([status, status < 300 ? '' : text]).toEqual([status, '']);
}

it(
  'erased, merged and unmerged customers are imported as they are, and can be merged, changed and erased afterwards',
  async () => {
    const store = await from.newStore();
    const people = [];
    for (let n = 0; n < 7; n++) {
      const holder = await enrol(store, {
        email: `person${n}@mail.example`,
        // Makes the command write two events, of which the first has the claims.
        card: { initial_stamps: 1 },
      });
      await expectSuccess(store.post(`${holder.path}/stamp`, { stamps: n + 1, note: `note ${n}` }));
      people.push({
        id: holder.customer.id,
        path: `${store.store}/customers/${holder.customer.id}`,
      });
    }
    const [erased, survivor, merged, both, other, left, gone] = people;
    if (!erased || !survivor || !merged || !both || !other || !left || !gone) throw new Error();
    const details = { last_name: 'Quibbleworth', phone: '+4915123450001' };
    for (const { path } of [merged, gone]) {
      await expectSuccess(store.send('PATCH', path, { customer: details }));
      details.phone = '+4915123450002';
    }
    const act = (into: { path: string }, action: string, customer: { id: number }) =>
      expectSuccess(store.post(`${into.path}/${action}`, { from_customer_id: customer.id }));
    await expectSuccess(store.post(`${erased.path}/erase`));
    await act(survivor, 'merge', merged);
    await act(both, 'merge', other);
    await expectSuccess(store.post(`${other.path}/erase`));
    await act(left, 'merge', gone);
    await act(left, 'unmerge', gone);
    await expectSuccess(store.post(`${gone.path}/erase`));

    const file = join(mkdtempSync(join(tmpdir(), 'inkpad-persons-')), 'store.ndjson');
    const account = ['--account', String(store.accountId)];
    const exportRun = await run(
      from,
      'cli',
      'history:export',
      ...account,
      '--out',
      file,
      '--personal',
    );
    expect(exportRun).toMatchObject({ code: 0 });
    const importRun = await run(to, 'cli', 'history:import', '--in', file, '--key', key.verifier);
    expect(importRun).toMatchObject({ code: 0 });

    await to.execute(new CreateUser(cli, 'new@owner.example', 'Owner', 'correct horse'));
    await to.execute(new AddMember(cli, store.accountId, 'new@owner.example', 'owner'));
    const { token } = await to.execute(new CreateToken(cli, 'new@owner.example', 'till'));
    const importedStore = new Client(to.baseUrl, store.accountId, token);
    const list = `${store.store}/customers?items=100`;
    for (const path of [list, ...people.map((person) => person.path)]) {
      const [there, here] = [await importedStore.get(path), await store.get(path)];
      expect([there.status, there.body]).toEqual([200, here.body]);
    }
    const environment = createTestEnvironment(to.database.url, to.environment);
    const values = ['Quibbleworth', '15123450002', 'person0@', 'person4@', 'person6@', 'note 6'];
    expect(
      (await findValues(environment, to.database, values)).map((at) => at.split(': ')[1]),
    ).toEqual(
      expect.not.arrayContaining(['15123450002', 'person0@', 'person4@', 'person6@', 'note 6']),
    );
    // Every read model and claim matches the history, and so does the event that each claim names.
    expect(await run(to, 'verify')).toMatchObject({
      code: 0,
      output: expect.stringContaining('every read model matches its events'),
    });
    expect(await run(to, 'rebuild')).toMatchObject({
      code: 0,
      output: expect.not.stringMatching(/claimed|does not match its events/),
    });

    for (const person of [erased, both, other, gone]) {
      const { body } = await importedStore.post<{ code: string }>(`${person.path}/merge`, {
        from_customer_id: left.id,
      });
      expect(body.code).toBe('customer_erased');
    }
    await expectSuccess(
      importedStore.post(`${survivor.path}/unmerge`, { from_customer_id: merged.id }),
    );
    const { body } = await importedStore.get<CustomerJson>(merged.path);
    expect([body.phone, body.last_name]).toEqual(['+4915123450001', 'Quibbleworth']);
    await expectSuccess(
      importedStore.send('PATCH', left.path, { customer: { phone: '+4915123450002' } }),
    );
    await expectSuccess(importedStore.post(`${merged.path}/erase`));
    expect(await run(to, 'verify')).toMatchObject({ code: 0 });
  },
  SLOW,
);
