import { EventStore } from './migrations/0001-event-store.js';
import { Identity } from './migrations/0002-identity.js';
import { Webhooks } from './migrations/0003-webhooks.js';
import { Intents } from './migrations/0004-intents.js';
import { OutcomesLocationsPosters } from './migrations/0005-outcomes-locations-posters.js';
import { Lists } from './migrations/0006-lists.js';
import { WebhookLanes } from './migrations/0007-webhook-lanes.js';
import { MailOutbox } from './migrations/0009-mail-outbox.js';
import { ColumnsOfRows } from './migrations/0010-columns-of-rows.js';
import { IntentHolders } from './migrations/0011-intent-holders.js';
import { Caps } from './migrations/0012-caps.js';
import { ReplaysOfUnplannedEvents } from './migrations/0015-replays-of-unplanned-events.js';
import { MasterKeys } from './migrations/0013-master-keys.js';
import { DaysDroppedOneByOne } from './migrations/0016-days-dropped-one-by-one.js';
import { CustomerNames } from './migrations/0019-customer-names.js';
import { EventStoreIdentity } from './migrations/0022-event-store-identity.js';
import { AuditLists } from './migrations/0024-audit-lists.js';
import { History } from './migrations/0023-history.js';
import { TransparencyLog } from './migrations/0030-transparency-log.js';
import { MergedCustomers } from './migrations/0028-merged-customers.js';
import { MergedCardsCounted } from './migrations/0029-merged-cards-counted.js';
import { RowsOfOlderFolds } from './migrations/0034-rows-of-older-folds.js';
import { Erasures } from './migrations/0032-erasures.js';
import { FinalAuditLog } from './migrations/0020-final-audit-log.js';
import { CardsIssued } from './migrations/0026-cards-issued.js';
import { StripImages } from './migrations/0036-strip-images.js';
import { LogTimes } from './migrations/0025-log-times.js';
import { Passes } from './migrations/0035-passes.js';
import { WebCards } from './migrations/0039-web-cards.js';
import { GoogleWallet } from './migrations/0038-google-wallet.js';
import { RenewedKeys } from './migrations/0041-renewed-keys.js';
import { Sessions } from './migrations/0042-sessions.js';
import { Roles } from './migrations/0043-roles.js';
import { CardMessages } from './migrations/0045-card-messages.js';
import { StandInCards } from './migrations/0044-stand-in-cards.js';
import { AppleDevices } from './migrations/0037-apple-devices.js';
import { Tills } from './migrations/0048-tills.js';
import { SmsArrivals } from './migrations/0049-sms-arrivals.js';
import { Geocoding } from './migrations/0046-geocoding.js';
import { LoneCommits } from './migrations/0052-lone-commits.js';
import { OrderOfRecords } from './migrations/0053-order-of-records.js';
import { UncheckedHashes } from './migrations/0054-unchecked-hashes.js';
import { HoldersOfKeys } from './migrations/0055-holders-of-keys.js';
import { AddressChanges } from './migrations/0056-address-changes.js';
import { StoreVersions } from './migrations/0057-store-versions.js';
import { Retirements } from './migrations/0050-retirements.js';
import { EmailKeys } from './migrations/0065-email-keys.js';
import { SecondFactorFailures } from './migrations/0063-second-factor-failures.js';
import { StoreCountries } from './migrations/0064-store-countries.js';
import { SpendingLimits } from './migrations/0066-spending-limits.js';
import { SealedMailsAndAuditSources } from './migrations/0067-sealed-mails-and-audit-sources.js';
import { ErasureNotices } from './migrations/0068-erasure-notices.js';
import { SignupsWithoutPhone } from './migrations/0071-signups-without-phone.js';
import { UsersWithoutStore } from './migrations/0072-users-without-store.js';
import { PhonePassesByDueTime } from './migrations/0069-phone-passes-by-due-time.js';

/** In order. Listed one by one, because globs find different files in the sources and in the build. */
export const migrations = [
  EventStore,
  Identity,
  Webhooks,
  Intents,
  OutcomesLocationsPosters,
  Lists,
  WebhookLanes,
  MailOutbox,
  ColumnsOfRows,
  IntentHolders,
  Caps,
  ReplaysOfUnplannedEvents,
  MasterKeys,
  DaysDroppedOneByOne,
  CustomerNames,
  EventStoreIdentity,
  FinalAuditLog,
  History,
  TransparencyLog,
  MergedCustomers,
  LogTimes,
  CardsIssued,
  MergedCardsCounted,
  RowsOfOlderFolds,
  Erasures,
  AuditLists,
  Passes,
  AppleDevices,
  StripImages,
  WebCards,
  GoogleWallet,
  RenewedKeys,
  Sessions,
  Roles,
  CardMessages,
  Tills,
  SmsArrivals,
  StandInCards,
  Geocoding,
  Retirements,
  LoneCommits,
  OrderOfRecords,
  UncheckedHashes,
  HoldersOfKeys,
  AddressChanges,
  StoreVersions,
  SecondFactorFailures,
  StoreCountries,
  EmailKeys,
  SpendingLimits,
  SealedMailsAndAuditSources,
  ErasureNotices,
  SignupsWithoutPhone,
  UsersWithoutStore,
  PhonePassesByDueTime,
];
