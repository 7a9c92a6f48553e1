import { Dto } from '#platform/http/dtos.js';
import {
  IntegerProperty,
  ObjectProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';

export const STATES = ['not_installed', 'installed', 'updating', 'failing', 'removed'] as const;
export type WalletState = (typeof STATES)[number];

@Dto('WalletPlatform')
export class WalletPlatformJson {
  @OneOfProperty(STATES, {
    description:
      'updating: the pass has changed and the device has not got it yet; failing: the last update did not arrive, and is tried again',
  })
  declare readonly state: WalletState;
  @TimestampProperty({ nullable: true, description: 'When the card was installed; null: never.' })
  declare readonly installed_at: string | null;
  @TimestampProperty({
    nullable: true,
    description: 'When the card was removed; null while it is there.',
  })
  declare readonly removed_at: string | null;
  @TimestampProperty({ nullable: true, description: 'When the platform last got the pass' })
  declare readonly last_synced_at: string | null;
  @TextProperty({
    nullable: true,
    example: null,
    description: 'Why the last update did not arrive; null when it did.',
  })
  declare readonly last_error: string | null;
}

@Dto('Wallet')
export class WalletJson {
  @IntegerProperty({ description: 'The customer card.' }) declare readonly customer_card_id: number;
  @ObjectProperty(() => WalletPlatformJson, { description: 'In Apple Wallet.' })
  declare readonly apple: WalletPlatformJson;
  @ObjectProperty(() => WalletPlatformJson, { description: 'In Google Wallet.' })
  declare readonly google: WalletPlatformJson;
  @ObjectProperty(() => WalletPlatformJson, {
    description: 'On the card’s own page, installed in a browser.',
  })
  declare readonly web: WalletPlatformJson;
}

export type Installation = {
  installedAt: Date | null;
  removedAt: Date | null;
  lastSyncedAt: Date | null;
  lastError: string | null;
};

const NOWHERE: Installation = {
  installedAt: null,
  removedAt: null,
  lastSyncedAt: null,
  lastError: null,
};

/** Renders the state of a pass. @param changedAt its last change; undefined: nobody has opened it */
export function toWalletJson(
  customerCardId: number,
  installations: ReadonlyMap<string, Installation>,
  changedAt: Date | undefined,
): WalletJson {
  const platform = (name: string) =>
    toWalletPlatformJson(installations.get(name) ?? NOWHERE, changedAt);
  return {
    customer_card_id: customerCardId,
    apple: platform('apple'),
    google: platform('google'),
    web: platform('web'),
  };
}

function toWalletPlatformJson(
  installation: Installation,
  changedAt: Date | undefined,
): WalletPlatformJson {
  const { installedAt, removedAt, lastSyncedAt, lastError } = installation;
  return {
    state: getState(installation, changedAt),
    installed_at: installedAt?.toISOString() ?? null,
    removed_at: removedAt?.toISOString() ?? null,
    last_synced_at: lastSyncedAt?.toISOString() ?? null,
    last_error: lastError,
  };
}

function getState(
  { installedAt, removedAt, lastSyncedAt, lastError }: Installation,
  changedAt: Date | undefined,
): WalletState {
  if (!installedAt) return 'not_installed';
  if (removedAt) return 'removed';
  if (lastError !== null) return 'failing';
  const syncedAt = lastSyncedAt ?? installedAt;
  return changedAt && changedAt > syncedAt ? 'updating' : 'installed';
}
