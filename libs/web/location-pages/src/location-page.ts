import type { Location } from '#locations/location.js';

type LocationFields = Pick<
  Location,
  'id' | 'name' | 'address' | 'latitude' | 'longitude' | 'precision' | 'geocodeStatus'
>;

type State = { state: string; mood: '' | 'good' | 'bad'; explanation: string };

/** The label of the action. */
type Action = 'Set the pin' | 'Confirm the pin' | 'Change the pin';

export type LocationLine = State & {
  name: string;
  address: string;
  path: string;
  action: Action;
};

export type LocationListData = { lines: LocationLine[]; credit: string };

export type PinData = State & {
  name: string;
  address: string;
  latitude: string;
  longitude: string;
  errors: string[];
  isPinned: boolean;
  /** The label of the button. */
  action: Action;
  map: string;
  save: string;
  remove: string;
  back: string;
  done: string;
};

export function describeState({ precision, geocodeStatus }: LocationFields): State {
  if (precision === 'manual') return { state: 'Pinned', mood: 'good', explanation: '' };
  if (precision === 'rooftop' || precision === 'street') {
    const explanation =
      'Found by its address. Please look at the map, and confirm the place if it is right.';
    return { state: 'Found', mood: 'good', explanation };
  }
  const pin = 'Set a pin, so that phones can show cards near the shop.';
  if (geocodeStatus === 'ok') {
    const explanation = `Only the town was found, and that is not exact enough. ${pin}`;
    return { state: 'Needs a pin', mood: 'bad', explanation };
  }
  if (geocodeStatus === 'pending') {
    const explanation =
      'The address is being looked up. You do not have to wait: a pin is more exact.';
    return { state: 'Looking up', mood: '', explanation };
  }
  return { state: 'Not found', mood: 'bad', explanation: `The address was not found. ${pin}` };
}

export function toLocationLine(location: LocationFields, base: string): LocationLine {
  const { id, name, address } = location;
  return {
    ...describeState(location),
    name,
    address,
    path: `${base}/${id}`,
    action: describeAction(location),
  };
}

export function describeAction(location: LocationFields): Action {
  if (location.precision === 'manual') return 'Change the pin';
  return isExact(location) ? 'Confirm the pin' : 'Set the pin';
}

/** Tells whether the coordinates are exact enough to confirm. Those of a town must not be confirmed by mistake. */
export function isExact({ precision }: LocationFields): boolean {
  return precision === 'manual' || precision === 'rooftop' || precision === 'street';
}

/** Builds the link of a map. The page embeds none, because that would tell another service who looks at it. */
export function buildMapUrl({ latitude, longitude, address }: LocationFields): string {
  const map = 'https://www.openstreetmap.org';
  return latitude === null || longitude === null
    ? `${map}/search?query=${encodeURIComponent(address)}`
    : `${map}/?mlat=${latitude}&mlon=${longitude}#map=18/${latitude}/${longitude}`;
}

const CREDITS = {
  offline: 'Places: GeoNames (geonames.org), CC BY 4.0',
  none: '',
  server: 'Addresses: © OpenStreetMap contributors',
};

/** Returns the attribution of the coordinates' source. */
export function getAttribution(geocoder: 'offline' | 'none' | object): string {
  return CREDITS[typeof geocoder === 'string' ? geocoder : 'server'];
}
