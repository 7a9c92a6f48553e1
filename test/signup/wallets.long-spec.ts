import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { DecoyCardCleanup } from '#outbound/passes/decoy-card-cleanup.service.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import type { Phone } from '../support/emulators/apple/phone.mjs';
import { appleWorld, type AppleWorld } from '../support/emulators/apple/world.js';
import { eventually } from '../support/jest/eventually.js';
import { findObject, openLink, saveToGoogle } from '../support/emulators/google/passes.js';
import { startGoogleWallet, type GoogleWallet } from '../support/emulators/google/server.mjs';
import type { Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

// A wallet must not reveal whether somebody is a customer already (ADR-0051).

const ORIGIN = 'https://cards.example';

let world: AppleWorld;
let google: GoogleWallet;
let service: LocalService;
let dispatcher: Program;
let store: Client;
let poster: PosterJson;
/** The card of a new customer, and the decoy card for the same input again. */
let uuids: string[];

beforeAll(async () => {
  world = await appleWorld();
  google = await startGoogleWallet();
  service = await startService({ ...world.settings, ...google.environment, PUBLIC_URL: ORIGIN });
  dispatcher = await startDispatcher(service);
  store = await service.newStore();
  poster = await newPoster(store, {}, { initial_stamps: 2, show_member_field: true });
  uuids = [await signUp(), await signUp()];
});
afterAll(async () => {
  await dispatcher?.kill('SIGTERM');
  await service?.stop();
  await google?.stop();
  await world?.apns.stop();
});

async function signUp(): Promise<string> {
  const form = await SignupForm.open(service.baseUrl, ORIGIN, poster);
  const { location } = await form.send({ first_name: 'Grace', email: 'grace@navy.example' });
  return /\/passes\/([0-9a-f-]{36})/.exec(location)?.[1] ?? '';
}

/** Removes what differs between any two cards. */
function normalise(body: unknown): unknown {
  const text = JSON.stringify(body)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UUID')
    .replaceAll(/"[2-9A-HJ-NP-Z]{8}"/g, '"CODE"')
    .replaceAll(/"authenticationToken":"[^"]*"/g, '"TOKEN"')
    .replaceAll(/"(userInfo|version|tag)":\{?[^,}]*\}?/g, '"TAG"');
  return JSON.parse(text.replaceAll(/"(TOKEN|TAG)"/g, '"$1":0')) as unknown;
}

describe('a decoy card', () => {
  it('looks like the customer’s card in Apple Wallet, also after the template is renamed', async () => {
    const phones: Phone[] = [];
    for (const uuid of uuids) {
      const phone = world.phone(service.baseUrl);
      // Downloads the pass, checks it and registers for updates.
      expect(await phone.add(`${ORIGIN}/passes/${uuid}/apple`)).toBe(uuid);
      phones.push(phone);
    }
    const readPasses = () =>
      phones.map(
        (phone, i) => normalise(phone.shows(uuids[i] ?? '').pass) as { logoText?: string },
      );
    const [one, other] = readPasses();
    expect(other).toEqual(one);
    expect(JSON.stringify(one)).toContain('Grace');
    const path = `${store.store}/cards/${poster.card_id}`;
    await store.send('PATCH', path, { card: { name: 'Tea club' } });
    await eventually(
      () => JSON.stringify(readPasses()).split('Tea club').length,
      (count) => count > 2,
    );
    await eventually(readPasses, ([a, b]) => JSON.stringify(a) === JSON.stringify(b));
    for (const [i, phone] of phones.entries()) await phone.remove(uuids[i] ?? '');
  });

  it('looks like the customer’s card in Google Wallet', async () => {
    const lengths: number[] = [];
    for (const uuid of uuids) {
      lengths.push((await openLink(store, uuid)).length);
      await saveToGoogle(google, store, uuid);
    }
    const [one, other] = uuids.map((uuid) => normalise(findObject(google, uuid)));
    expect(other).toEqual(one);
    expect(one).toBeDefined();
    expect(lengths[1]).toBe(lengths[0]);
  });

  it('is deleted after 400 days, not before, and not while it is in a wallet', async () => {
    const setAge = (days: number, uuid: string) =>
      service.database.query(
        `update decoy_cards set state = state || jsonb_build_object('issuedAt', now() - make_interval(days => $1))
         where uuid = $2`,
        [days, uuid],
      );
    const isThere = async (uuid: string) =>
      (await fetch(`${service.baseUrl}/passes/${uuid}`)).status === 200;
    const cleanup = new DecoyCardCleanup(service.app.get(Pool, { strict: false }));
    const forget = () => cleanup.forget(new AbortController().signal);
    const [young, old] = [await signUp(), await signUp()];
    await setAge(399, young);
    await setAge(401, old);
    const [, inWallet = ''] = uuids;
    await setAge(401, inWallet);
    expect(await forget()).toBe(1);
    expect(await Promise.all([young, old, inWallet].map(isThere))).toEqual([true, false, true]);
    expect(await forget()).toBe(0);
  });

  it('is gone like the customer’s card once the customer is erased', async () => {
    const { body } = await store.get<{ customers: { id: number }[] }>(`${store.store}/customers`);
    expect(body.customers).toHaveLength(1);
    await store.post(`${store.store}/customers/${body.customers[0]?.id}/erase`);
    for (const uuid of uuids) {
      expect((await fetch(`${service.baseUrl}/passes/${uuid}`)).status).toBe(404);
    }
    const readStates = () =>
      uuids.map((uuid) => (findObject(google, uuid) as { state?: string } | undefined)?.state);
    await eventually(readStates, ([a, b]) => a !== 'ACTIVE' && a === b);
  });
});
