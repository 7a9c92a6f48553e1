import { Injectable } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import type { Queryable } from '#platform/database/connection.js';
import type { JobOutcome } from '#platform/database/job-queue.js';
import { PassSender, type PassUpdate, type UpdateRequest } from '#outbound/passes/pass-sender.js';
import { GoogleObjects } from './google-objects.service.js';
import { GooglePasses } from './google-passes.service.js';
import { toJobOutcome } from './publication.js';

const CONCURRENCY = 8;

/** Sends objects: the passes of customers. The target is the customer card's id. */
@Injectable()
export class GoogleObjectSender extends PassSender {
  readonly channel = 'google_object';
  readonly concurrency = CONCURRENCY;
  readonly enabled: boolean;

  constructor(
    private readonly passes: GooglePasses,
    private readonly objects: GoogleObjects,
    { google }: Config,
  ) {
    super();
    this.enabled = google !== null;
  }

  findTargets(customerCardIds: number[], by: Queryable): Promise<UpdateRequest[]> {
    return this.objects.findObjectTargets(customerCardIds, by);
  }

  async send({ target, attempts }: PassUpdate, signal: AbortSignal): Promise<JobOutcome> {
    return toJobOutcome(await this.passes.publishObject(Number(target), attempts, signal));
  }
}
