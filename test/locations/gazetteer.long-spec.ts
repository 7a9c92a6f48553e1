import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { Pool } from 'pg';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import { Gazetteer } from '#outbound/geocoding/gazetteer.service.js';
import { PlacesLoader } from '#outbound/geocoding/places-loader.service.js';
import { eventually } from '../support/jest/eventually.js';
import { GeocodingFollower } from '../support/services/geocoding-dispatcher.js';
import { runNode } from '../support/services/program.js';
import { startService, type LocalService } from '../support/services/service.js';

/** Towns with their coordinates, and addresses in them. */
type Addresses = {
  findable: Record<string, { at: [number, number]; addresses: string[] }>;
  not_found: string[];
};

const ADDRESSES = JSON.parse(
  readFileSync('test/support/emulators/geocoders/addresses.json', 'utf8'),
) as Addresses;

let service: LocalService;
let follower: GeocodingFollower;

beforeAll(async () => {
  service = await startService({ GEOCODER: 'offline' });
  follower = new GeocodingFollower(service);
});
afterAll(async () => {
  await follower.stop();
  await service.stop();
});

const pool = () => service.app.get(Pool, { strict: false });

function kilometresBetween(one: [number, number], other: [number, number]): number {
  const [a, b, c, d] = [...one, ...other].map((degrees) => (degrees * Math.PI) / 180) as [
    number,
    number,
    number,
    number,
  ];
  const chord = Math.sin((c - a) / 2) ** 2 + Math.cos(a) * Math.cos(c) * Math.sin((d - b) / 2) ** 2;
  return 12_742 * Math.asin(Math.sqrt(chord));
}

/** Creates a zip file of one entry and a readme.txt, as GeoNames does. */
function createZip(name: string, text: string): Buffer {
  const parts: Buffer[] = [];
  const list: Buffer[] = [];
  let offset = 0;
  for (const [file, content] of [
    ['readme.txt', 'Readme'],
    [name, text],
  ] as const) {
    const data = deflateRawSync(content);
    const sizes = Buffer.alloc(16);
    sizes.writeUInt32LE(data.length, 4);
    sizes.writeUInt32LE(Buffer.byteLength(content), 8);
    sizes.writeUInt16LE(file.length, 12);
    const start = Buffer.from('504b03041400000008000000000000000000'.slice(0, 28), 'hex');
    const local = Buffer.concat([start, sizes, Buffer.from(file), data]);
    const entry = Buffer.concat([
      Buffer.from('504b01021400140000000800000000000000'.slice(0, 32), 'hex'),
      sizes,
      Buffer.alloc(10),
      Buffer.alloc(4),
      Buffer.from(file),
    ]);
    entry.writeUInt32LE(offset, 42);
    parts.push(local);
    list.push(entry);
    offset += local.length;
  }
  const entries = Buffer.concat(list);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(list.length, 8);
  end.writeUInt16LE(list.length, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, entries, end]);
}

const postcode = (country: string, code: string, place: string, latitude: number) =>
  [country, code, place, '', '', '', '', '', '', latitude, 10, 6].join('\t');

function runImport(name: string, content: string | Buffer) {
  const file = join(mkdtempSync(join(tmpdir(), 'inkpad-postcodes-')), name);
  writeFileSync(file, content);
  return runNode(['dist/apps/cli/cli.js', 'geocode:import', file], {
    ...service.environment,
    DATABASE_URL: service.database.url,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  });
}

describe('the bundled places', () => {
  it('geocode the first address of a store to its city', async () => {
    const store = await service.newStore();
    const address = 'Marktplatz 1, 20095 Hamburg, Germany';
    const { body } = await store.post<LocationJson>(`${store.store}/locations`, {
      location: { name: 'Old Town', address },
    });
    const location = await eventually(
      async () => (await store.get<LocationJson>(`${store.store}/locations/${body.id}`)).body,
      ({ geocode_status: status }) => status !== 'pending',
    );
    expect(location).toMatchObject({ latitude: 53.551, longitude: 9.993, precision: 'city' });
  });

  it.each(Object.entries(ADDRESSES.findable))(
    'contain %s under every name that its addresses use',
    async (_town, { at, addresses }) => {
      const gazetteer = new Gazetteer(pool());
      for (const address of addresses) {
        const place = await gazetteer.find(address);
        const distance = place && kilometresBetween(at, [place.latitude, place.longitude]);
        const isThere = distance !== null && distance <= 25;
        expect({ address, place, isThere }).toMatchObject({ isThere: true });
      }
    },
  );

  it.each(ADDRESSES.not_found)('contain no match for %j', async (address) => {
    expect(await new Gazetteer(pool()).find(address)).toBeNull();
  });

  it('are replaced as a whole, including rows that a killed process left', async () => {
    const before = await pool().query(`select load_id from gazetteer_parts where part = 'places'`);
    await pool().query(`update gazetteer_parts set version = 'former' where part = 'places'`);
    await pool().query(
      `insert into gazetteer_places values
         (nextval('gazetteer_loads'), 'xyzzyville', 'DE', '', 1, 1, 1)`,
    );
    await new PlacesLoader(pool()).load();
    const { rows } = await pool().query<{ load_id: number; loads: number }>(
      `select load_id, (select count(distinct load_id) from gazetteer_places) as loads
       from gazetteer_parts where part = 'places'`,
    );
    expect(rows[0]?.load_id).not.toBe(before.rows[0]?.load_id);
    expect(rows[0]?.loads).toBe(1);
    expect(await new Gazetteer(pool()).find('Weg 1, Xyzzyville, Germany')).toBeNull();
  });
});

describe('geocode:import', () => {
  it('imports the postcodes of a file, and geocodes imprecise addresses again', async () => {
    const store = await service.newStore();
    const { body } = await store.post<LocationJson>(`${store.store}/locations`, {
      location: { name: 'Old Town', address: 'Weg 1, 20095 Hamburg, Germany' },
    });
    const readGeocoding = async () =>
      (await store.get<LocationJson>(`${store.store}/locations/${body.id}`)).body;
    await eventually(readGeocoding, ({ precision }) => precision === 'city');
    const lines = [
      postcode('DE', '20095', 'Hamburg', 53.5501),
      postcode('DE', '20095', 'Altstadt', 53.1),
      postcode('FR', '20095', 'Ailleurs', 42),
    ];
    const { status, output } = runImport('DE.zip', createZip('DE.txt', `${lines.join('\n')}\n`));
    expect(output).toContain('"postcodes":3,"countries":["DE","FR"]');
    expect(status).toBe(0);
    const geocoding = await eventually(readGeocoding, ({ precision }) => precision === 'postcode');
    expect(geocoding).toMatchObject({ latitude: 53.5501, longitude: 10 });
    const gazetteer = new Gazetteer(pool());
    expect(await gazetteer.find('Rue 1, 20095 Ailleurs')).toMatchObject({ latitude: 42 });
  });

  it('replaces the postcodes of the countries in the file, and keeps those of others', async () => {
    expect(runImport('DE.txt', postcode('DE', '80331', 'München', 48.1351)).status).toBe(0);
    const gazetteer = new Gazetteer(pool());
    const findPrecision = async (address: string) => (await gazetteer.find(address))?.precision;
    expect(await findPrecision('Marienplatz 1, 80331 München')).toBe('postcode');
    expect(await findPrecision('Weg 1, 20095 Hamburg, Germany')).toBe('city');
    expect(await findPrecision('Rue 1, 20095 Ailleurs')).toBe('postcode');
    const { rows } = await pool().query('select count(*)::int as n from gazetteer_postcodes');
    expect(rows).toEqual([{ n: 2 }]);
  });

  it('imports nothing from an invalid file, and says what is wrong', async () => {
    const wrong = `${postcode('DE', '80331', 'München', 1)}\nno postcode\n`;
    for (const [name, content, why] of [
      ['DE.txt', wrong, /Line 2 is not a line/],
      ['DE.txt', '', /empty/],
      ['DE.zip', 'no zip', /is no zip file/],
      ['DE.zip', createZip('DE.txt', wrong).subarray(0, 80), /is no zip file/],
    ] as const) {
      const { status, output } = runImport(name, content);
      expect(output).toMatch(why);
      expect(status).toBe(1);
    }
    expect(await new Gazetteer(pool()).find('Marienplatz 1, 80331 München')).toMatchObject({
      latitude: expect.closeTo(48.1351, 3),
    });
  });
});
