import { InvalidFieldsError } from '#kernel/errors.js';
import type { QuietHours } from './quiet-hours.js';

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
    throw new InvalidFieldsError({ quiet_from: ['is required together with quiet_to'] });
  }
  if (from !== null && to === null) {
    throw new InvalidFieldsError({ quiet_to: ['is required together with quiet_from'] });
  }
  if (from !== null && from === to) {
    throw new InvalidFieldsError({ quiet_to: ['must differ from quiet_from'] });
  }
  return {
    quiet: from === null || to === null ? null : { from, to },
    maxPerWeek: changes.maxPerWeek ?? maxPerWeek,
  };
}
