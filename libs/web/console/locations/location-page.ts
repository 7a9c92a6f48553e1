import type { Translations } from '#translations/translations.js';
import { isPrecise, type Location } from '#loyalty/locations/location.js';

type LocationFields = Pick<
  Location,
  'id' | 'name' | 'address' | 'latitude' | 'longitude' | 'precision' | 'geocodeStatus'
>;

type Texts = Translations['locationPages'];
type State = { state: string; mood: '' | 'good' | 'bad'; explanation: string };

export type LocationLine = State & { name: string; address: string; path: string };

/** @property next the path of the next page; null: this is the last */
export type LocationListData = {
  about: string;
  noneWhy: string;
  lines: LocationLine[];
  credit: string;
  canAdd: boolean;
  base: string;
  next: string | null;
  flash: string;
};

/** The data of the form of a location; a new one has no pin yet. */
export type LocationFormData = {
  title: string;
  save: string;
  flash: string;
  pin: PinData | null;
};

export type PinData = State & {
  link: string;
  latitude: string;
  longitude: string;
  errors: string[];
  isPinned: boolean;
  /** The label of the button. */
  action: string;
  map: string;
  save: string;
  removePin: string;
  remove: string;
  /** Asks whether a pin so far from the address is right; empty: it is not far. */
  question: string;
  /** Says that the pin which is set lies far from the address. */
  warning: string;
};

export function describeMapState(
  { precision, geocodeStatus }: LocationFields,
  { states, explanations }: Texts,
): State {
  if (precision === 'manual') return { state: states.pinned, mood: 'good', explanation: '' };
  if (isPrecise(precision)) {
    return { state: states.found, mood: 'good', explanation: explanations.found };
  }
  if (geocodeStatus === 'ok') {
    return { state: states.needsPin, mood: 'bad', explanation: explanations.town };
  }
  if (geocodeStatus === 'pending') {
    return { state: states.lookingUp, mood: '', explanation: explanations.lookingUp };
  }
  return { state: states.notFound, mood: 'bad', explanation: explanations.notFound };
}

export function toLocationLine(location: LocationFields, base: string, t: Texts): LocationLine {
  const { id, name, address } = location;
  return { ...describeMapState(location, t), name, address, path: `${base}/${id}` };
}

export function describeAction(location: LocationFields, t: Texts): string {
  if (location.precision === 'manual') return t.changePin;
  return isPrecise(location.precision) ? t.confirmPin : t.setPin;
}

/** Builds the link of a map. The page embeds none, because that would tell another service who looks at it. */
export function buildMapUrl({ latitude, longitude, address }: LocationFields): string {
  const map = 'https://www.openstreetmap.org';
  return latitude === null || longitude === null
    ? `${map}/search?query=${encodeURIComponent(address)}`
    : `${map}/?mlat=${latitude}&mlon=${longitude}#map=18/${latitude}/${longitude}`;
}

/** Returns the attribution of the coordinates' source. */
export function getAttribution(geocoder: 'offline' | 'none' | object, { credits }: Texts): string {
  if (geocoder === 'none') return '';
  return geocoder === 'offline' ? credits.offline : credits.server;
}
