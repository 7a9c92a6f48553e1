import type { Reading, Scope } from './address.js';
import type { AddressPart } from './address-part.js';
import { toPlaceKey } from './place-key.js';

export type Place = {
  key: string;
  country: string;
  state: string;
  population: number;
  latitude: number;
  longitude: number;
};

/** Frankfurt am Main, Villanueva de la Serena. */
const MAX_WORDS = 5;
/** A single word of a name counts as a town only above this population: Altona in Hamburg-Altona, but not Springs. */
const MIN_POPULATION = 15_000;
const MIN_POPULATION_ANYWHERE = 100_000;
/** Regions that are a city: a name before one of them is one of its districts. */
const CITY_REGIONS = new Set(
  'AT-09 AU-ACT BR-07 CH-BS CH-GE DE-03 DE-04 DE-16 ES-29 ES-CE ES-ML IN-05 IN-07 MX-09 US-DC'.split(
    ' ',
  ),
);
/** Countries that are a town. */
const CITY_STATES = new Set(['GI', 'HK', 'MC', 'MO', 'SG', 'SM', 'VA']);
/** Abbreviations and their full forms. */
const SPELLINGS: Record<string, string[]> = {
  st: ['saint', 'sankt'],
  saint: ['st'],
  sankt: ['st'],
  ste: ['sainte'],
  sta: ['santa'],
  sto: ['santo'],
  ft: ['fort'],
  mt: ['mount'],
};

/** Lists the keys of everything that may be a town in the readings. */
export function listPlaceKeys(readings: Reading[]): string[] {
  const keys = readings.flatMap(({ parts, scopeName }) => [
    ...parts.flatMap((part) => [
      ...listRuns(part.words),
      ...listSpellings(part.tail),
      ...listRuns(part.head),
    ]),
    ...(scopeName === null ? [] : [scopeName]),
  ]);
  return [...new Set(keys)];
}

/** Chooses the town of the first reading that has one. */
export function choosePlace(readings: Reading[], places: Place[]): Place | undefined {
  for (const reading of readings) {
    const place = new PlaceChoice(reading, places).choose();
    if (place) return place;
  }
  return undefined;
}

class PlaceChoice {
  private readonly byKey = new Map<string, Place>();

  constructor(
    private readonly reading: Reading,
    places: Place[],
  ) {
    const { scopes } = reading;
    for (const place of places) {
      if (scopes.length > 0 && !scopes.some((scope) => isIn(place, scope))) continue;
      const existing = this.byKey.get(place.key);
      if (!existing || existing.population < place.population) this.byKey.set(place.key, place);
    }
  }

  choose(): Place | undefined {
    const { parts, isWhole, scopes } = this.reading;
    const [first, ...others] = parts.filter(({ kind }) => kind === 'town');
    // The first name is a store's or a street's, unless only streets follow or it has a postcode.
    const isLeading = first !== undefined && first === parts[0] && !first.hasPostcode;
    const towns = (isLeading || !first ? others : [first, ...others]).toReversed();
    towns.sort((a, b) => Number(b.hasPostcode) - Number(a.hasPostcode));
    const leading = isLeading && first ? [first] : [];
    if (isWhole) return this.findByWholeName([...towns, ...leading]);
    const town = scopes.length > 0 ? this.findByWholeName(towns) : this.findLargest(towns);
    const place = town ?? this.findByRun(towns);
    if (place) return place;
    const leadingPlace = this.findByWholeName(leading);
    if (leadingPlace && (towns.length === 0 || this.isWellKnown(leadingPlace.population)))
      return leadingPlace;
    if (towns.length === 0) {
      const fallback = this.findByRun(leading) ?? this.findAfterStreets();
      if (fallback) return fallback;
    }
    const unresolvedCount = towns.length + leading.length;
    return unresolvedCount === 0 || this.isCity() ? this.findScopePlace() : undefined;
  }

  private findByWholeName(parts: AddressPart[]): Place | undefined {
    for (const part of parts) {
      const place = this.findFirst(listSpellings(part.words));
      if (place) return place;
    }
    return undefined;
  }

  /** Finds the largest town, for readings without a country: the town, and not a district named like another town. */
  private findLargest(parts: AddressPart[]): Place | undefined {
    const [leading] = parts;
    if (leading?.hasPostcode)
      return this.findByWholeName([leading]) ?? this.findLargest(parts.slice(1));
    const places = parts.map((part) => this.findByWholeName([part]));
    // An unknown name after it may be a region elsewhere.
    const unknownAt = places.indexOf(undefined);
    return places
      .filter((place) => place !== undefined)
      .filter(({ population }, i) => unknownAt < 0 || i < unknownAt || this.isWellKnown(population))
      .sort((a, b) => b.population - a.population)[0];
  }

  private findByRun(parts: AddressPart[]): Place | undefined {
    for (const { words } of parts) {
      for (const run of listRuns(words)) {
        const place = this.byKey.get(run);
        if (place && this.isWellKnown(place.population)) return place;
      }
    }
    return undefined;
  }

  /** Finds the longest run of words at the start of a part. */
  private findByBeginning(parts: AddressPart[]): Place | undefined {
    const towns = parts.flatMap(({ words }) =>
      words.map((_, i) => ({ words: words.slice(0, words.length - i) })),
    );
    for (const { words } of towns) {
      const place = this.findFirst(listSpellings(words));
      if (place && this.isWellKnown(place.population)) return place;
    }
    return undefined;
  }

  private isWellKnown(population: number): boolean {
    const { scopes } = this.reading;
    return population >= (scopes.length > 0 ? MIN_POPULATION : MIN_POPULATION_ANYWHERE);
  }

  private findAfterStreets(): Place | undefined {
    const parts = this.reading.parts.toReversed();
    for (const { tail } of parts) {
      const place = this.findFirst(listSpellings(tail));
      if (place) return place;
    }
    const heads = parts.map((part) => ({ ...part, words: part.head }));
    return (
      this.findByBeginning(heads) ??
      this.findByWholeName(parts.filter(({ kind }) => kind === 'district'))
    );
  }

  private isCity(): boolean {
    return this.reading.scopes.some(
      ({ country, region }) => CITY_STATES.has(country) || CITY_REGIONS.has(`${country}-${region}`),
    );
  }

  private findScopePlace(): Place | undefined {
    const { scopeName } = this.reading;
    return scopeName === null ? undefined : this.findFirst([scopeName]);
  }

  private findFirst(keys: string[]): Place | undefined {
    for (const key of keys) {
      const place = this.byKey.get(key);
      if (place) return place;
    }
    return undefined;
  }
}

function isIn({ country, state }: Place, scope: Scope): boolean {
  return country === scope.country && (scope.region === null || state === scope.region);
}

/** Lists the spellings of a name: St. Louis, Saint Louis. */
function listSpellings(words: string[]): string[] {
  const key = toPlaceKey(words.join(' '));
  const [first = '', ...rest] = key.split(' ');
  const others = SPELLINGS[first] ?? [];
  return key === '' ? [] : [key, ...others.map((spelling) => [spelling, ...rest].join(' '))];
}

/** Lists every run of words, the longest first, and the last first among those of one length. */
function listRuns(words: string[]): string[] {
  const keys = words.flatMap((word) => toPlaceKey(word).split(' ')).filter((key) => key !== '');
  const runs: string[] = listSpellings(words);
  for (let length = Math.min(keys.length, MAX_WORDS); length > 0; length--) {
    for (let start = keys.length - length; start >= 0; start--) {
      runs.push(...listSpellings(keys.slice(start, start + length)));
    }
  }
  return runs;
}
