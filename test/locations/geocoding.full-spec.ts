import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import { eventually } from '../support/jest/eventually.js';
import { GeocodingFollower } from '../support/services/geocoding-dispatcher.js';
import { GeocoderEmulator, type KnownPlace } from '../support/emulators/geocoders/server.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

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

const untilGeocoded = (store: Client, location: LocationJson) =>
  eventually(
    () => readLocation(store, location),
    ({ geocode_status: status }) => status !== 'pending',
  );

const countRequests = (address: string) =>
  emulator.requests.filter((request) => request.address === address).length;

const readQueueRow = async ({ id }: LocationJson) =>
  (
    await service.database.query<{ attempts: number; seconds: number; reason: string | null }>(
      `select attempts, extract(epoch from due_at - now())::float8 as seconds, reason
       from geocoding_queue where location_id = $1`,
      [id],
    )
  ).rows[0];

/** Waits until an attempt has failed, and the next one is due after this many seconds: a lease is 60. */
const untilPostponed = (location: LocationJson, seconds: number) =>
  eventually(
    () => readQueueRow(location),
    (row) => row !== undefined && row.seconds > 0.7 * seconds && row.seconds <= seconds,
  );

const makeDue = ({ id }: LocationJson) =>
  service.database.query(`update geocoding_queue set due_at = now() where location_id = $1`, [id]);

describe('geocoding', () => {
  it('finds addresses that were entered before it was enabled, and records the provider in the event', async () => {
    const { store, location } = before;
    expect(await untilGeocoded(store, location)).toMatchObject(AT_HOUSE);
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
    for (const location of creations)
      expect(await untilGeocoded(one, location)).toMatchObject(AT_HOUSE);
    expect(await untilGeocoded(other, far)).toMatchObject(AT_HOUSE);
    expect(countRequests('Marktplatz 1, 1') + countRequests('MARKTPLATZ 1 , 1')).toBe(1);
    expect(emulator.refused).toEqual([]);
    expect(emulator.requests.at(-1)?.userAgent).toMatch(/^Inkpad\/\S+ \(maps@shop[.]example\)$/);
  });

  it('sets not_found for an unknown address, and takes it off the queue', async () => {
    const store = await service.newStore();
    const location = await newLocation(store, 'Nowhere 1');
    expect(await untilGeocoded(store, location)).toMatchObject({
      latitude: null,
      geocode_status: 'not_found',
      precision: null,
    });
    await eventually(
      () => readQueueRow(location),
      (row) => row === undefined,
    );
  });

  it('retries with growing delays when the server fails or its response is invalid', async () => {
    const store = await service.newStore();
    emulator.places.set('Marktplatz 1, later', HOUSE);
    emulator.faults.push({ status: 500 });
    const location = await newLocation(store, 'Marktplatz 1, later');
    expect(await untilPostponed(location, 30)).toMatchObject({ reason: 'responded with 500' });
    const bodies = [
      ['<html>', 120],
      ['[{"lat": "x"}]', 600],
      ['x'.repeat(300_000), 3600],
    ] as const;
    for (const [body, seconds] of bodies) {
      emulator.faults.push({ status: 200, body });
      await makeDue(location);
      await untilPostponed(location, seconds);
    }
    expect(await readLocation(store, location)).toMatchObject({ geocode_status: 'pending' });
    await makeDue(location);
    expect(await untilGeocoded(store, location)).toMatchObject(AT_HOUSE);
  });

  it('fails after the last attempt, until an operator enqueues all imprecise addresses', async () => {
    const store = await service.newStore();
    emulator.places.set('Marktplatz 1, broken', HOUSE);
    emulator.faults.push({ status: 403 });
    const location = await newLocation(store, 'Marktplatz 1, broken');
    await untilPostponed(location, 30);
    emulator.faults.push({ status: 403 });
    await service.database.query(
      `update geocoding_queue set attempts = 6, due_at = now() where location_id = $1`,
      [location.id],
    );
    expect(await untilGeocoded(store, location)).toMatchObject({ geocode_status: 'failed' });
    await follower.queue.enqueueImprecise();
    await eventually(
      () => readLocation(store, location),
      ({ geocode_status: status }) => status === 'ok',
    );
  });

  it('discards a result when the address has changed since the query', async () => {
    const store = await service.newStore();
    const path = `${store.store}/locations`;
    emulator.places.set('Marktplatz 1, former', HOUSE);
    emulator.places.set('Kai 2', { latitude: 53.54, longitude: 9.98, as: 'street' });
    let move: Promise<unknown> | undefined;
    const location = await newLocation(store, 'Pending');
    emulator.onRequest = async (address) => {
      if (address !== 'Marktplatz 1, former') return;
      move ??= store.send('PATCH', `${path}/${location.id}`, { location: { address: 'Kai 2' } });
      await move;
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

  it('does not query for a pinned location until its pin is removed', async () => {
    const store = await service.newStore();
    emulator.places.set('Marktplatz 1, pinned', HOUSE);
    const { body: location } = await store.post<LocationJson>(`${store.store}/locations`, {
      location: {
        name: 'Old Town',
        address: 'Marktplatz 1, pinned',
        pin: { latitude: 1, longitude: 2 },
      },
    });
    const otherLocation = await newLocation(store, 'Marktplatz 1, 1');
    await untilGeocoded(store, otherLocation);
    expect(countRequests('Marktplatz 1, pinned')).toBe(0);
    await store.send('PATCH', `${store.store}/locations/${location.id}`, {
      location: { pin: null },
    });
    expect(await untilGeocoded(store, location)).toMatchObject(AT_HOUSE);
  });

  it('counts results and reports the oldest due address in its metrics', async () => {
    const text = await follower.registry.metrics();
    expect(text).toMatch(/inkpad_geocoding_lookups_total[{].*result="found".*[}] \d+/);
    expect(text).toMatch(/inkpad_geocoding_oldest_due_seconds 0/);
  });
});

describe.each(['photon', 'pelias'] as const)('a %s server', (protocol) => {
  it('is queried by the rules of its protocol', async () => {
    const otherEmulator = await GeocoderEmulator.start(protocol);
    otherEmulator.places.set('Marktplatz 1', HOUSE);
    const { database } = service;
    const settings = { ...service.environment, ...otherEmulator.settings };
    const api = await startService(settings, { ...database, close: async () => undefined });
    await follower.stop();
    const next = new GeocodingFollower(api);
    const store = await api.newStore();
    const location = await newLocation(store, 'Marktplatz 1');
    expect(await untilGeocoded(store, location)).toMatchObject(AT_HOUSE);
    expect(otherEmulator.refused).toEqual([]);
    await next.stop();
    await api.stop();
    await otherEmulator.stop();
  });
});
