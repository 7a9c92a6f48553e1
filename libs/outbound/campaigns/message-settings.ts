import { InvalidFieldsError } from '#platform/kernel/errors.js';
import type { QuietHours } from './quiet-hours.js';
import { ISSUES } from '#translations/issues.js';

/** How a store writes to its customers. */
export type MessageSettings = {
  /** Null: messages go out at any time. */
  quiet: QuietHours | null;
  /** How many messages a customer may have got in seven days for a rule to send another one. */
  maxPerWeek: number;
};

export const DEFAULT_SETTINGS: MessageSettings = {
  quiet: { from: '21:00', to: '08:00' },
  maxPerWeek: 2,
};

export type MessageSettingsChanges = {
  quietFrom?: string | null;
  quietTo?: string | null;
  maxPerWeek?: number;
};

/** Changes what is named. @throws InvalidFieldsError */
export function changeSettings(
  { quiet, maxPerWeek }: MessageSettings,
  changes: MessageSettingsChanges,
): MessageSettings {
  const from = changes.quietFrom === undefined ? (quiet?.from ?? null) : changes.quietFrom;
  const to = changes.quietTo === undefined ? (quiet?.to ?? null) : changes.quietTo;
  if (from === null && to !== null) {
    throw new InvalidFieldsError({ quiet_from: [ISSUES.quiet_from_missing] });
  }
  if (from !== null && to === null) {
    throw new InvalidFieldsError({ quiet_to: [ISSUES.quiet_to_missing] });
  }
  if (from !== null && from === to) {
    throw new InvalidFieldsError({ quiet_to: [ISSUES.quiet_times_equal] });
  }
  return {
    quiet: from === null || to === null ? null : { from, to },
    maxPerWeek: changes.maxPerWeek ?? maxPerWeek,
  };
}
