import { Injectable, Logger } from '@nestjs/common';
import { JobRunner } from '#platform/database/job-runner.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { CampaignAddressing } from './campaign-addressing.service.js';
import { CustomerMessageSending } from './customer-message-sending.service.js';
import { CHANNELS } from './message-channel.js';

/** Addresses campaigns, and sends messages to the holders of cards. */
@Injectable()
export class CampaignDispatch {
  private readonly runner = new JobRunner(new Logger('messages to customers'));

  constructor(
    private readonly addressing: CampaignAddressing,
    private readonly sending: CustomerMessageSending,
    private readonly metrics: QueueMetrics,
  ) {}

  start(): void {
    const { metrics, runner } = this;
    runner.start(metrics.watch('announcements', this.addressing.createHandler('announcement')));
    runner.start(metrics.watch('message_rules', this.addressing.createHandler('rule')));
    for (const channel of CHANNELS) {
      runner.start(metrics.watch(`messages_${channel}`, this.sending.createHandler(channel)));
    }
  }

  stop(milliseconds: number): Promise<void> {
    return this.runner.stop(milliseconds);
  }
}
