import { RequestMethod } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { CreateToken } from '#identity/token.commands.js';
import { AddMember, ChangeRole } from '#identity/member.commands.js';
import { CreateUser } from '#identity/identity.commands.js';
import type { BodyConfig } from '#platform/http/body-kinds.js';
import type { RouteThrottle } from '#platform/http/throttle.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import type { ConsoleRoute } from '#web/pages/current-user.js';
import { CARD_FORM, REWARD_FORM } from '../support/fixtures/card-form.js';
import { Browser, readFormKey, type BrowserResponse } from '../support/browser/browser.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startSecondApi } from '../support/services/second-api.js';
import {
  cli,
  startService,
  startSession,
  type Client,
  type LocalService,
} from '../support/services/service.js';

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;
let base: string;

beforeAll(async () => {
  service = await startService();
  startSession(service);
  store = await service.newStore();
  owner = await Browser.signedIn(service, store.email);
  base = `/app/stores/${store.accountId}`;
});
afterAll(() => service.stop());

const PASSWORD = 'correct horse';

type Fields = Record<string, string>;

type FormRoute = { route: string } & BodyConfig & ConsoleRoute & RouteThrottle;

/** Lists the routes that forms are sent to. */
function listForms(): FormRoute[] {
  const controllers = [...service.app.get(ModulesContainer).values()].flatMap((module) =>
    [...module.controllers.values()].map(({ metatype }) => metatype),
  );
  return controllers.flatMap((controller) => {
    if (typeof controller !== 'function') return [];
    const prototype = controller.prototype as object;
    return Object.values(Object.getOwnPropertyDescriptors(prototype)).flatMap(({ value }) => {
      if (typeof value !== 'function' || read('method', value) !== RequestMethod.POST) return [];
      const config = read('__fastify_route_config__', value) as FormRoute | undefined;
      if (config?.body !== 'form' && config?.body !== 'upload') return [];
      const paths = [read('path', controller), read('path', value)];
      return [{ ...config, route: paths.filter((path) => path !== '/').join('/') }];
    });
  });
}

const read = (key: string, target: object): unknown => Reflect.getMetadata(key, target);

/**
 * Sends a form twice at once, and again when both have their responses. The token is that of the overview, as a form that
 * has done its work may no longer be there.
 */
async function submitThrice(
  page: string,
  action = page,
  fields: Fields = {},
): Promise<(string | null)[]> {
  const formKey = readFormKey((await owner.get(page)).text);
  const send = () => owner.submit(base, action, { ...fields, form_key: formKey });
  const responses = [...(await Promise.all([send(), send()])), await send()];
  expect(responses.map(({ status }) => status)).toEqual([303, 303, 303]);
  return responses.map(({ location }) => location);
}

/** Lists the types of the events and audit entries that a step writes. */
async function listChanges(step: () => Promise<unknown>): Promise<string[]> {
  const readAudits = async () =>
    (await service.database.query<{ type: string }>('select type from audit_log order by id')).rows;
  const [events, audits] = [await service.history(), await readAudits()];
  await step();
  return [
    ...(await service.history()).slice(events.length),
    ...(await readAudits()).slice(audits.length),
  ].map(({ type }) => type);
}

async function createLocation(): Promise<string> {
  const location = { name: 'Kiosk', address: 'Kai 2, Hamburg' };
  const { body } = await store.post<LocationJson>(`${store.store}/locations`, { location });
  return `${base}/locations/${body.id}`;
}

const findId = ({ location }: BrowserResponse): number =>
  Number(/(\d+)\?/.exec(location ?? '')?.[1]);

describe('the forms of the pages', () => {
  it('have limits of their own', () => {
    const unlimited = listForms().filter(({ throttle }) => !throttle);
    // The first counts by poster and by store too, the second is called by the provider of SMS.
    expect(unlimited.map(({ route }) => route)).toEqual(['join/:slug', 'sms/status/:message_id']);
  });

  it('run once, except those of which a second run changes nothing or has to be another one', () => {
    const forms = listForms();
    expect(forms.length).toBeGreaterThan(80);
    const repeated = forms
      .filter(({ isExecutedOnce }) => !isExecutedOnce)
      .map(({ route }) => route);
    expect(repeated.sort()).toEqual([
      // Set what they say, of the account of whoever is signed in. Most ask for the password and renew the session.
      'app/account',
      'app/account/address',
      'app/account/codes/begin',
      'app/account/codes/confirm',
      'app/account/codes/off',
      'app/account/codes/recovery',
      'app/account/first-password',
      'app/account/password',
      'app/account/pin',
      'app/account/pin/remove',
      'app/account/sessions/:id/end',
      'app/account/sessions/end',
      // Use up a link that works once.
      'app/invitations/:secret',
      'app/password/forgot',
      'app/password/reset',
      // Begin or end a session.
      'app/sign-in',
      'app/sign-in/code',
      'app/sign-in/kept',
      'app/sign-out',
      // Of the counter: stampings and redemptions count once by their receipt number, the others change nothing twice.
      'counter/:account_id/confirm',
      'counter/:account_id/enrol',
      'counter/:account_id/location',
      'counter/:account_id/people',
      'counter/:account_id/redeem',
      'counter/:account_id/stamp',
      'counter/:account_id/undo',
      // Find whom they have signed up.
      'join/:slug',
      // Confirms a consent, which changes nothing twice.
      'passes/:uuid',
      // Sent by programs.
      'passes/:uuid/messages',
      'sms/status/:message_id',
    ]);
  });

  it('create once, however often they are sent', async () => {
    const page = `${base}/locations`;
    const fields = { name: 'Harbour', address: 'Kai 1, Hamburg' };
    const locations: (string | null)[] = [];
    const changes = await listChanges(async () => {
      locations.push(...(await submitThrice(`${page}/new`, page, fields)));
    });
    expect(new Set(locations).size).toBe(1);
    expect(changes).toEqual(['LocationCreated']);
  });

  it('save once', async () => {
    const page = await createLocation();
    const fields = { name: 'Kiosk', address: 'Kai 3, Hamburg' };
    const changes = await listChanges(() => submitThrice(page, page, fields));
    expect(changes).toEqual(['LocationUpdated']);
  });

  it('save the settings of a store once', async () => {
    const page = `${base}/settings`;
    const text = (await owner.get(page)).text;
    const read = (name: string) => new RegExp(`name="${name}"[^>]*value="([^"]*)"`).exec(text)?.[1];
    const fields = {
      name: 'Other name',
      time_zone: 'Europe/Berlin',
      locale: 'de',
      country: read('country') ?? '',
    };
    expect(await listChanges(() => submitThrice(page, page, fields))).toEqual(['AccountUpdated']);
  });

  it('revoke a token once', async () => {
    const { tokenId } = await service.execute(new CreateToken(cli, store.email, 'other'));
    const revoke = `${base}/tokens/${tokenId}/revoke`;
    expect(await listChanges(() => submitThrice(revoke))).toEqual(['token.revoked']);
  });

  it('delete once, and lead to where the first one led', async () => {
    const page = await createLocation();
    const { text } = await owner.get(`${page}/remove`);
    const formKey = readFormKey(text);
    const send = () => owner.submit(base, `${page}/remove`, { form_key: formKey });
    const responses: BrowserResponse[] = [];
    const changes = await listChanges(async () => {
      responses.push(...(await Promise.all([send(), send()])), await send());
    });
    const done = `${base}/locations?done=removed`;
    expect(responses.map(({ location }) => location)).toEqual([done, done, done]);
    expect(changes).toEqual(['LocationDeleted']);
  });

  it('find their session, although they ask for the password', async () => {
    const email = 'raised@forms.example';
    const { userId } = await service.execute(new CreateUser(cli, email, 'Mira', PASSWORD));
    await service.execute(new AddMember(cli, store.accountId, email, 'staff'));
    const role = { role: 'manager', sure: 'yes', current_password: PASSWORD };
    const done = `${base}/users?done=role`;
    const changes = await listChanges(async () => {
      const locations = await submitThrice(`${base}/users`, `${base}/users/${userId}/role`, role);
      expect(locations).toEqual([done, done, done]);
    });
    expect(changes).toEqual(['member.role_changed']);
    const rule = { required: 'no', current_password: PASSWORD };
    const page = `${base}/users/second-factor`;
    expect(await submitThrice(page, page, rule)).toEqual(Array(3).fill(`${base}/users`));
  });

  it('show the secret of the first one, which is the only one', async () => {
    const secrets = {
      [`${base}/tokens`]: { action: `${base}/tokens`, fields: { name: 'till', lifetime: '30' } },
      [`${base}/users`]: {
        action: `${base}/users/invitations`,
        fields: { email: 'invited@forms.example', role: 'staff' },
      },
    };
    for (const [page, { action, fields }] of Object.entries(secrets)) {
      const formKey = readFormKey((await owner.get(page)).text);
      const send = () =>
        owner.submit(page, action, { ...fields, form_key: formKey, current_password: PASSWORD });
      const responses: BrowserResponse[] = [];
      const changes = await listChanges(async () => {
        responses.push(...(await Promise.all([send(), send()])), await send());
      });
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
      const secrets = responses.map(({ text }) => /class="secret"[^>]*>([^<]+)</.exec(text)?.[1]);
      expect(secrets[0]).toMatch(/./);
      expect(secrets).toEqual(Array(3).fill(secrets[0]));
      expect(changes).toHaveLength(1);
      const wrong = { ...fields, form_key: formKey, current_password: 'not it' };
      expect((await owner.submit(page, action, wrong)).status).toBe(422);
    }
  });

  it('lead to where the first one led, although it has ended the rights of its user', async () => {
    const email = `${store.accountId}@leaving.example`;
    const { userId } = await service.execute(new CreateUser(cli, email, 'Mira', PASSWORD));
    await service.execute(new AddMember(cli, store.accountId, email, 'owner'));
    const browser = await Browser.signedIn(service, email);
    const formKey = readFormKey((await browser.get(`${base}/users`)).text);
    const send = (step: string, fields: Fields = {}) =>
      browser.submit('/app/account', `${base}/users/${userId}/${step}`, {
        ...fields,
        form_key: formKey,
      });
    const giveUp = () => send('role', { role: 'staff', sure: 'yes' });
    const responses = [await giveUp(), await giveUp()];
    expect(responses.map(({ status, location }) => [status, location])).toEqual([
      [303, base],
      [303, base],
    ]);
    await service.execute(new ChangeRole(cli, store.accountId, userId, 'owner'));
    const left = [await send('remove'), await send('remove')];
    expect(left.map(({ status, location }) => [status, location])).toEqual([
      [303, '/app'],
      [303, '/app'],
    ]);
    expect((await browser.get(base)).status).toBe(404);
  });

  it('erase a customer once', async () => {
    const { customer } = await enrol(store);
    const page = `${base}/customers/${customer.id}/erase`;
    const done = `${base}/customers?done=erased`;
    const locations: (string | null)[] = [];
    const changes = await listChanges(async () => {
      locations.push(...(await submitThrice(page)));
    });
    expect(locations).toEqual([done, done, done]);
    expect(changes.filter((type) => type === 'CustomerErased')).toHaveLength(1);
  });

  it('create one more store once, even the last that its owner may have', async () => {
    const otherStore = await service.newStore();
    const browser = await Browser.signedIn(service, otherStore.email);
    const page = '/app/new-store';
    const fields = { name: 'Second', time_zone: 'UTC', locale: 'en', country: 'DE' };
    const last = await startService({ MAX_STORES_PER_OWNER: '2' }, service.database);
    const formKey = readFormKey((await browser.get(page)).text);
    const again = await Browser.signedIn(service, otherStore.email, last.baseUrl);
    const first = await again.submit(page, page, { ...fields, form_key: formKey });
    const second = await again.submit('/app/account', page, { ...fields, form_key: formKey });
    await last.app.close();
    expect([first.status, second.status]).toEqual([303, 303]);
    expect(second.location).toBe(first.location);
  });

  it('are refused without their key', async () => {
    const page = `${base}/locations`;
    const fields = { name: 'Nowhere', address: 'Kai 1, Hamburg', form_key: '' };
    expect((await owner.submit(`${page}/new`, page, fields)).status).toBe(403);
  });

  it('run again after they were refused', async () => {
    const page = `${base}/locations`;
    const fields = { name: '', address: 'Kai 1, Hamburg', form_key: 'refused' };
    const send = (name: string) => owner.submit(`${page}/new`, page, { ...fields, name });
    expect((await send('')).status).toBe(422);
    expect((await send('')).status).toBe(422);
    const { customer } = await enrol(store);
    const { card } = await enrol(store, { card: { name: 'Lunch' } });
    const addCard = () =>
      owner.submit(`${base}/customers/${customer.id}`, `${base}/customers/${customer.id}/cards`, {
        card_id: String(card.id),
        form_key: 'archived',
      });
    await store.post(`${store.store}/cards/${card.id}/archive`);
    expect((await addCard()).status).toBe(422);
    await store.post(`${store.store}/cards/${card.id}/unarchive`);
    expect((await addCard()).status).toBe(303);
  });

  it('run once for each way in which they were filled in', async () => {
    const page = `${base}/locations`;
    const send = (name: string) =>
      owner.submit(`${page}/new`, page, { name, address: 'Kai 1, Hamburg', form_key: 'changed' });
    const ids = [await send('One'), await send('Two'), await send('One')].map(findId);
    expect(ids[2]).toBe(ids[0]);
    expect(ids[1]).not.toBe(ids[0]);
  });

  it('run once for the same user in two browsers, and for another user again', async () => {
    const page = `${base}/locations`;
    const email = 'manager@forms.example';
    await service.execute(new CreateUser(cli, email, 'Manager', PASSWORD));
    await service.execute(new AddMember(cli, store.accountId, email, 'manager'));
    const fields = { name: 'Shared', address: 'Kai 1, Hamburg', form_key: 'shared' };
    const browsers = [
      owner,
      await Browser.signedIn(service, store.email),
      await Browser.signedIn(service, email),
    ];
    const ids: number[] = [];
    for (const browser of browsers) {
      ids.push(findId(await browser.submit(`${page}/new`, page, fields)));
    }
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).not.toBe(ids[0]);
  });

  it('go on where a process was killed in the middle', async () => {
    const { program, second } = await startSecondApi(service, store);
    const page = `${base}/cards`;
    const fields = { ...CARD_FORM, ...REWARD_FORM, name: 'Killed', form_key: 'killed' };
    const victim = await Browser.signedIn(service, store.email, second.baseUrl);
    const locker = new pg.Client(service.database.ownerUrl);
    await locker.connect();
    await locker.query('begin');
    await locker.query('lock table rewards in share mode');
    const sent = victim.upload(`${page}/new?template=coffee`, page, fields).catch(() => undefined);
    await eventually(
      () =>
        service.database.query(
          `select 1 from pg_locks where not granted and relation = 'rewards'::regclass`,
        ),
      ({ rows }) => rows.length > 0,
    );
    await program.kill('SIGKILL');
    await locker.end();
    expect(await sent).toBeUndefined();
    const again = await owner.upload(`${page}/new?template=coffee`, page, fields);
    expect(again.status).toBe(303);
    const cards = (await store.get<{ id: number; name: string }[]>(`${store.store}/cards`)).body;
    const created = cards.filter(({ name }) => name === 'Killed');
    expect(created).toHaveLength(1);
    const rewards = await store.get<unknown[]>(`${store.store}/rewards?card_id=${created[0]?.id}`);
    expect(rewards.body).toHaveLength(1);
  });
});
