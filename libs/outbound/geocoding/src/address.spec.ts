import { describe, expect, it } from '@jest/globals';
import { readAddress, withoutGuess } from './address.js';

describe('readAddress', () => {
  it('takes country and town from the end, and leaves the street out', () => {
    expect(readAddress('Marktplatz 1, 20095 Hamburg, Germany')).toEqual({
      country: 'DE',
      countryIsGuess: false,
      places: ['hamburg'],
      postcodes: ['20095'],
      states: [],
    });
    expect(readAddress('Calle Mayor 1\n28013 Madrid\nEspaña')).toMatchObject({
      country: 'ES',
      places: ['madrid'],
    });
  });

  it.each([
    ['Kärntner Straße 1, 1010 Wien, Österreich', 'AT', 'wien'],
    ['Václavské náměstí 1, 110 00 Praha, Česko', 'CZ', 'praha'],
    ['Rua Augusta 1, 1100-053 Lisboa, Portugal', 'PT', 'lisboa'],
    ['Via Roma 1, 50123 Firenze FI, ITALIA', 'IT', 'firenze'],
    ['Spui 1, 2511 BL Den Haag, Nederland', 'NL', 'den haag'],
    ['Römerberg 1, 60311 Frankfurt am Main, DE', 'DE', 'frankfurt am main'],
    ['10 Downing Street, London SW1A 2AA, U.K.', 'GB', 'london'],
    ['Orchard Road 1, 238823, Singapore', 'SG', 'singapore'],
    ['BAHNHOFSTRASSE 1, 9000 ST. GALLEN, SWITZERLAND', 'CH', 'st gallen'],
  ])('reads %s', (text, country, place) => {
    const address = readAddress(text);
    expect(address.country).toBe(country);
    expect(address.places[0]).toBe(place);
  });

  it('tries longer names before shorter ones, and without commas all of the words', () => {
    expect(readAddress('Broadway 1, New York').places).toEqual(['new york', 'york', 'new']);
    expect(readAddress('Hauptstr. 1 Wien').places).toEqual(['hauptstr wien', 'wien', 'hauptstr']);
    expect(readAddress('Kai 2, Hamburg-Altona').places).toEqual([
      'hamburg altona',
      'altona',
      'hamburg',
    ]);
  });

  it('keeps states apart from towns and from countries', () => {
    const address = readAddress('1 Main St, Dover, DE');
    expect(address).toMatchObject({ country: 'DE', countryIsGuess: true, places: ['dover'] });
    expect(address.states).toEqual(['DE']);
    expect(withoutGuess(address)).toMatchObject({ country: null, places: ['dover'] });
    expect(readAddress('1 Main St, Springfield, IL 62701, USA')).toMatchObject({
      country: 'US',
      places: ['springfield'],
      states: ['IL', 'USA'],
    });
  });

  it('reads postcodes of one and of two words', () => {
    expect(readAddress('A, London SW1A 2AA, UK').postcodes).toEqual(
      expect.arrayContaining(['SW1A2AA', 'SW1A']),
    );
    expect(readAddress('Spui 1, 2511 BL Den Haag').postcodes).toEqual(
      expect.arrayContaining(['2511BL', '2511']),
    );
    expect(readAddress('Weg 1, Hamburg').postcodes).toEqual([]);
  });

  it('has an end for whatever is given', () => {
    const long = 'word '.repeat(100);
    expect(readAddress(long).places.length).toBeLessThanOrEqual(100);
    expect(readAddress(',,;\n').places).toEqual([]);
    expect(readAddress('🏪').places).toEqual([]);
  });
});
