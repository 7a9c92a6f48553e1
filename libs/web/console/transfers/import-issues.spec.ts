import { expect, it } from '@jest/globals';
import type { FieldIssues } from '#platform/kernel/issues.js';
import { readEntry } from '#loyalty/imports/import-row.dto.js';
import { ISSUES } from '#translations/issues.js';
import { getTranslations } from '#translations/translations.js';
import { describeIssues, describeRowIssues, findRowName } from './import-issues.js';

const describeIn = (language: string, issues: FieldIssues) =>
  describeIssues(issues, getTranslations(language).t);

it('describes the errors of a row in the language of the page, with their fields', () => {
  const issues = {
    first_name: [ISSUES.first_name_missing],
    base: [ISSUES.row_repeated({ row: 7 })],
  };
  expect(describeIn('de', issues)).toBe(
    'Vorname: Ein neuer Kunde braucht einen Vornamen. Zeile 7 betrifft denselben Kunden.',
  );
  expect(describeIn('fr', { first_name: [ISSUES.name_length({ max: 255 })] })).toBe(
    'Prénom: Veuillez saisir de 1 à 255 caractères.',
  );
});

const COLUMNS = [
  { name: 'Vorname', field: 'first_name' },
  { name: 'Notiz', field: null },
  { name: 'Stempel', field: 'stamps' },
  { name: 'Geburtstag', field: 'birthday' },
  { name: 'Mail', field: 'email' },
] as const;

const describeRow = (language: string, ...cells: string[]) => {
  const errors = readEntry(cells, COLUMNS, 'dmy').errors ?? {};
  return describeRowIssues(errors, cells, COLUMNS, getTranslations(language).t);
};

it.each([
  ['en', 'Birthday: 31.02.1990 is not a date. Stamps: −4 is not a valid number.'],
  ['de', 'Geburtstag: 31.02.1990 gibt es nicht. Stempel: −4 ist keine gültige Anzahl.'],
  [
    'fr',
    'Date de naissance\u202f: 31.02.1990 n’existe pas. Tampons\u202f: −4 n’est pas un nombre valable.',
  ],
  ['es', 'Fecha de nacimiento: 31.02.1990 no existe. Sellos: −4 no es un número válido.'],
  ['nl', 'Verjaardag: 31.02.1990 bestaat niet. Stempels: −4 is geen geldig aantal.'],
])('describes the errors of a row in "%s" with the values of the file', (language, text) => {
  expect(describeRow(language, 'Anna', '', '-4', '31.02.1990')).toBe(text);
});

it.each([
  ['a text', ['Anna', '', 'viele'], 'Stempel: viele ist keine gültige Anzahl.'],
  ['a fraction', ['Anna', '', '2,5'], 'Stempel: 2,5 ist keine gültige Anzahl.'],
  [
    'an e-mail address',
    ['Anna', '', '', '', 'anna@'],
    'E-Mail „anna@“: Bitte eine vollständige E-Mail-Adresse eingeben, zum Beispiel name@laden.example.',
  ],
  [
    'a birthday of no known form',
    ['Anna', '', '', 'Mai'],
    'Geburtstag „Mai“: Der Geburtstag muss wie 31.12.2000 oder 2000-12-31 aussehen.',
  ],
])('says which value is wrong: %s', (_, cells, text) => {
  expect(describeRow('de', ...cells)).toBe(text);
});

it('describes what is wrong with no value of the row as before', () => {
  const issues = { base: [ISSUES.row_repeated({ row: 7 })], code: [ISSUES.card_code_of_other] };
  const { t } = getTranslations('de');
  expect(describeRowIssues(issues, ['Anna'], COLUMNS, t)).toBe(describeIssues(issues, t));
});

it('finds by what people know the customer of a row', () => {
  expect(findRowName(['Anna', '', '', '', 'anna@example.com'], COLUMNS)).toBe('Anna');
  expect(findRowName(['', '', '', '', 'anna@example.com'], COLUMNS)).toBe('anna@example.com');
  expect(findRowName([], COLUMNS)).toBe('');
});

it('names the column of a part of a customer number', () => {
  const columns = [
    { name: 'Nummer', field: 'external_id' },
    { name: 'Kasse', field: 'external_source' },
  ] as const;
  const describe = (...cells: string[]) =>
    describeIn('de', readEntry(cells, columns, null).errors ?? {});
  expect(describe('17', 'Meine Kasse!')).toBe(
    'System der Kundennummer: Bitte nur Kleinbuchstaben, Ziffern und die Zeichen - und _ verwenden.',
  );
  expect(describe('1'.repeat(256), 'kasse')).toMatch(/^Kundennummer: .*255/);
  expect(describe('17', 'Kasse')).toBe('');
});

it.each([
  [ISSUES.changed_by_spreadsheet, 'Un tableur a modifié cette valeur'],
  [ISSUES.still_quoted, 'entre guillemets'],
  [ISSUES.lost_character, 'a été perdu'],
])('describes the damage of a value: %j', (issue, text) => {
  expect(describeIn('fr', { phone: [issue] })).toContain(text);
});
