import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LocationJson } from '#locations/location.dto.js';
import { eventually } from './support/jest/eventually.js';
import { GeocodingFollower } from './support/services/geocoding-dispatcher.js';
import { GeocoderEmulator, type KnownPlace } from './support/emulators/geocoders/server.js';
import { startService, type Client, type LocalService } from './support/services/service.js';

const HOUSE: KnownPlace = { latitude: 53.5503, longitude: 9.9929, as: 'house' };
const AT_HOUSE = {
  latitude: 53.5503,
  longitude: 9.9929,
  geocode_status: 'ok',
  precision: 'rooftop',
};

let emulator: GeocoderEmulator;
let service: LocalService;
let follower: GeocodingFollower;
let before: { store: Client; location: LocationJson };

beforeAll(async () => {
  emulator = await GeocoderEmulator.start('nominatim', 4);
  service = await startService(emulator.settings);
  const store = await service.newStore();
  emulator.places.set('Marktplatz 1, before', HOUSE);
  before = { store, location: await newLocation(store, 'Marktplatz 1, before') };
  follower = new GeocodingFollower(service);
});
afterAll(async () => {
  await follower.stop();
  await service.stop();
  await emulator.stop();
});

async function newLocation(store: Client, address: string): Promise<LocationJson> {
  const location = { name: 'Old Town', address };
  return (await store.post<LocationJson>(`${store.store}/locations`, { location })).body;
}

const readLocation = async (store: Client, { id }: LocationJson) =>
  (await store.get<LocationJson>(`${store.store}/locations/${id}`)).body;

const settled = (store: Client, location: LocationJson) =>
  eventually(
    () => readLocation(store, location),
    ({ geocode_status: status }) => status !== 'pending',
  );

const askedFor = (address: string) =>
  emulator.requests.filter((one) => one.address === address).length;

const queued = async ({ id }: LocationJson) =>
  (
    await service.database.query<{ attempts: number; seconds: number; last_error: string | null }>(
      `select attempts, extract(epoch from due_at - now())::float8 as seconds, last_error
       from geocoding_queue where location_id = $1`,
      [id],
    )
  ).rows[0];

/** Until an attempt has failed, and the next one is due after this many seconds: a lease is 60. */
const putOff = (location: LocationJson, seconds: number) =>
  eventually(
    () => queued(location),
    (row) => row !== undefined && row.seconds > 0.7 * seconds && row.seconds <= seconds,
  );

const dueNow = ({ id }: LocationJson) =>
  service.database.query(`update geocoding_queue set due_at = now() where location_id = $1`, [id]);

describe('geocoding', () => {
  it('finds addresses, including those from before it was enabled, and names the geocoder', async () => {
    const { store, location } = before;
    expect(await settled(store, location)).toMatchObject(AT_HOUSE);
    const history = await service.history();
    const geocodedEvent = history.find(
      ({ stream, type }) => stream === `location-${location.id}` && type === 'LocationGeocoded',
    );
    expect(geocodedEvent?.data).toMatchObject({ precision: 'rooftop', provider: 'nominatim' });
    expect(geocodedEvent?.meta).toMatchObject({
      channel: 'system',
      actor: { type: 'system', id: 0 },
    });
  });

  it('queries a server once for an address, identifies itself, and stays within the rate limit', async () => {
    const [one, other] = [await service.newStore(), await service.newStore()];
    const streets = [1, 2, 3].map((i) => `Marktplatz 1, ${i}`);
    for (const street of streets) emulator.places.set(street, HOUSE);
    const creations = [
      ...(await Promise.all(streets.map((street) => newLocation(one, street)))),
      await newLocation(one, 'MARKTPLATZ 1 , 1'),
    ];
    const far = await newLocation(other, 'Marktplatz 1, 1');
    for (const location of creations) expect(await settled(one, location)).toMatchObject(AT_HOUSE);
    expect(await settled(other, far)).toMatchObject(AT_HOUSE);
    expect(askedFor('Marktplatz 1, 1') + askedFor('MARKTPLATZ 1 , 1')).toBe(1);
    expect(emulator.refused).toEqual([]);
    expect(emulator.requests.at(-1)?.userAgent).toMatch(/^Inkpad\/\S+ \(maps@shop[.]example\)$/);
  });

  it('does not query again for an address that was not found', async () => {
    const store = await service.newStore();
    const location = await newLocation(store, 'Nowhere 1');
    expect(await settled(store, location)).toMatchObject({
      latitude: null,
      geocode_status: 'not_found',
      precision: null,
    });
    await eventually(
      () => queued(location),
      (row) => row === undefined,
    );
  });

  it('retries later when the server fails or responds with something else', async () => {
    const store = await service.newStore();
    emulator.places.set('Marktplatz 1, later', HOUSE);
    emulator.faults.push({ status: 500 });
    const location = await newLocation(store, 'Marktplatz 1, later');
    expect(await putOff(location, 30)).toMatchObject({ last_error: 'answered 500' });
    const bodies = [
      ['<html>', 120],
      ['[{"lat": "x"}]', 600],
      ['x'.repeat(300_000), 3600],
    ] as const;
    for (const [body, seconds] of bodies) {
      emulator.faults.push({ status: 200, body });
      await dueNow(location);
      await putOff(location, seconds);
    }
    expect(await readLocation(store, location)).toMatchObject({ geocode_status: 'pending' });
    await dueNow(location);
    expect(await settled(store, location)).toMatchObject(AT_HOUSE);
  });

  it('gives up after the last attempt, until an operator queues all addresses again', async () => {
    const store = await service.newStore();
    emulator.places.set('Marktplatz 1, broken', HOUSE);
    emulator.faults.push({ status: 403 });
    const location = await newLocation(store, 'Marktplatz 1, broken');
    await putOff(location, 30);
    emulator.faults.push({ status: 403 });
    await service.database.query(
      `update geocoding_queue set attempts = 6, due_at = now() where location_id = $1`,
      [location.id],
    );
    expect(await settled(store, location)).toMatchObject({ geocode_status: 'failed' });
    await follower.queue.enqueueImprecise();
    await eventually(
      () => readLocation(store, location),
      ({ geocode_status: status }) => status === 'ok',
    );
  });

  it('applies a result only to the address that was asked for', async () => {
    const store = await service.newStore();
    const path = `${store.store}/locations`;
    emulator.places.set('Marktplatz 1, former', HOUSE);
    emulator.places.set('Kai 2', { latitude: 53.54, longitude: 9.98, as: 'street' });
    let moved: Promise<unknown> | undefined;
    const location = await newLocation(store, 'Pending');
    emulator.onRequest = async (address) => {
      if (address !== 'Marktplatz 1, former') return;
      moved ??= store.send('PATCH', `${path}/${location.id}`, { location: { address: 'Kai 2' } });
      await moved;
    };
    await store.send('PATCH', `${path}/${location.id}`, {
      location: { address: 'Marktplatz 1, former' },
    });
    const after = await eventually(
      () => readLocation(store, location),
      ({ geocode_status: status, address }) => status === 'ok' && address === 'Kai 2',
    );
    expect(after).toMatchObject({ latitude: 53.54, longitude: 9.98, precision: 'street' });
  });

  it('leaves pins alone, and looks the address up once the pin is gone', async () => {
    const store = await service.newStore();
    emulator.places.set('Marktplatz 1, pinned', HOUSE);
    const { body: location } = await store.post<LocationJson>(`${store.store}/locations`, {
      location: {
        name: 'Old Town',
        address: 'Marktplatz 1, pinned',
        pin: { latitude: 1, longitude: 2 },
      },
    });
    const unpinned = await newLocation(store, 'Marktplatz 1, 1');
    await settled(store, unpinned);
    expect(askedFor('Marktplatz 1, pinned')).toBe(0);
    await store.send('PATCH', `${store.store}/locations/${location.id}`, {
      location: { pin: null },
    });
    expect(await settled(store, location)).toMatchObject(AT_HOUSE);
  });

  it('is measured', async () => {
    const text = await follower.registry.metrics();
    expect(text).toMatch(/inkpad_geocoding_answers_total[{].*result="found".*[}] \d+/);
    expect(text).toMatch(/inkpad_geocoding_oldest_due_seconds 0/);
  });
});

describe.each(['photon', 'pelias'] as const)('a server that speaks %s', (protocol) => {
  it('is queried as its documentation says', async () => {
    const other = await GeocoderEmulator.start(protocol);
    other.places.set('Marktplatz 1', HOUSE);
    const { database } = service;
    const settings = { ...service.environment, ...other.settings };
    const api = await startService(settings, { ...database, close: async () => undefined });
    await follower.stop();
    const next = new GeocodingFollower(api);
    const store = await api.newStore();
    const location = await newLocation(store, 'Marktplatz 1');
    expect(await settled(store, location)).toMatchObject(AT_HOUSE);
    expect(other.refused).toEqual([]);
    await next.stop();
    await api.stop();
    await other.stop();
  });
});
