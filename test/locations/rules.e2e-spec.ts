import { describe, expect, it } from '@jest/globals';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import {
  expectFailure,
  expectRefused,
  useSharedService,
  type ContractClient,
} from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();

const attributes = { name: 'Old Town', address: 'Marktplatz 1, Hamburg' };

async function newLocation(store: ContractClient, input: object = attributes) {
  const { body } = await store.post<LocationJson>(`${store.store}/locations`, { location: input });
  return { location: body, path: `${store.store}/locations/${body.id}` };
}

/** Past the moment of the last change, so that the next one has a time of its own. */
const later = ({ updated_at }: { updated_at: string }) =>
  eventually(
    () => Date.now(),
    (now) => now > Date.parse(updated_at),
  );

/** As a look-up of the address leaves it. */
async function geocode({ id }: LocationJson): Promise<void> {
  await service.running.database.query(
    `update locations set state = state || '{"latitude": 53.55, "longitude": 9.99, "geocodeStatus": "ok"}'
     where id = $1`,
    [id],
  );
}

const typesOf = async ({ id }: LocationJson) =>
  (await service.running.history())
    .filter(({ stream }) => stream === `location-${id}`)
    .map(({ type }) => type);

describe('locations', () => {
  it('LOC-01 A location can be created with `name` and `address`', async () => {
    const store = await service.newStore();
    const response = await store.post<LocationJson>(`${store.store}/locations`, {
      location: { name: ' Old Town ', address: ' Marktplatz 1, Hamburg ' },
    });
    expect(response.status).toBe(201);
    expect(response.body).toMatchObject(attributes);
    const bare = await store.post<LocationJson>(`${store.store}/locations`, attributes);
    expect([bare.status, bare.body.address]).toEqual([201, attributes.address]);
    expectRefused(await store.post(`${store.store}/locations`, {}), 'location');
  });

  it('LOC-02 A location has exactly the documented fields, without `pin`', async () => {
    const store = await service.newStore();
    const { location } = await newLocation(store);
    expect(location).toEqual({
      id: expect.any(Number),
      account_id: store.accountId,
      ...attributes,
      latitude: null,
      longitude: null,
      geocode_status: 'pending',
      precision: null,
      warnings: [
        {
          code: 'pin_missing',
          message:
            'No card shows up near this location, because its exact position is not known. Set its pin.',
        },
      ],
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
  });

  it('LOC-03 A `name` that is missing, blank or longer than 255 is 422 `name`', async () => {
    const store = await service.newStore();
    const { path } = await newLocation(store);
    const { address } = attributes;
    const make = (location: object) => store.post(`${store.store}/locations`, { location });
    expectRefused(await make({ address }), 'name');
    for (const name of ['  ', 'x'.repeat(256)]) {
      expectRefused(await make({ address, name }), 'name');
      expectRefused(await store.patch(path, { location: { name } }), 'name');
    }
    expect((await make({ address, name: '🏪'.repeat(255) })).status).toBe(201);
  });

  it('LOC-04 An `address` that is missing or blank is 422 `address`', async () => {
    const store = await service.newStore();
    const { path } = await newLocation(store);
    const make = (location: object) => store.post(`${store.store}/locations`, { location });
    expectRefused(await make({ name: 'Old Town' }), 'address');
    expectRefused(await make({ name: 'Old Town', address: ' ' }), 'address');
    expectRefused(await make({ latitude: 1, name: ' ' }), ['address', 'name']);
    expectRefused(await store.patch(path, { location: { address: ' ' } }), 'address');
  });

  it('LOC-05 A new location has no coordinates yet and is `pending`', async () => {
    const store = await service.newStore();
    const { path } = await newLocation(store);
    expect((await store.get<LocationJson>(path)).body).toMatchObject({
      latitude: null,
      longitude: null,
      geocode_status: 'pending',
    });
  });

  it('LOC-06 Coordinates in the request are ignored', async () => {
    const store = await service.newStore();
    const coordinates = { latitude: 1.5, longitude: 'north', geocode_status: 'ok' };
    const { location, path } = await newLocation(store, { ...attributes, ...coordinates });
    expect(location).toMatchObject({ latitude: null, longitude: null, geocode_status: 'pending' });
    const changed = await store.patch(path, { location: { name: 'Harbour', ...coordinates } });
    expect(changed.body).toMatchObject({
      name: 'Harbour',
      latitude: null,
      longitude: null,
      geocode_status: 'pending',
    });
  });

  it('LOC-07 The list is in the order of ids, and shows the same as the single location', async () => {
    const store = await service.newStore();
    const otherStore = await service.newStore();
    await newLocation(otherStore);
    const createdLocations = [
      await newLocation(store),
      await newLocation(store),
      await newLocation(store),
    ];
    const list = await store.get<LocationJson[]>(`${store.store}/locations`);
    expect(list.body).toEqual(createdLocations.map(({ location }) => location));
    for (const { location, path } of createdLocations) {
      expect((await store.get(path)).body).toEqual(location);
    }
  });

  it('LOC-08 A location of another store is 404, for reading, changing and deleting', async () => {
    const store = await service.newStore();
    const otherStore = await service.newStore();
    const { location, path } = await newLocation(otherStore);
    for (const hidden of [path, `${store.store}/locations/${location.id}`]) {
      expectFailure(await store.get(hidden), 404, 'not_found');
      expectFailure(await store.patch(hidden, { location: { name: 'Mine' } }), 404, 'not_found');
      expectFailure(await store.patch(hidden, { location: { name: ' ' } }), 404, 'not_found');
      expectFailure(await store.delete(hidden), 404, 'not_found');
    }
    expect((await otherStore.get(path)).body).toEqual(location);
  });

  it('LOC-09 PATCH changes only the fields it names', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store);
    const named = await store.patch<LocationJson>(path, { location: { name: 'Harbour' } });
    expect(named.body).toEqual({
      ...location,
      name: 'Harbour',
      updated_at: named.body.updated_at,
    });
    const moved = await store.patch<LocationJson>(path, { location: { address: 'Kai 2' } });
    expect(moved.body).toEqual({
      ...named.body,
      address: 'Kai 2',
      updated_at: moved.body.updated_at,
    });
  });

  it('LOC-10 Changing `address` clears the coordinates and sets `geocode_status` to `pending` again', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store);
    await geocode(location);
    const same = await store.patch(path, { location: { address: attributes.address } });
    expect(same.body).toMatchObject({ latitude: 53.55, longitude: 9.99, geocode_status: 'ok' });
    const moved = await store.patch(path, { location: { address: 'Kai 2' } });
    expect(moved.body).toMatchObject({
      address: 'Kai 2',
      latitude: null,
      longitude: null,
      geocode_status: 'pending',
    });
    expect((await store.get(path)).body).toEqual(moved.body);
  });

  it('LOC-11 Changing `name` does not affect coordinates and `geocode_status`', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store);
    await geocode(location);
    const named = await store.patch(path, { location: { name: 'Harbour' } });
    expect(named.body).toMatchObject({
      name: 'Harbour',
      latitude: 53.55,
      longitude: 9.99,
      geocode_status: 'ok',
    });
  });

  it('LOC-12 null in a PATCH is 422 on the field', async () => {
    const store = await service.newStore();
    const { path } = await newLocation(store);
    const nothing = { location: { name: null, address: null } };
    expectRefused(await store.patch(path, nothing), ['address', 'name']);
  });

  it('LOC-13 A PATCH that is refused changes nothing', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store);
    const halfWrong = { location: { name: 'Harbour', address: null } };
    expectRefused(await store.patch(path, halfWrong), 'address');
    expect((await store.get(path)).body).toEqual(location);
    expect(await typesOf(location)).toEqual(['LocationCreated']);
  });

  it('LOC-14 A change updates `updated_at`, not `created_at`', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store);
    await later(location);
    const { body } = await store.patch<LocationJson>(path, { location: { name: 'Harbour' } });
    expect(body.created_at).toBe(location.created_at);
    expect(Date.parse(body.updated_at)).toBeGreaterThan(Date.parse(location.updated_at));
  });

  it('LOC-15 A deleted location is gone: 404, and in no list', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store);
    const remaining = await newLocation(store);
    const gone = await store.delete(path);
    expect([gone.status, gone.text]).toEqual([204, '']);
    expectFailure(await store.get(path), 404, 'not_found');
    expectFailure(await store.patch(path, { location: { name: 'Harbour' } }), 404, 'not_found');
    expectFailure(await store.delete(path), 404, 'not_found');
    expect((await store.get(`${store.store}/locations`)).body).toEqual([remaining.location]);
    expect(await typesOf(location)).toEqual(['LocationCreated', 'LocationDeleted']);
  });

  it('LOC-16 A deleted location is 422 `location_id` for a new stamp', async () => {
    const store = await service.newStore();
    const { path: card, rewards } = await enrol(store, { rewards: [1] });
    const { location, path } = await newLocation(store);
    const stamp = { stamps: 1, location_id: location.id };
    const redeem = { reward_id: rewards[0]?.id, location_id: location.id };
    expect((await store.post(`${card}/stamp`, stamp)).status).toBe(200);
    await store.delete(path);
    expectRefused(await store.post(`${card}/stamp`, stamp), 'location_id');
    expectRefused(await store.post(`${card}/redeem`, redeem), 'location_id');
    expect((await store.stamp(card)).body).toMatchObject({
      stamps_count: 2,
    });
  });

  it('LOC-17 An `address` longer than 500 is 422 `address`', async () => {
    const store = await service.newStore();
    const { path } = await newLocation(store);
    const tooLong = { location: { name: 'Old Town', address: 'x'.repeat(501) } };
    expectRefused(await store.post(`${store.store}/locations`, tooLong), 'address');
    expectRefused(await store.patch(path, tooLong), 'address');
    const address = '🏠'.repeat(500);
    expect((await store.patch<LocationJson>(path, { location: { address } })).body.address).toBe(
      address,
    );
  });

  it('LOC-18 A PATCH that sets fields to their current values changes nothing, `updated_at` included', async () => {
    const store = await service.newStore();
    const { location, path } = await newLocation(store);
    await later(location);
    for (const same of [{}, attributes, { name: ` ${attributes.name} ` }, { latitude: 1 }]) {
      expect((await store.patch(path, { location: same })).body).toEqual(location);
    }
    expect(await typesOf(location)).toEqual(['LocationCreated']);
  });

  it('LOC-19 A deleted location stays in the history of the stamps that were given there', async () => {
    const store = await service.newStore();
    const { path: card, customerCard } = await enrol(store);
    const { location, path } = await newLocation(store);
    await store.stamp(card, { location_id: location.id });
    await store.delete(path);
    const history = await service.running.history();
    const stamped = history.find(
      ({ stream, type }) =>
        stream === `customer_card-${customerCard.id}` && type === 'StampsEarned',
    );
    expect(stamped?.data['locationId']).toBe(location.id);
    const [creation] = history.filter(({ stream }) => stream === `location-${location.id}`);
    expect(creation?.data).toMatchObject(attributes);
  });
});
