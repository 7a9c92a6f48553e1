import type { FieldErrors } from '#platform/kernel/errors.js';
import { Check, Field, IntegerField, BooleanField, OneOfField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import {
  BooleanProperty,
  FieldErrorsProperty,
  IntegerProperty,
  JsonProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import type { DateOrder } from './birthdays.js';
import {
  IMPORT_STATES,
  ROW_STATES,
  type CustomerImport,
  type ImportState,
  type RowState,
} from './customer-import.js';
import { IMPORT_FIELDS, type ImportField, type MappingRequest } from './import-columns.js';
import { IMPORT_FORMATS, type ImportFormat } from './import-file.js';
import { SEPARATORS, type Separator } from './text-encoding.js';
import { ISSUES } from '#translations/issues.js';
import { renderMessages, type Issue } from '#platform/kernel/issues.js';

const DATE_ORDERS = ['dmy', 'mdy'] as const;
/** Percent-encoded, it has to fit into the 16 KiB that Node.js reads of a header with its address. */
const MAX_MAPPING_LENGTH = 4096;
const MAPPABLE: ReadonlySet<unknown> = new Set([...IMPORT_FIELDS, null]);

@Dto('ImportQuery')
export class ImportQuery {
  @IntegerField({
    min: 1,
    optional: true,
    description: 'The card that every customer of the file is enrolled on; stamps and code need it',
  })
  declare readonly card_id: number | null;
  @BooleanField({
    default: false,
    description: 'true: the file is only checked, and waits in the state ready for a start',
  })
  declare readonly dry_run: boolean;
  @Field(
    {
      schema: { type: 'string', maxLength: MAX_MAPPING_LENGTH },
      validators: [Check(findMappingIssue)],
      finish: (text: string) => JSON.parse(text) as MappingRequest,
    },
    {
      optional: true,
      description: `A JSON object from the header of a column to its field (${IMPORT_FIELDS.join(', ')}), or to null to ignore it; other columns are recognised by their headers`,
    },
  )
  declare readonly mapping: MappingRequest | null;
  @OneOfField(DATE_ORDERS, {
    optional: true,
    description: 'Whether 03/04/2000 is the 3rd of April (dmy) or the 4th of March (mdy)',
  })
  declare readonly date_order: DateOrder | null;
}

@Dto('ImportRowListQuery')
export class ImportRowListQuery extends PageQuery {
  @OneOfField(ROW_STATES, { optional: true, description: 'Only rows in this state.' })
  declare readonly status: RowState | null;
}

@Dto('ImportColumn')
class ImportColumnJson {
  @TextProperty({ example: 'Vorname', description: 'The header.' }) declare readonly name: string;
  @OneOfProperty(IMPORT_FIELDS, {
    nullable: true,
    example: 'first_name',
    description: 'What the column holds; null: it is ignored',
  })
  declare readonly field: ImportField | null;
}

@Dto('Import')
export class ImportJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
  @IntegerProperty({
    nullable: true,
    description: 'The card that every customer of the file is enrolled on.',
  })
  declare readonly card_id: number | null;
  @OneOfProperty(IMPORT_STATES, {
    example: 'done',
    description:
      'ready: checked, and waits for a start; running: rows are applied, or taken back; failed: see error',
  })
  declare readonly state: ImportState;
  @BooleanProperty({ description: 'Whether it waits for a start after the check.' })
  declare readonly dry_run: boolean;
  @OneOfProperty(IMPORT_FORMATS, { description: 'The format of the file.' })
  declare readonly format: ImportFormat;
  @TextProperty({
    example: 'utf-8',
    description: 'The encoding in which the file was read, by its name in the Encoding Standard.',
  })
  declare readonly encoding: string;
  @OneOfProperty(SEPARATORS, {
    nullable: true,
    example: ';',
    description: 'What separates the cells of a CSV file.',
  })
  declare readonly separator: Separator | null;
  @ObjectsProperty(() => ImportColumnJson, { description: 'The columns of the file.' })
  declare readonly columns: ImportColumnJson[];
  @OneOfProperty(DATE_ORDERS, {
    nullable: true,
    description: 'The order of day and month in dates with slashes; null: there are none',
  })
  declare readonly date_order: DateOrder | null;
  @IntegerProperty({ example: 3, description: 'The rows of the file, without blank ones.' })
  declare readonly rows_total: number;
  @IntegerProperty({ example: 3, description: 'The rows that are checked, applied or taken back.' })
  declare readonly rows_done: number;
  @IntegerProperty({
    example: 2,
    description: 'Rows that created a customer; in the state ready, that will',
  })
  declare readonly created: number;
  @IntegerProperty({
    example: 0,
    description: 'Rows that changed a customer; in the state ready, that will',
  })
  declare readonly updated: number;
  @IntegerProperty({
    example: 0,
    description: 'Rows of customers with whom nothing changed; in the state ready, will change',
  })
  declare readonly unchanged: number;
  @IntegerProperty({
    example: 1,
    description: 'Rows that changed nothing, because of their errors.',
  })
  declare readonly failed: number;
  @IntegerProperty({ example: 0, description: 'Rows that an undo has taken back.' })
  declare readonly undone: number;
  @IntegerProperty({
    example: 0,
    description: 'Rows that an undo left as they are, because they were used since.',
  })
  declare readonly refused: number;
  @TextProperty({
    nullable: true,
    example: null,
    description: 'Why the whole import failed.',
  })
  declare readonly error: string | null;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ nullable: true, description: 'When its first row was applied.' })
  declare readonly started_at: string | null;
  @TimestampProperty({ nullable: true, description: 'When it came to its end.' })
  declare readonly finished_at: string | null;
  @TimestampProperty({ description: 'When it was last changed.' })
  declare readonly updated_at: string;
}

@Dto('ImportRow')
export class ImportRowJson {
  @IntegerProperty({
    example: 2,
    description: 'The row as spreadsheets count, the header being row 1; in NDJSON the line',
  })
  declare readonly row: number;
  @OneOfProperty(ROW_STATES, { example: 'failed', description: 'What became of it.' })
  declare readonly status: RowState;
  @FieldErrorsProperty({
    nullable: true,
    example: { phone: [ISSUES.changed_by_spreadsheet.message] },
    description: 'Messages by field.',
  })
  declare readonly errors: FieldErrors | null;
  @FieldErrorsProperty({
    nullable: true,
    example: { phone: [ISSUES.changed_by_spreadsheet.code] },
    description: 'The codes of the messages by field, in the same order.',
  })
  declare readonly error_codes: Record<string, string[]> | null;
  @JsonProperty({
    nullable: true,
    description:
      'The cells by header; null once the row was applied, its customer was erased, or 30 days have passed',
  })
  declare readonly data: Record<string, string> | null;
  @IntegerProperty({ nullable: true, description: 'The customer that the row is about.' })
  declare readonly customer_id: number | null;
  @IntegerProperty({ nullable: true, description: 'Their card.' })
  declare readonly customer_card_id: number | null;
}

export function toImportJson(from: CustomerImport): ImportJson {
  const { counts } = from;
  return {
    id: from.id,
    account_id: from.accountId,
    card_id: from.cardId,
    state: from.state === 'undoing' ? 'running' : from.state,
    dry_run: from.dryRun,
    format: from.format,
    encoding: from.encoding,
    separator: from.separator,
    columns: from.columns.map(({ name, field }) => ({ name, field })),
    date_order: from.dateOrder,
    rows_total: from.rowsTotal,
    rows_done: counts.done,
    created: counts.created,
    updated: counts.updated,
    unchanged: counts.unchanged,
    failed: counts.failed,
    undone: counts.undone,
    refused: counts.refused,
    error: from.error && renderMessages(from.error),
    created_at: from.createdAt.toISOString(),
    started_at: from.startedAt?.toISOString() ?? null,
    finished_at: from.finishedAt?.toISOString() ?? null,
    updated_at: from.updatedAt.toISOString(),
  };
}

function findMappingIssue(text: unknown): Issue | undefined {
  if (typeof text !== 'string' || text.length > MAX_MAPPING_LENGTH) {
    return ISSUES.mapping_too_long({ max: MAX_MAPPING_LENGTH });
  }
  let mapping: unknown;
  try {
    mapping = JSON.parse(text);
  } catch {
    return ISSUES.mapping_not_json;
  }
  if (typeof mapping !== 'object' || mapping === null || Array.isArray(mapping)) {
    return ISSUES.mapping_not_object;
  }
  return Object.values(mapping).every((field) => MAPPABLE.has(field))
    ? undefined
    : ISSUES.mapping_field_unknown({ fields: IMPORT_FIELDS.join(', ') });
}
