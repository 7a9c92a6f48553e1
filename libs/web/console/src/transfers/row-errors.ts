import type { Translations } from '#translations/translations.js';

type Texts = Translations['transfers'];

/** The messages of the check of a row, with the text that says the same in the language of the page. */
const MESSAGES: [RegExp, (t: Texts['rowErrors'], match: RegExpExecArray) => string][] = [
  [/^first_name is required for a new customer$/, (t) => t.nameMissing],
  [/^An e-mail address or a phone number is needed$/, (t) => t.contactMissing],
  [/^birthday must not be in the future$/, (t) => t.inFuture],
  [/^birthday must be a date/, (t) => t.dateInvalid],
  [/looks like a spreadsheet has changed it$/, (t) => t.changed],
  [/is still in quotation marks$/, (t) => t.quoted],
  [/has a character that was lost when the file was written$/, (t) => t.lost],
  [/^email /, (t) => t.emailInvalid],
  [/^phone /, (t) => t.phoneInvalid],
  [/^code is the code of another customer/, (t) => t.codeTaken],
  [/^code must be a card code/, (t) => t.codeInvalid],
  [/^(marketing|sms)_consent must be yes or no$/, (t) => t.consentInvalid],
  [/^Row (\d+) is about the same customer$/, (t, [, row = '']) => t.repeated({ row })],
  [/^The row has values of different customers/, (t) => t.ambiguous],
];

/** Describes why a row was refused: in the language of the page, or else with the field and the API's message. */
export function describeRowErrors(
  errors: Readonly<Record<string, readonly string[]>>,
  t: Texts,
): string {
  return Object.entries(errors)
    .flatMap(([field, messages]) =>
      messages.map((message) => {
        const text = field === 'base' ? message : `${field} ${message}`;
        for (const [pattern, translate] of MESSAGES) {
          const match = pattern.exec(text);
          if (match) return translate(t.rowErrors, match);
        }
        const label = Object.hasOwn(t.fields, field)
          ? t.fields[field as keyof Texts['fields']]
          : '';
        return label === '' ? `${message}.` : `${label}: ${message}.`;
      }),
    )
    .join(' ');
}
