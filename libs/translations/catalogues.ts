import { readdirSync, readFileSync } from 'node:fs';
import { IntlMessageFormat, type Formatters } from 'intl-messageformat';

/** The texts of a language by subject, as its file has them: in ICU MessageFormat. */
export type Catalogue = { readonly [name: string]: string | Catalogue };

/** A text with arguments. */
export type Message = (values: Record<string, string | number>) => string;

/** Reads the files of this folder by name: `de`, and `de@formal` with what differs in that address form. */
export function readCatalogues(): Map<string, Catalogue> {
  const folder = new URL('.', import.meta.url);
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
  return new Map(files.map((file) => [file.slice(0, -5), readCatalogue(new URL(file, folder))]));
}

function readCatalogue(file: URL): Catalogue {
  return JSON.parse(readFileSync(file, 'utf8')) as Catalogue;
}

/** Returns a catalogue with some of its texts replaced. */
export function changeTexts(catalogue: Catalogue, changes: Catalogue): Catalogue {
  const changed = Object.entries(changes).map(([name, change]) => {
    const text = catalogue[name];
    const isSection = typeof change === 'object' && typeof text === 'object';
    return [name, isSection ? changeTexts(text, change) : change];
  });
  return { ...catalogue, ...Object.fromEntries(changed) };
}

/**
 * Returns the texts for a locale, which formats their numbers and chooses their plurals. Sections are created and
 * messages parsed on first use, since a process uses few of them in most locales.
 */
export function createTexts(catalogue: Catalogue, locale: string): object {
  return createSection(catalogue, locale, createFormatters());
}

function createSection(section: Catalogue, locale: string, formatters: Formatters): object {
  const texts: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(section)) {
    if (typeof text === 'string') {
      texts[name] = createText(text, locale, formatters);
      continue;
    }
    let created: object | undefined;
    const get = () => (created ??= createSection(text, locale, formatters));
    Object.defineProperty(texts, name, { get, enumerable: true });
  }
  return texts;
}

function createText(text: string, locale: string, formatters: Formatters): string | Message {
  if (!/[{']/.test(text)) return text;
  const create = () => new IntlMessageFormat(parse(text), locale, undefined, { formatters });
  // Apostrophes quote braces, so there may be no argument.
  if (text.includes("'") && parse(text).every(({ type }) => type === LITERAL))
    return String(create().format());
  let message: IntlMessageFormat | undefined;
  return (values) => String((message ??= create()).format(values));
}

/** Type of a part of a message that is text alone, in the words of its parser. */
const LITERAL = 0;
const parsed = new Map<string, ReturnType<IntlMessageFormat['getAst']>>();

/** Parses a message once for all locales. Tags are for React: a text for HTML is escaped as a whole. */
function parse(text: string): ReturnType<IntlMessageFormat['getAst']> {
  const parts =
    parsed.get(text) ?? new IntlMessageFormat(text, 'en', undefined, { ignoreTag: true }).getAst();
  parsed.set(text, parts);
  return parts;
}

/** Shares formatters among the messages of a locale: each takes kilobytes. */
function createFormatters(): Formatters {
  return {
    getNumberFormat: memoize((...options) => new Intl.NumberFormat(...options)),
    getDateTimeFormat: memoize((...options) => new Intl.DateTimeFormat(...options)),
    getPluralRules: memoize((...options) => new Intl.PluralRules(...options)),
  } as Formatters;
}

function memoize<Options extends unknown[], Format>(
  create: (...options: Options) => Format,
): (...options: Options) => Format {
  const formats = new Map<string, Format>();
  return (...options) => {
    const key = JSON.stringify(options);
    const format = formats.get(key) ?? create(...options);
    formats.set(key, format);
    return format;
  };
}
