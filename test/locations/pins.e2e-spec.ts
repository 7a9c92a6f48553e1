import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Geocoding } from '#loyalty/locations/location.js';
import { RecordGeocoding } from '#loyalty/locations/location.commands.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import { expectRefused, useService, type ContractClient } from '../support/http/contract.js';
import { PassFollower } from '../support/services/pass-dispatcher.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useService();
let follower: PassFollower;

beforeAll(() => {
  follower = new PassFollower(service.running);
});
afterAll(() => follower.stop());

const attributes = { name: 'Old Town', address: 'Marktplatz 1, Hamburg' };
const pin = { latitude: 53.5503, longitude: 9.9929 };
const pinned = { ...pin, geocode_status: 'ok', precision: 'manual' };
const pending = { latitude: null, longitude: null, geocode_status: 'pending', precision: null };

async function newLocation(store: ContractClient, input: object = {}) {
  const { body } = await store.post<LocationJson>(`${store.store}/locations`, {
    location: { ...attributes, ...input },
  });
  return { location: body, path: `${store.store}/locations/${body.id}` };
}

/** As the dispatcher does when its geocoder has responded. */
function geocoded(location: LocationJson, result: Geocoding, address = location.address) {
  const context = {
    accountId: location.account_id,
    actor: { type: 'system', id: 0 } as const,
    channel: 'system' as const,
    requestId: 'geocoding',
  };
  const command = new RecordGeocoding(context, location.id, address, result, 'spec');
  return service.running.execute(command);
}

const geocodedAs = (precision: 'rooftop' | 'street' | 'postcode' | 'city'): Geocoding => ({
  status: 'ok',
  latitude: 53.55,
  longitude: 9.99,
  precision,
});

describe('pins of locations', () => {
  it("LOC-21 A `pin` on create or in a PATCH says where the shop is: `latitude` and `longitude` are the pin's, `geocode_status` is `ok` and `precision` `manual`", async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store, { pin });
    expect(location).toMatchObject({ ...attributes, ...pinned });
    expect((await store.get(path)).body).toEqual(location);
    const { path: later } = await newLocation(store);
    const texts = { latitude: '-90', longitude: ' 180.0 ' };
    const moved = await store.patch(later, { location: { pin: texts } });
    expect(moved.body).toMatchObject({ ...pinned, latitude: -90, longitude: 180 });
    expect((await store.get(later)).body).toEqual(moved.body);
    const bare = await store.patch(later, { pin });
    expect(bare.body).toMatchObject(pinned);
  });

  it('LOC-22 `pin` null in a PATCH removes the pin: there are no coordinates, and `geocode_status` is `pending` again', async () => {
    const store = await service.newStore();
    const { path } = await newLocation(store, { pin });
    const removed = await store.patch<LocationJson>(path, { location: { pin: null } });
    expect(removed.body).toMatchObject(pending);
    expect((await store.patch(path, { location: { pin: null } })).body).toEqual(removed.body);
    const without = await newLocation(store, { pin: null });
    expect(without.location).toMatchObject(pending);
  });

  it('LOC-23 A `pin` that is no object, lacks `latitude` or `longitude`, or is out of range is 422 `pin`', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store, { pin });
    const unfit = [
      true,
      '53.5503, 9.9929',
      [53.5503, 9.9929],
      {},
      { latitude: 53.5503 },
      { ...pin, longitude: null },
      { ...pin, latitude: 'north' },
      { ...pin, latitude: 90.1 },
      { ...pin, longitude: -180.1 },
    ];
    for (const wrong of unfit) {
      const body = { location: { ...attributes, pin: wrong } };
      expectRefused(await store.post(`${store.store}/locations`, body), 'pin');
      expectRefused(await store.patch(path, { location: { pin: wrong } }), 'pin');
    }
    expect((await store.get(path)).body).toEqual(location);
  });

  it('LOC-24 Changing `address` removes the pin; a `pin` in the same request stays', async () => {
    const store = await service.newStore();
    const { path } = await newLocation(store, { pin });
    const both = await store.patch(path, { location: { address: 'Kai 2', pin } });
    expect(both.body).toMatchObject({ address: 'Kai 2', ...pinned });
    const moved = await store.patch(path, { location: { address: 'Kai 3' } });
    expect(moved.body).toMatchObject({ address: 'Kai 3', ...pending });
  });

  it('LOC-25 A `pin` where the pin already is changes nothing, `updated_at` included', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store, { pin });
    expect((await store.patch(path, { location: { pin } })).body).toEqual(location);
  });

  it('LOC-26 Coordinates found for the address have the `precision` of the result; without coordinates it is null', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store);
    const readLocation = async () => (await store.get<LocationJson>(path)).body;
    for (const precision of ['city', 'postcode', 'street', 'rooftop'] as const) {
      await geocoded(location, geocodedAs(precision));
      expect(await readLocation()).toMatchObject({
        latitude: 53.55,
        longitude: 9.99,
        geocode_status: 'ok',
        precision,
      });
    }
    await store.patch(path, { location: { address: 'Kai 2' } });
    for (const status of ['not_found', 'failed'] as const) {
      await geocoded(await readLocation(), { status });
      expect(await readLocation()).toMatchObject({ ...pending, geocode_status: status });
    }
  });

  it('LOC-31 Without a `precision` of LOC-28 no card shows up near the location, and its `warnings` say so with the code `pin_missing`', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store);
    const listCodes = async () =>
      (await store.get<LocationJson>(path)).body.warnings.map(({ code }) => code);
    expect(location.warnings.map(({ code }) => code)).toEqual(['pin_missing']);
    for (const [precision, codes] of [
      ['city', ['pin_missing']],
      ['postcode', ['pin_missing']],
      ['street', []],
      ['rooftop', []],
    ] as const) {
      await geocoded(location, geocodedAs(precision));
      expect([precision, await listCodes()]).toEqual([precision, codes]);
    }
    const { body } = await store.patch<LocationJson>(path, { location: { pin } });
    expect(body.warnings).toEqual([]);
    const moved = await store.patch<LocationJson>(path, { location: { pin: null } });
    expect(moved.body.warnings).toHaveLength(1);
  });

  it('LOC-27 A result for an address that has been changed meanwhile, or that arrives after a pin, changes nothing', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store);
    const moved = await store.patch<LocationJson>(path, { location: { address: 'Kai 2' } });
    await geocoded(location, geocodedAs('rooftop'));
    expect((await store.get(path)).body).toEqual(moved.body);
    const exact = await store.patch<LocationJson>(path, { location: { pin } });
    await geocoded(moved.body, geocodedAs('rooftop'));
    expect((await store.get(path)).body).toEqual(exact.body);
  });

  it('LOC-28 Wallet passes hold the coordinates of locations whose `precision` is `manual`, `rooftop` or `street`, and no others', async () => {
    const store = await service.newStore();
    const { customerCard } = await enrol(store);
    await newLocation(store, { name: 'Pinned', pin });
    for (const precision of ['city', 'postcode', 'street', 'rooftop'] as const) {
      const { location } = await newLocation(store, { name: precision });
      await geocoded(location, geocodedAs(precision));
    }
    const content = (await follower.contents.load([customerCard.id])).get(customerCard.id);
    expect(content?.locations.map(({ name }) => name)).toEqual(['Pinned', 'street', 'rooftop']);
  });

  it("LOC-29 A changed pin updates the store's wallet passes without a notification to their holders", async () => {
    const store = await service.newStore();
    const { customerCard } = await enrol(store);
    const { path } = await newLocation(store);
    await follower.waitUntilCaughtUp();
    await follower.open(customerCard.uuid);
    const before = await follower.tag(customerCard.id);
    await store.patch(path, { location: { pin } });
    await follower.waitUntilCaughtUp();
    const after = await follower.passes.find(customerCard.id);
    expect(after?.tag).toBeGreaterThan(before);
    expect(after?.notification).toBeNull();
    const { rows } = await service.running.database.query(
      `select 1 from pass_updates where target = '${customerCard.id}'`,
    );
    expect(rows).toHaveLength(1);
  });
});
