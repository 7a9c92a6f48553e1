import { Module } from '@nestjs/common';
import { ActorNames } from './actor-names.service.js';
import { AuditService } from './audit.service.js';

/** Reads the audit log, with or without an API. */
@Module({ providers: [ActorNames, AuditService], exports: [ActorNames, AuditService] })
export class AuditModule {}
