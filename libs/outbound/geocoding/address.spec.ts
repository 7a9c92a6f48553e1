import { describe, expect, it } from '@jest/globals';
import { parseAddress } from './address.js';

/** Finds the first reading that is not about a whole name, and its parts that may be the town. */
function parseFirst(text: string) {
  const first = parseAddress(text).readings.find(({ isWhole }) => !isWhole);
  return {
    scopes: first?.scopes.map(({ country, region }) => `${country}${region ? `-${region}` : ''}`),
    parts: first?.parts.map(({ words }) => words.join(' ')),
  };
}

describe('parseAddress', () => {
  it.each([
    ['Marktplatz 1, 20095 Hamburg, Germany', ['DE-04'], ['Marktplatz']],
    ['Calle Mayor 1\n28013 Toledo\nEspaña', ['ES-54'], ['Calle Mayor']],
    ['389 Congress St, Portland, Maine', ['US-ME'], ['Congress St', 'Portland']],
    ['1 Main St, Springfield, IL 62701, USA', ['US-IL'], ['Main St', 'Springfield']],
    ['1 King St, Newcastle NSW 2300, Australia', ['AU-NSW'], ['King St', 'Newcastle']],
    ['Via Roma 1, 20121 Milano (MI), Italia', ['IT-09'], ['Via Roma', 'Milano']],
    [
      'Av. Paulista, 1578 - Centro, São Paulo - SP',
      ['IT-08', 'BR-27'],
      ['Av. Paulista', 'Centro', 'São Paulo'],
    ],
    ['Av. Vallarta 1, 44100 Guadalajara, Jal., México', ['MX-14'], ['Av. Vallarta', 'Guadalajara']],
    ['1 MG Road, Pune, Maharashtra 411001', ['IN-16'], ['MG Road', 'Pune']],
    ['1 Bridge Street, Reading, Berkshire', ['GB-ENG'], ['Bridge Street', 'Reading']],
    ['Россия, 125009, Москва, ул. Тверская, д. 1', ['RU'], ['Москва', 'ул. Тверская', 'д.']],
    ['Kärntner Str. 1, A-1010 Wien', ['AT-09'], ['Kärntner Str.']],
    ['1051 Budapest, Széchenyi tér 5.', [], ['Budapest', 'Széchenyi tér']],
  ])('reads %s', (text, scopes, parts) => {
    expect(parseFirst(text)).toEqual({ scopes, parts });
  });

  it('prefers a state to a country for two letters', () => {
    const scopes = parseAddress('1 Main St, Dover, DE').readings.map((reading) => reading.scopes);
    expect(scopes).toEqual([[{ country: 'US', region: 'DE' }], [{ country: 'DE', region: null }]]);
  });

  it('excludes other countries when one is named in words', () => {
    const { readings } = parseAddress('1 Main St, Xyzzyville, Ontario, Canada');
    expect(readings.flatMap(({ scopes }) => scopes)).toEqual([{ country: 'CA', region: 'ON' }]);
  });

  it('reads postcodes of one and of two words', () => {
    expect(parseAddress('A, London SW1A 2AA, UK').postcodes).toEqual(
      expect.arrayContaining(['SW1A2AA', 'SW1A']),
    );
    expect(parseAddress('Spui 1, 2511 BL Den Haag').postcodes).toEqual(
      expect.arrayContaining(['2511BL', '2511']),
    );
    expect(parseAddress('1051 Budapest, Széchenyi tér 5.').postcodes).toContain('1051');
    expect(parseAddress('Weg 1, Hamburg').postcodes).toEqual([]);
  });

  it('bounds the words and parts of any input', () => {
    const long = 'word '.repeat(100);
    expect(parseAddress(long).readings[0]?.parts[0]?.words.length).toBeLessThanOrEqual(20);
    expect(parseAddress(`${'a, '.repeat(100)}b`).readings[0]?.parts.length).toBeLessThanOrEqual(12);
    expect(parseAddress(',,;\n').readings).toEqual([]);
    expect(parseAddress('🏪').readings).toEqual([]);
  });
});
