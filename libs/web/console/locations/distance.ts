import type { Coordinates } from '#loyalty/locations/location.events.js';

const EARTH_RADIUS_KM = 6371;
/** Large towns reach so far from the point that a gazetteer has for them. */
const FAR_KM = 30;

/** Measures the distance of two places along the ground, in km. */
export function measureDistance(from: Coordinates, to: Coordinates): number {
  const [a, b] = [toRadians(from.latitude), toRadians(to.latitude)];
  const across = toRadians(to.longitude - from.longitude);
  const haversine =
    Math.sin((b - a) / 2) ** 2 + Math.cos(a) * Math.cos(b) * Math.sin(across / 2) ** 2;
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(haversine)));
}

/** Tells whether a pin is so far from where its address was found that one of them is probably wrong. */
export function isFar(distanceKm: number): boolean {
  return distanceKm > FAR_KM;
}

/** Formats a distance for people, such as `525 km`. */
export function formatDistance(distanceKm: number, locale: string): string {
  return new Intl.NumberFormat(locale, {
    style: 'unit',
    unit: 'kilometer',
    maximumFractionDigits: 0,
  }).format(distanceKm);
}

function toRadians(degrees: number): number {
  return (degrees * Math.PI) / 180;
}
