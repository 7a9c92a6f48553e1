import { Injectable } from '@nestjs/common';
import { Config } from '#kernel/config.js';
import {
  PassSender,
  type CardScope,
  type PassOutcome,
  type PassUpdate,
  type WantedUpdate,
} from '#passes/pass-sender.js';
import { GoogleObjects } from './google-objects.service.js';
import { GooglePasses } from './google-passes.service.js';
import { settled } from './publication.js';

const AT_ONCE = 4;

/** What all customers of a card see alike. The target is the card's id. */
@Injectable()
export class GoogleClassSender extends PassSender {
  readonly channel = 'google_class';
  readonly atOnce = AT_ONCE;
  readonly enabled: boolean;

  constructor(
    private readonly passes: GooglePasses,
    private readonly objects: GoogleObjects,
    { google }: Config,
  ) {
    super();
    this.enabled = google !== null;
  }

  /** A change of one pass does not change what it shares with the others. */
  async targetsOf(): Promise<WantedUpdate[]> {
    return [];
  }

  override sharedTargetsOf(scope: CardScope): Promise<WantedUpdate[]> {
    return this.objects.classTargetsOf(scope);
  }

  async send({ target, attempts }: PassUpdate, signal: AbortSignal): Promise<PassOutcome> {
    return settled(await this.passes.publishClass(Number(target), attempts, signal));
  }
}
