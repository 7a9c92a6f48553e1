import { Module } from '@nestjs/common';
import { ActorNames } from './actor-names.service.js';
import { AuditService } from './audit.service.js';
import { FollowedEntries } from './followed-entries.service.js';

/** Reads the audit log, with or without an API. */
@Module({
  providers: [ActorNames, AuditService, FollowedEntries],
  exports: [ActorNames, AuditService, FollowedEntries],
})
export class AuditModule {}
