import { Injectable } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import type { Queryable } from '#platform/database/connection.js';
import type { JobOutcome } from '#platform/database/job-queue.js';
import {
  PassSender,
  type CardScope,
  type PassUpdate,
  type UpdateRequest,
} from '#outbound/passes/pass-sender.js';
import { GoogleObjects } from './google-objects.service.js';
import { GooglePasses } from './google-passes.service.js';
import { toJobOutcome } from './publication.js';

const CONCURRENCY = 4;

/** Sends classes: everything that is the same for all customers of a card. The target is the card's id. */
@Injectable()
export class GoogleClassSender extends PassSender {
  readonly channel = 'google_class';
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

  /** Finds none: a change of one pass does not change its class. */
  async findTargets(): Promise<UpdateRequest[]> {
    return [];
  }

  override findSharedTargets(scope: CardScope, by: Queryable): Promise<UpdateRequest[]> {
    return this.objects.findClassTargets(scope, by);
  }

  async send({ target, attempts }: PassUpdate, signal: AbortSignal): Promise<JobOutcome> {
    return toJobOutcome(await this.passes.publishClass(Number(target), attempts, signal));
  }
}
