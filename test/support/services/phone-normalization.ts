import type { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import {
  NormalizePhoneHandler,
  type NormalizePhone,
} from '#loyalty/customers/phone-normalization.commands.js';
import { PhoneNormalization } from '#loyalty/customers/phone-normalization.service.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import type { LocalService } from './service.js';

/** Creates the phone normalization of a dispatcher. @param pool another one than that of the service */
export function newPhoneNormalization(
  { app }: LocalService,
  pool: Pool = app.get(Pool),
): PhoneNormalization {
  const keys = app.get(PersonalKeys);
  const handler = new NormalizePhoneHandler(
    app.get(CommandPipeline),
    new StoreRegions(app.get(Pool)),
    keys,
  );
  const execute = (command: NormalizePhone) => handler.execute(command);
  return new PhoneNormalization(pool, { execute } as CommandBus, app.get(LeaderLock), keys);
}

/** Until there is nothing left to do. */
export async function normalizePhones(service: LocalService): Promise<void> {
  const normalization = newPhoneNormalization(service);
  while (await normalization.normalizeNext());
}
