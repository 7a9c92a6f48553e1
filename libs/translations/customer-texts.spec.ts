import { describe, expect, it } from '@jest/globals';
import { readCatalogues } from './catalogues.js';
import { ADDRESS_FORMS, type AddressForm } from './address-form.js';
import {
  getCustomerTranslations,
  getTranslations,
  type Localization,
  type Translations,
} from './translations.js';

/** The texts that customers read: on passes, cards, signup pages and posters, and in messages. */
const CUSTOMER_SECTIONS = [
  'stamps',
  'wallet',
  'contact',
  'card',
  'notification',
  'applePass',
  'googlePass',
  'cardMessage',
  'holderMessages',
  'signup',
  'poster',
] as const satisfies readonly (keyof Translations)[];

/** Values for every argument of a message. */
const createValues = (value: number) => new Proxy({}, { get: () => value, has: () => true });

/** Texts by their path. A text with values is rendered with one of them, and with many. */
function listTexts(section: unknown, path: string): [path: string, text: string][] {
  if (typeof section === 'string') return [[path, section]];
  if (typeof section === 'function') {
    const render = section as (values: object) => string;
    return [
      [path, render(createValues(1))],
      [path, render(createValues(5))],
    ];
  }
  return Object.entries(section as object).flatMap(([name, part]) =>
    listTexts(part, `${path}.${name}`),
  );
}

const listCustomerTexts = ({ t }: Localization) =>
  CUSTOMER_SECTIONS.flatMap((name) => listTexts(t[name], name));

const word = (...forms: string[]) =>
  new RegExp(String.raw`(?<![\p{L}])(?:${forms.join('|')})(?![\p{L}])`, 'iu');

/** The pronouns of each address form, in any text. */
const PRONOUNS: Record<string, Record<AddressForm, RegExp>> = {
  de: {
    informal: word('du', 'dich', 'dir', 'dein(?:e[mnrs]?)?'),
    // "Sie" at the beginning of a sentence may be "they", so no text for customers begins with it but to address them.
    formal: /(?<!\p{L})(?:Sie|Ihnen|Ihre?[mnrs]?)(?!\p{L})/u,
  },
  fr: {
    informal: word('tu', 'te', 'toi', 'ton', 'ta', 'tes', 't’\\p{L}+'),
    formal: word('vous', 'votre', 'vos'),
  },
  es: {
    informal: word('tú', 'tu', 'tus', 'te', 'ti', 'contigo', 'tuy[oa]s?'),
    formal: word('usted', 'su', 'sus', 'le', 'les'),
  },
};

/**
 * The verbs of texts for customers, which give an address form away without a pronoun. Whoever words a text with another
 * verb adds it, in both forms.
 */
const VERBS: Record<string, Record<AddressForm, RegExp>> = {
  de: {
    informal: word(
      'öffne|nutze|gib|zeige?|scanne?|geh|wähle?|trag|hol|hast|bist|kannst|möchtest|bekommst|brauchst|warst|darfst',
    ),
    formal: word('(?:öffnen|nutzen|geben|zeigen|scannen|holen) Sie'),
  },
  fr: {
    informal: word(
      'demandes-en|profites-en|renseigne-toi|relis-les|ajoute-la|ouvre-la|utilise-la',
      'présente|dis|ajoute|enregistre|réessaie|touche|ouvre|scanne|garde|laisse|saisis|vérifie|commence|renvoie|collecte',
    ),
    formal: word('(?!chez|assez)\\p{L}{2,}ez(?:-\\p{L}+)?'),
  },
  es: {
    informal: word(
      'eres|tienes|tenías|recibes|fuiste|comienzas|disfrutes|puedes|quieres|enviarte|escribirte|aceptaste',
      'muestra|di|pide|añádela|guarda|inténtalo|toca|abre|ábrela|escanea|úsala|compartas|lleva|deja|escribe|revisa|empieza|léelos|envía|pregunta|reúne|consigue',
    ),
    formal: word(
      'es usted|tiene|tenía|recibe|fue|comienza|disfrute|puede ver|quiere|enviarle|escribirle|aceptó',
      'muestre|diga|pida|añádala|guarde|inténtelo|toque|abra|ábrala|escanee|úsela|comparta|lleve|deje|escriba|revise|empiece|léalos|envíe|pregunte|reúna|consiga',
    ),
  },
};

const showsForm = (locale: string, form: AddressForm, text: string) =>
  [PRONOUNS, VERBS].some((marks) => marks[locale]?.[form].test(text));

const CATALOGUES = readCatalogues();
const USUAL = { de: 'informal', fr: 'formal', es: 'formal' } as const;
const getOther = (form: AddressForm): AddressForm => (form === 'formal' ? 'informal' : 'formal');

describe.each(Object.keys(USUAL) as (keyof typeof USUAL)[])(
  'the texts for customers in %s',
  (locale) => {
    const translate = (addressForm: AddressForm | null) =>
      getCustomerTranslations({ locale, addressForm });

    it.each([...ADDRESS_FORMS])('mix no other form with the %s one', (form) => {
      const mixed = listCustomerTexts(translate(form)).filter(([, text]) =>
        showsForm(locale, getOther(form), text),
      );
      expect(mixed).toEqual([]);
    });

    it('are in the usual form unless the store chooses the other', () => {
      expect(translate(null).t).toBe(getTranslations(locale).t);
      expect(translate(USUAL[locale]).t).toBe(getTranslations(locale).t);
      expect(translate(getOther(USUAL[locale])).t).not.toBe(getTranslations(locale).t);
    });

    it('change every text that shows the form, and no other', () => {
      const [usual, changed] = [translate(null), translate(getOther(USUAL[locale]))];
      const pairs = listCustomerTexts(usual).map(([path, text], i) => ({
        path,
        text,
        other: listCustomerTexts(changed)[i]?.[1],
      }));
      const unchanged = pairs.filter(
        ({ text, other: same }) => text === same && showsForm(locale, USUAL[locale], text),
      );
      expect(unchanged).toEqual([]);
      const paths = new Set(
        listTexts(CATALOGUES.get(`${locale}@${getOther(USUAL[locale])}`), '').map(([path]) =>
          path.slice(1),
        ),
      );
      const same = [...paths].filter((path) =>
        pairs.filter((pair) => pair.path === path).every((pair) => pair.text === pair.other),
      );
      expect(same).toEqual([]);
    });

    it('leave all others alone, which are formal', () => {
      const { t } = getTranslations(locale);
      const sections = Object.keys(t) as (keyof Translations)[];
      const rest = sections.filter(
        (name) => !CUSTOMER_SECTIONS.some((section) => section === name),
      );
      const changed = translate(getOther(USUAL[locale]));
      for (const name of rest)
        expect(listTexts(changed.t[name], name)).toEqual(listTexts(t[name], name));
      const informal = rest
        .flatMap((name) => listTexts(t[name], name))
        // The setting names the words themselves.
        .filter(([path]) => !path.startsWith('console.settings.addressForms.'))
        .filter(([, text]) => PRONOUNS[locale]?.informal.test(text));
      expect(informal).toEqual([]);
    });
  },
);

it('every other address form of a language is checked', () => {
  const forms = [...CATALOGUES.keys()].filter((name) => name.includes('@'));
  expect(Object.entries(USUAL).map(([locale, form]) => `${locale}@${getOther(form)}`)).toEqual(
    expect.arrayContaining(forms),
  );
  const formal = getCustomerTranslations({ locale: 'en-GB', addressForm: 'formal' });
  expect(formal).toEqual(getTranslations('en-GB'));
  expect(getCustomerTranslations({ locale: 'de-AT', addressForm: 'formal' }).locale).toBe('de-AT');
});
