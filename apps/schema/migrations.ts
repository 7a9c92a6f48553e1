import type { Migration } from '#platform/database/migrate.js';
import { Baseline } from './0001-baseline.js';
import { Campaigns } from './0002-campaigns.js';
import { OutgoingMessages } from './0003-outgoing-messages.js';
import { EmailBounces } from './0004-email-bounces.js';
import { Visits } from './0005-visits.js';
import { Names } from './0006-names.js';
import { LastTests } from './0007-last-tests.js';
import { FailingPasses } from './0008-failing-passes.js';
import { PhonesAndRestores } from './0009-phones-and-restores.js';
import { ImportedPeople } from './0010-imported-people.js';
import { UnconfirmedConsents } from './0011-unconfirmed-consents.js';
import { SignInLinks } from './0012-sign-in-links.js';

/** All migrations in their order. Listed one by one, because a glob finds other files in the build than in the sources. */
export const migrations: readonly Migration[] = [
  Baseline,
  Campaigns,
  OutgoingMessages,
  EmailBounces,
  Visits,
  Names,
  LastTests,
  FailingPasses,
  PhonesAndRestores,
  ImportedPeople,
  UnconfirmedConsents,
  SignInLinks,
];
