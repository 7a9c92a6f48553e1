import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RecordGeocoding } from '#loyalty/locations/location.commands.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import { Browser } from '../support/browser/browser.js';
import { changeQuotas } from '../support/fixtures/quotas.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;
let list: string;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  owner = await Browser.signedIn(service, store.email);
  list = `/app/stores/${store.accountId}/locations`;
});
afterAll(() => service.stop());

async function newLocation(attributes: object = {}): Promise<LocationJson> {
  const location = { name: 'Old <Town>', address: 'Marktplatz 1, Hamburg', ...attributes };
  return (await store.post<LocationJson>(`${store.store}/locations`, { location })).body;
}

const readLocation = async ({ id }: LocationJson) =>
  (await store.get<LocationJson>(`${store.store}/locations/${id}`)).body;

describe('the location pages of the console', () => {
  it('list the locations of a store with the state of their coordinates', async () => {
    expect((await owner.get(list)).text).toContain('No locations yet');
    await newLocation();
    await newLocation({ name: 'Harbour', pin: { latitude: 53.54, longitude: 9.98 } });
    const { status, text } = await owner.get(list);
    expect(status).toBe(200);
    expect(text).toContain('Old &lt;Town&gt;');
    expect(text).toContain('Looking up');
    expect(text).toContain('Pinned');
  });

  it('pin a location by two numbers or a map link, and unpin it', async () => {
    const location = await newLocation();
    const page = `${list}/${location.id}`;
    const first = await owner.submit(page, `${page}/pin`, {
      latitude: '53,5503',
      longitude: '9.9929',
    });
    expect([first.status, first.location]).toEqual([303, `${page}?done=pinned`]);
    expect(await readLocation(location)).toMatchObject({ latitude: 53.5503, precision: 'manual' });
    expect((await owner.get(`${page}?done=pinned`)).text).toMatch(/The pin of “[^”]+” is set\./);
    const link = 'https://www.openstreetmap.org/#map=19/48.1374/11.5755';
    await owner.submit(page, `${page}/pin`, { latitude: link, longitude: '9.9929' });
    expect(await readLocation(location)).toMatchObject({ latitude: 48.1374, longitude: 11.5755 });
    await owner.submit(page, `${page}/unpin`);
    expect(await readLocation(location)).toMatchObject({
      latitude: null,
      geocode_status: 'pending',
    });
  });

  it('refuse invalid coordinates with 422, an explanation and the input', async () => {
    const location = await newLocation();
    const page = `${list}/${location.id}`;
    const wrong = await owner.submit(page, `${page}/pin`, { latitude: 'no"rth', longitude: '' });
    expect(wrong.status).toBe(422);
    expect(wrong.text).toContain('Please paste a link from a map');
    expect(wrong.text).toContain('no&quot;rth');
    expect(await readLocation(location)).toEqual(location);
  });

  it('pin a location by the link of a map, which counts before the numbers', async () => {
    const location = await newLocation();
    const page = `${list}/${location.id}`;
    const link = 'https://www.google.com/maps/@48.1374,11.5755,17z';
    await owner.submit(page, `${page}/pin`, { link, latitude: '1', longitude: '2' });
    expect(await readLocation(location)).toMatchObject({ latitude: 48.1374, longitude: 11.5755 });
  });

  it('ask before they set a pin far from the address, and warn of one that is', async () => {
    const location = await newLocation();
    const geocoding = {
      status: 'ok',
      precision: 'city',
      latitude: 53.55,
      longitude: 9.99,
    } as const;
    const context = { ...cli, accountId: store.accountId };
    await service.execute(
      new RecordGeocoding(context, location.id, location.address, geocoding, 'test'),
    );
    const page = `${list}/${location.id}`;
    const munich = { latitude: '48.1374', longitude: '11.5755' };
    const question = await owner.submit(page, `${page}/pin`, munich);
    expect(question.status).toBe(422);
    expect(question.text).toMatch(/This spot is 61\d km from Marktplatz 1, Hamburg/);
    expect(await readLocation(location)).toMatchObject({ precision: 'city' });
    const sure = await owner.submit(page, `${page}/pin`, { ...munich, sure: 'yes' });
    expect(sure.status).toBe(303);
    expect(await readLocation(location)).toMatchObject({ precision: 'manual' });
    const near = { latitude: '53.6', longitude: '10.1' };
    expect((await owner.submit(page, `${page}/pin`, near)).status).toBe(303);
  });

  it('add a location once, change it, and remove it after a question', async () => {
    const fields = { name: 'Kiosk', address: 'Kai 2, Hamburg', form_key: 'one-key' };
    const first = await owner.submit(`${list}/new`, list, fields);
    const again = await owner.submit(`${list}/new`, list, fields);
    expect([first.status, again.location]).toEqual([303, first.location]);
    const id = Number(/(\d+)\?/.exec(first.location ?? '')?.[1]);
    const page = `${list}/${id}`;
    await owner.submit(page, page, { name: 'Kiosk at the quay', address: fields.address });
    const { body } = await store.get<LocationJson>(`${store.store}/locations/${id}`);
    expect(body).toMatchObject({ name: 'Kiosk at the quay', address: 'Kai 2, Hamburg' });
    const wrong = await owner.submit(page, page, { name: '', address: 'x'.repeat(501) });
    expect(wrong.status).toBe(422);
    expect(wrong.text).toContain('Name: Please fill in this field.');
    expect(wrong.text).toContain('Address: Please use at most 500 characters.');
    expect(wrong.text).not.toContain('marked in red');
    expect((await owner.get(`${page}/remove`)).text).toContain('Remove this location?');
    const removed = await owner.submit(page, `${page}/remove`);
    expect(removed.location).toBe(`${list}?done=removed`);
    expect((await owner.get(page)).status).toBe(404);
  });

  it('say in German to a German browser what is wrong with a name', async () => {
    const form = { name: '\u3164\u200B', address: 'x'.repeat(501) };
    const german = { 'accept-language': 'de' };
    const { status, text } = await owner.submit(`${list}/new`, list, form, german);
    expect(status).toBe(422);
    expect(text).toContain('Name: Bitte dieses Feld ausfüllen.');
    expect(text).toContain('Adresse: Bitte höchstens 500 Zeichen verwenden.');
  });

  it('say what to do where no more locations are possible', async () => {
    const full = await service.newStore();
    const location = { name: 'Kiosk', address: 'Kai 2, Hamburg' };
    await full.post(`${full.store}/locations`, { location });
    await changeQuotas(service, full, { locations: 1 });
    const user = await Browser.signedIn(service, full.email);
    const path = `/app/stores/${full.accountId}/locations`;
    const german = { 'accept-language': 'de' };
    const { status, text } = await user.submit(`${path}/new`, path, location, german);
    expect(status).toBe(422);
    expect(text).toContain('Mehr Standorte sind nicht möglich. Bitte wenden Sie sich an');
  });

  it('leave out a NUL character of a name', async () => {
    const form = { name: 'Ki\0osk', address: 'Kai 2', form_key: 'nul' };
    const { location } = await owner.submit(`${list}/new`, list, form);
    const id = Number(/(\d+)\?/.exec(location ?? '')?.[1]);
    const { body } = await store.get<LocationJson>(`${store.store}/locations/${id}`);
    expect(body.name).toBe('Kiosk');
  });

  it('respond 404 to users of other stores', async () => {
    const location = await newLocation();
    const otherStore = await service.newStore();
    const stranger = await Browser.signedIn(service, otherStore.email);
    const theirs = `/app/stores/${otherStore.accountId}/locations`;
    expect((await stranger.get(list)).status).toBe(404);
    expect((await stranger.get(`${theirs}/${location.id}`)).status).toBe(404);
    const fields = { latitude: '1', longitude: '2' };
    await newLocation();
    const { body } = await otherStore.post<LocationJson>(`${otherStore.store}/locations`, {
      location: { name: 'Theirs', address: 'Kai 2' },
    });
    const form = `${theirs}/${body.id}`;
    for (const path of [`${theirs}/${location.id}`, `${list}/${location.id}`]) {
      expect((await stranger.submit(form, `${path}/pin`, fields)).status).toBe(404);
      expect((await stranger.submit(form, `${path}/unpin`)).status).toBe(404);
    }
    expect(await readLocation(location)).toEqual(location);
  });
});
