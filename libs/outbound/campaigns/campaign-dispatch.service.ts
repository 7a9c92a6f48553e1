import { Injectable, Logger } from '@nestjs/common';
import { JobRunner } from '#platform/database/job-runner.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { MessageDispatch } from '#outbound/messages/message-dispatch.service.js';
import { CampaignAddressing } from './campaign-addressing.service.js';
import { CampaignMessages } from './campaign-messages.service.js';

/** Addresses campaigns, and sends messages to the holders of cards. */
@Injectable()
export class CampaignDispatch {
  private readonly runner = new JobRunner(new Logger('campaigns'));

  constructor(
    private readonly addressing: CampaignAddressing,
    private readonly messages: MessageDispatch,
    private readonly campaigns: CampaignMessages,
    private readonly metrics: QueueMetrics,
  ) {}

  start(): void {
    const { metrics, runner } = this;
    runner.start(metrics.watch('announcements', this.addressing.createHandler('announcement')));
    runner.start(metrics.watch('message_rules', this.addressing.createHandler('rule')));
    this.messages.startKind(this.campaigns);
  }

  stop(milliseconds: number): Promise<void> {
    return this.runner.stop(milliseconds);
  }
}
