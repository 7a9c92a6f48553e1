import { expect, it } from '@jest/globals';
import type { FieldIssues } from '#platform/kernel/issues.js';
import { readEntry } from '#loyalty/imports/import-row.dto.js';
import { ISSUES } from '#translations/issues.js';
import { getTranslations } from '#translations/translations.js';
import { describeIssues } from './import-issues.js';

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
