import { CommandBus, type Command } from '@nestjs/cqrs';
import { getRepositoryToken } from '@nestjs/typeorm';
import { Pool } from 'pg';
import type { Repository } from 'typeorm';
import { Config } from '#configuration/config.js';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import {
  SetImportedStamps,
  SetImportedStampsHandler,
} from '#loyalty/stamping/imported-stamps.commands.js';
import { ClaimHolders } from '#loyalty/stamping/claim-holders.service.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import { CustomerMatches } from '#loyalty/imports/customer-matches.service.js';
import { ImportApplying } from '#loyalty/imports/import-applying.service.js';
import { ImportChecking } from '#loyalty/imports/import-checking.service.js';
import { ImportDispatch } from '#loyalty/imports/import-dispatch.service.js';
import { ImportRecord } from '#loyalty/imports/import.entity.js';
import { ImportPreview } from '#loyalty/imports/import-preview.service.js';
import { ImportQueue } from '#loyalty/imports/import-queue.service.js';
import { ImportRetention } from '#loyalty/imports/import-retention.service.js';
import { ImportRows } from '#loyalty/imports/import-rows.service.js';
import { ImportUndoing } from '#loyalty/imports/import-undoing.service.js';
import { startSession, type LocalService } from './service.js';

/** Creates the imports of a dispatcher, with the providers of a running api. */
export function newImportDispatch(service: LocalService): ImportDispatch {
  const get = <T>(type: abstract new (...args: never[]) => T): T =>
    service.app.get<T>(type, { strict: false });
  const pool = get(Pool);
  const [eventStore, readModels, rows] = [get(EventStore), get(ReadModels), get(ImportRows)];
  const handler = new SetImportedStampsHandler(
    get(CommandPipeline),
    get(TemplatesService),
    readModels,
  );
  const bus = get(CommandBus);
  const execute = (command: Command<unknown>) =>
    command instanceof SetImportedStamps ? handler.execute(command) : bus.execute(command);
  const commands = { execute } as CommandBus;
  const regions = new StoreRegions(pool);
  const matches = new CustomerMatches(pool, get(PersonalKeys), readModels, get(ClaimHolders));
  const queue = new ImportQueue(pool, get(ProcessSession));
  startSession(service);
  const customerCards = get(CustomerCardsService);
  const previews = new ImportPreview(eventStore, readModels, customerCards, get(TemplatesService));
  return new ImportDispatch(
    queue,
    new ImportChecking(pool, rows, queue, regions, matches, previews),
    new ImportApplying(commands, eventStore, rows, regions, customerCards, matches),
    new ImportUndoing(commands, eventStore, readModels, customerCards, rows),
    new ImportRetention(pool, get(LeaderLock), get(Config)),
    get(Maintenance),
    service.app.get<Repository<ImportRecord>>(getRepositoryToken(ImportRecord), { strict: false }),
    get(QueueMetrics),
  );
}
