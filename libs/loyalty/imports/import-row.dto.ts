import { Check, Field, IntegerField, textKind } from '#platform/http/fields.js';
import { Dto, readFields } from '#platform/http/dtos.js';
import { collectIssues } from '#platform/kernel/errors.js';
import { normalizeNumber } from '#platform/kernel/text.js';
import { normalizeCardCode } from '#loyalty/stamping/card-code.js';
import { isCardCode } from '#loyalty/stamping/imported-stamps.js';
import { MAX_ADJUSTMENT } from '#loyalty/stamping/corrections.js';
import type { CustomerChanges } from '#loyalty/customers/customer.js';
import {
  ExternalReferenceDto,
  toCustomerChanges,
  UpdateCustomerDto,
} from '#loyalty/customers/customer-input.dto.js';
import { parseBirthday, type DateOrder } from './birthdays.js';
import { findDamage } from './cell-damage.js';
import { IMPORT_FIELDS, type ImportColumn, type ImportField } from './import-columns.js';
import { DEFAULT_SOURCE } from './row-values.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

/** The columns of the fields of a reference. */
const REFERENCE_FIELDS: Readonly<Record<string, ImportField>> = {
  source: 'external_source',
  external_id: 'external_id',
};

/** How people write yes and no, in the languages of the headers. */
const YES = new Set(
  '1 true yes y x on ja j wahr oui o vrai si s verdadero waar subscribed optedin optin granted'.split(
    ' ',
  ),
);
const NO = new Set(
  '0 false no n off nein falsch non faux falso nee onwaar unsubscribed optedout optout denied'.split(
    ' ',
  ),
);
/** What programs write of people who were never asked, or have not answered: nothing is known. */
const UNKNOWN = new Set('unknown neversubscribed notsubscribed pending notset none -'.split(' '));

/** The fields of a row that are not the customer's own. */
@Dto('ImportCardFields')
class CardFieldsDto {
  @IntegerField({ min: 0, max: MAX_ADJUSTMENT, optional: true })
  declare readonly stamps: number | null;
  @Field(
    textKind(
      64,
      Check((text: string) =>
        isCardCode(normalizeCardCode(text)) ? undefined : ISSUES.card_code_invalid,
      ),
    ),
    { optional: true },
  )
  declare readonly code: string | null;
}

/** What a row says about a customer; a field that is blank there is not in it. */
export type ImportEntry = {
  changes: CustomerChanges;
  /** Null: the row says nothing about stamps. */
  stamps: number | null;
  code: string | null;
};

export type EntryResult =
  | { entry: ImportEntry; errors?: never }
  | { entry?: never; errors: FieldIssues };

/** Reads a row as the API reads a customer. */
export function readEntry(
  cells: readonly string[],
  columns: readonly ImportColumn[],
  order: DateOrder | null,
): EntryResult {
  const texts = collectTexts(cells, columns);
  const errors = findDamages(texts);
  const birthday = texts.birthday && parseBirthday(normalizeNumber(texts.birthday), order);
  if (texts.birthday !== undefined && birthday === undefined) {
    errors['birthday'] ??= [ISSUES.import_date_invalid];
  }
  const references = findReferences(texts, errors);
  const input = {
    ...pick(texts, ['first_name', 'last_name', 'email', 'phone']),
    ...(birthday !== undefined && { birthday }),
    ...toConsents(texts, errors),
    ...(references && { external_references: references }),
  };
  const changes = collectIssues(errors, () => readFields(UpdateCustomerDto, input));
  const ofCard = collectIssues(errors, () =>
    readFields(CardFieldsDto, pick(texts, ['stamps', 'code'])),
  );
  if (!changes || !ofCard || Object.keys(errors).length > 0) return { errors };
  return {
    entry: {
      changes: toCustomerChanges(changes),
      stamps: ofCard.stamps,
      code: ofCard.code === null ? null : normalizeCardCode(ofCard.code),
    },
  };
}

type Texts = Partial<Record<ImportField, string>>;

function collectTexts(cells: readonly string[], columns: readonly ImportColumn[]): Texts {
  const texts: Texts = {};
  for (const [i, { field }] of columns.entries()) {
    const text = cells[i] ?? '';
    if (field !== null && text !== '') texts[field] = text;
  }
  return texts;
}

/** Reads the parts of a reference one by one, because each has a column of its own. @returns undefined: there is none */
function findReferences(texts: Texts, errors: FieldIssues): [ExternalReferenceDto] | undefined {
  const { external_id: externalId, external_source: source = DEFAULT_SOURCE } = texts;
  if (externalId === undefined) return undefined;
  const reference = { source: source.toLowerCase(), external_id: externalId };
  const read = () => readFields(ExternalReferenceDto, reference);
  const valid = collectIssues(errors, read, (field) => REFERENCE_FIELDS[field] ?? field);
  return valid && [valid];
}

function findDamages(texts: Texts): FieldIssues {
  const errors: FieldIssues = {};
  for (const field of IMPORT_FIELDS) {
    const damage = findDamage(field, texts[field] ?? '');
    if (damage !== undefined) errors[field] = [damage];
  }
  return errors;
}

function pick(texts: Texts, fields: readonly (typeof IMPORT_FIELDS)[number][]): Texts {
  return Object.fromEntries(
    fields.flatMap((field) => (texts[field] === undefined ? [] : [[field, texts[field]]])),
  );
}

function toConsents(texts: Texts, errors: FieldIssues): Record<string, boolean> {
  const consents: Record<string, boolean> = {};
  for (const field of ['marketing_consent', 'sms_consent'] as const) {
    const text = texts[field]
      ?.normalize('NFKD')
      .replaceAll(/\p{M}|(?<=\p{L})[\s_-]+(?=\p{L})/gu, '')
      .toLowerCase();
    if (text === undefined || UNKNOWN.has(text)) continue;
    if (YES.has(text) || NO.has(text)) consents[field] = YES.has(text);
    else errors[field] ??= [ISSUES.consent_invalid];
  }
  return consents;
}
