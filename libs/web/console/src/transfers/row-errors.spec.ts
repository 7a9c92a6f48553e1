import { expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { describeRowErrors } from './row-errors.js';

const describeIn = (language: string, errors: Record<string, string[]>) =>
  describeRowErrors(errors, getTranslations(language).t.transfers);

it('describes the errors of a row in the language of the page', () => {
  const errors = {
    first_name: ['is required for a new customer'],
    base: ['Row 7 is about the same customer'],
  };
  expect(describeIn('de', errors)).toBe(
    'Ein neuer Kunde braucht einen Vornamen. Zeile 7 betrifft denselben Kunden.',
  );
});

it.each([
  ['looks like a spreadsheet has changed it', 'Un tableur a modifié cette valeur'],
  ['is still in quotation marks', 'entre guillemets'],
  ['has a character that was lost when the file was written', 'a été perdu'],
])('describes a value that %s', (message, text) => {
  expect(describeIn('fr', { phone: [message] })).toContain(text);
});

it('names the field of a message that has no translation', () => {
  expect(describeIn('fr', { first_name: ['must have 1 to 255 characters'] })).toBe(
    'Prénom: must have 1 to 255 characters.',
  );
});
