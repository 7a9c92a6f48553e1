import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { ImportJson } from '#loyalty/imports/import.dto.js';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { UpdateUser } from '#identity/user.commands.js';
import { Browser } from '../support/browser/browser.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { OwnServer } from '../support/database/own-server.js';
import { createTestEnvironment } from '../support/database/database.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { cli, startService, type Client, type Service } from '../support/services/service.js';

const SLOW = 300_000;
const PASSWORD = 'correct horse';

/** Every personal value that the tests type, in lower case: some are stored so. */
const PERSONAL = {
  customerName: 'plantedanna',
  customerEmail: 'planted.anna@person.example',
  customerPhone: '+4915112345678',
  changedEmail: 'changed.anna@person.example',
  note: 'planted note about anna',
  birthday: '1971-03-19',
  searched: 'plantedsearch',
  searchedEmail: 'searched@person.example',
  imported: 'imported.ben@person.example',
  importedName: 'importedben',
  signedUp: 'signed.cleo@person.example',
  signedUpName: 'signedcleo',
  userEmail: 'planted.staff@worker.example',
  userName: 'plantedstaff',
  takenEmail: 'taken.boss@worker.example',
  wrongUser: 'stranger@worker.example',
  invited: 'invited.dora@worker.example',
};

let server: OwnServer;

beforeAll(async () => {
  // As an operator has it who looks for slow statements, and for what failing ones were called with.
  server = await OwnServer.start({
    log_min_duration_statement: 0,
    log_parameter_max_length_on_error: -1,
  });
}, SLOW);
afterAll(() => server.close());

describe('the log of a PostgreSQL that logs every statement', () => {
  let service: Service;
  let store: Client;
  let mails: MailServer;
  let dispatcher: Program;

  beforeAll(async () => {
    mails = await MailServer.start();
    const own = {
      url: server.url,
      ownerUrl: server.ownerUrl,
      query: server.query,
      // Other tests go on with it.
      close: async () => undefined,
    };
    const mail = { SMTP_URL: mails.url, MAIL_FROM: 'inkpad@shop.example' };
    service = await startService(mail, own);
    store = await service.newStore({ locale: 'de-DE', country: 'DE' });
    dispatcher = startProgram(
      'dist/apps/dispatcher/main.js',
      createTestEnvironment(server.url, { ...service.environment, ...mail, LOG_LEVEL: 'debug' }),
    );
  }, SLOW);
  afterAll(async () => {
    await dispatcher.kill('SIGTERM');
    await service.stop();
    await mails.goAway();
  }, SLOW);

  it(
    'has no personal value of a day of work',
    async () => {
      const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
        card: { name: 'Coffee' },
      });
      const created = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
        customer: {
          first_name: PERSONAL.customerName,
          email: PERSONAL.customerEmail,
          phone: PERSONAL.customerPhone,
          birthday: PERSONAL.birthday,
        },
        card_id: card.id,
        send_card_links: true,
      });
      expect(created.status).toBe(201);
      const { id, customer_card: own } = created.body;
      const stamped = await store.stamp(
        `${store.store}/customers/${id}/customer_cards/${own?.id}`,
        { notes: PERSONAL.note },
      );
      expect(stamped.status).toBe(200);
      const again = await store.post(`${store.store}/customers`, {
        customer: { first_name: PERSONAL.customerName, email: PERSONAL.customerEmail },
      });
      expect(again.status).toBe(422);
      const changed = await store.send('PATCH', `${store.store}/customers/${id}`, {
        customer: { email: PERSONAL.changedEmail },
      });
      expect(changed.status).toBe(200);
      for (const query of [
        `search=${PERSONAL.searched}`,
        `search=${PERSONAL.customerName}`,
        `email=${PERSONAL.searchedEmail}`,
        `email=${PERSONAL.changedEmail}`,
        `phone=${encodeURIComponent(PERSONAL.customerPhone)}`,
      ]) {
        expect((await store.get(`${store.store}/customers?${query}`)).status).toBe(200);
      }

      const upload = await store.send<ImportJson>(
        'POST',
        `${store.store}/imports?card_id=${card.id}`,
        `first_name,email\n${PERSONAL.importedName},${PERSONAL.imported}\n`,
        { 'content-type': 'text/csv' },
      );
      const path = `${store.store}/imports/${upload.body.id}`;
      await eventually(
        () => store.get<ImportJson>(path),
        ({ body }) => body.state === 'done',
      );
      const { body: list } = await store.get<CustomerListJson>(
        `${store.store}/customers?email=${PERSONAL.imported}`,
      );
      expect(list.customers).toHaveLength(1);

      const poster = await newPoster(store);
      const form = await SignupForm.open(service.baseUrl, 'https://cards.example', poster);
      const signup = await form.send({
        first_name: PERSONAL.signedUpName,
        email: PERSONAL.signedUp,
        consent: 'on',
      });
      expect(signup.status).toBeLessThan(400);

      await service.execute(new CreateUser(cli, PERSONAL.takenEmail, 'Boss', PASSWORD));
      const { userId } = await service.execute(
        new CreateUser(cli, PERSONAL.userEmail, PERSONAL.userName, PASSWORD),
      );
      await service.execute(new AddMember(cli, store.accountId, PERSONAL.userEmail, 'owner'));
      // A unique violation, whose detail names the address.
      await expect(
        service.execute(new UpdateUser(cli, userId, { email: PERSONAL.takenEmail })),
      ).rejects.toThrow('is used by another user');
      const browser = new Browser(service);
      expect((await browser.signIn(PERSONAL.wrongUser, PASSWORD)).status).toBe(422);
      expect((await browser.signIn(PERSONAL.userEmail, PASSWORD)).status).toBe(303);
      const users = `/app/stores/${store.accountId}/users`;
      await browser.get(users);
      const invitation = await browser.post(`${users}/invitations`, {
        email: PERSONAL.invited,
        role: 'staff',
        current_password: PASSWORD,
      });
      expect(invitation.status).toBe(303);
      await eventually(
        () => mails.received.map(({ to }) => to),
        (to) =>
          [PERSONAL.changedEmail, PERSONAL.signedUp, PERSONAL.invited].every((address) =>
            to.includes(address),
          ),
      );

      const log = server.readLog().toLowerCase();
      for (const part of [
        'duration: ',
        'es.commit(',
        'from customers c where',
        'outgoing_messages',
      ])
        expect(log).toContain(part);
      expect(log).toContain('violates unique constraint "users_email_key"');
      for (const value of Object.values(PERSONAL)) expect(log).not.toContain(value);
      const ownLog = dispatcher.output().toLowerCase();
      for (const value of Object.values(PERSONAL)) expect(ownLog).not.toContain(value);
    },
    SLOW,
  );
});

describe('an api at its start', () => {
  const SETTINGS = 'log_error_verbosity, log_parameter_max_length';
  const WARNING = 'PostgreSQL may write personal data to its log';

  /** Starts an api, and reads its log up to the line that it listens. */
  async function readStart(): Promise<string> {
    const environment = createTestEnvironment(server.url, { LOG_LEVEL: 'info' });
    const api = startProgram('dist/apps/api/main.js', environment);
    try {
      return await eventually(api.output, (text) => text.includes('listening on'), SLOW);
    } finally {
      await api.kill('SIGTERM');
    }
  }

  it(
    'warns when the server would log personal values, and not when its role may prevent that',
    async () => {
      await server.query(`revoke set on parameter ${SETTINGS} from inkpad_app`);
      const output = await readStart();
      expect(output).toContain(
        `${WARNING}: log_error_verbosity is default, not terse; log_parameter_max_length is -1, not 0.`,
      );
      expect(output.split(WARNING)).toHaveLength(2);
      server.migrate();
      expect(await readStart()).not.toContain(WARNING);
    },
    SLOW,
  );

  it(
    'does not warn when the server itself logs no values',
    async () => {
      await server.query(`revoke set on parameter ${SETTINGS} from inkpad_app`);
      await server.query('alter system set log_parameter_max_length = 0');
      await server.query(`alter system set log_error_verbosity = 'terse'`);
      await server.query('select pg_reload_conf()');
      expect(await readStart()).not.toContain(WARNING);
    },
    SLOW,
  );
});
