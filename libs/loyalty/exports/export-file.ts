import { BYTE_ORDER_MARK, renderCsvLine } from '#platform/kernel/csv.js';

export const FORMATS = { csv: 'text/csv; charset=utf-8', ndjson: 'application/x-ndjson' } as const;

export type Format = keyof typeof FORMATS;

/** The columns of each kind of export, which are the fields of the records. */
export const COLUMNS = {
  customers: [
    'id',
    'first_name',
    'last_name',
    'email',
    'phone',
    'birthday',
    'stamp_count',
    'marketing_consent',
    'sms_consent',
    'external_references',
    'metadata',
    'created_at',
    'updated_at',
    'erased_at',
  ],
  customer_cards: [
    'id',
    'customer_id',
    'card_id',
    'card_name',
    'code',
    'uuid',
    'status',
    'stamps_count',
    'stamps_remaining',
    'progress_percentage',
    'pass_installed',
    'available_rewards',
    'apple_wallet_url',
    'google_wallet_url',
    'issued_at',
    'created_at',
    'updated_at',
  ],
  history: [
    'id',
    'type',
    'occurred_at',
    'recorded_at',
    'channel',
    'actor',
    'request_id',
    'customer_id',
    'customer_card_id',
    'card_id',
    'stamps',
    'balance',
    'reward_id',
    'location_id',
    'staff_ref',
    'external_ref',
    'note',
    'reverses',
    'reversed_by',
  ],
  redemptions: [
    'id',
    'customer_id',
    'customer_card_id',
    'card_id',
    'reward_id',
    'reward_name',
    'stamps_spent',
    'stamps_remaining',
    'redeemed_at',
    'external_ref',
    'staff_ref',
    'location_id',
    'note',
    'reversed_at',
    'event_id',
  ],
} as const;

export type ExportKind = keyof typeof COLUMNS;

export type ExportFile = { name: string; kind: ExportKind; format: Format };

/** All files that a store can export. */
export const EXPORT_FILES: ExportFile[] = keysOf(COLUMNS).flatMap((kind) =>
  keysOf(FORMATS).map((format) => ({ name: `${kind}.${format}`, kind, format })),
);

/** Finds the file of a path. */
export function findExportFile(name: string): ExportFile | undefined {
  return EXPORT_FILES.find((file) => file.name === name);
}

/** Renders what comes before the first record. */
export function renderHeader({ kind, format }: ExportFile): string {
  return format === 'csv' ? BYTE_ORDER_MARK + renderCsvLine([...COLUMNS[kind]]) : '';
}

/** Renders records, each in a line of its own. */
export function renderRecords({ kind, format }: ExportFile, records: object[]): string {
  const lines = records.map((record) => {
    const entries = COLUMNS[kind].map((name): [string, unknown] => [
      name,
      Reflect.get(record, name),
    ]);
    return format === 'csv'
      ? renderCsvLine(entries.map(([, value]) => value))
      : `${JSON.stringify(Object.fromEntries(entries))}\n`;
  });
  return lines.join('');
}

function keysOf<T extends object>(object: T): (keyof T & string)[] {
  return Object.keys(object) as (keyof T & string)[];
}
