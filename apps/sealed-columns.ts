import { type SealedColumn, DATA_KEYS_COLUMN } from '#platform/database/master-keys.js';
import {
  FORMER_KEYS_COLUMN,
  PERSONAL_KEYS_COLUMN,
} from '#platform/event-store/personal-keys/personal-keys.js';
import { STORED_RESPONSES_COLUMN } from '#platform/event-store/commands/stored-responses.js';
import { SECOND_FACTOR_COLUMN } from '#identity/second-factors.service.js';
import { MAIL_COLUMN } from '#outbound/messages/mail-outbox.service.js';
import { WEBHOOK_SECRET_COLUMNS } from '#outbound/sending/webhook-secrets.service.js';

/** Every column whose values are sealed with the master key. */
export const sealedColumns: SealedColumn[] = [
  DATA_KEYS_COLUMN,
  ...WEBHOOK_SECRET_COLUMNS,
  STORED_RESPONSES_COLUMN,
  PERSONAL_KEYS_COLUMN,
  FORMER_KEYS_COLUMN,
  SECOND_FACTOR_COLUMN,
  MAIL_COLUMN,
];
