import { getCountries, parsePhoneNumberFromString, type CountryCode } from 'libphonenumber-js/min';

type Place = { locale: string; timeZone: string };

/**
 * The country whose numbers people near the store give without its code: of the locale, where it names one (de-AT), else
 * of the time zone. Undefined for stores whose clock is UTC.
 */
export function countryOf({ locale, timeZone }: Place): CountryCode | undefined {
  const { region } = new Intl.Locale(locale);
  const named = getCountries().find((country) => country === region);
  return named ?? countriesByTimeZone().get(usualName(timeZone));
}

/** E.164, or undefined if it cannot be a number: too long, too short, or without a country where none is known. */
export function phoneIn(country: CountryCode | undefined, given: string): string | undefined {
  const parsed = parsePhoneNumberFromString(given, {
    extract: false,
    ...(country !== undefined && { defaultCountry: country }),
  });
  return parsed?.isPossible() ? parsed.number : undefined;
}

let byTimeZone: Map<string, CountryCode> | undefined;

function countriesByTimeZone(): Map<string, CountryCode> {
  return (byTimeZone ??= new Map(
    getCountries().flatMap((country) =>
      timeZonesOf(country).map((timeZone): [string, CountryCode] => [usualName(timeZone), country]),
    ),
  ));
}

/** A method in newer versions of JavaScript, which its types know. */
type Zoned = Intl.Locale & { timeZones?: string[]; getTimeZones?: () => string[] };

function timeZonesOf(country: CountryCode): string[] {
  const locale: Zoned = new Intl.Locale(`und-${country}`);
  return locale.getTimeZones?.() ?? locale.timeZones ?? [];
}

/** The one of its names that the platform uses: Asia/Kolkata is Asia/Calcutta to some. */
function usualName(timeZone: string): string {
  return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone;
}
