/** The part of a store that says where it is. */
export type CountrySource = { locale: string };

/**
 * Returns the country that a store is in, as ISO 3166-1 alpha-2, or null where it is not known: the region of its locale.
 */
export function findStoreCountry({ locale }: CountrySource): string | null {
  const { region } = new Intl.Locale(locale);
  return region !== undefined && /^[A-Z]{2}$/.test(region) ? region : null;
}
