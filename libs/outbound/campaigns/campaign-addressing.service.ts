import { Injectable } from '@nestjs/common';
import { getNowMs } from '#platform/kernel/clock.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { isDatabaseUnavailable } from '#platform/database/connection.js';
import type { Job, JobOutcome } from '#platform/database/job-queue.js';
import type { JobHandler } from '#platform/database/job-runner.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import type { CampaignKind } from './campaign.js';
import { NO_MESSAGES } from './message-recipient.js';
import { CampaignQueue, type Queued, type QueuedCampaign } from './campaign-queue.service.js';
import { Audiences } from './audiences.service.js';
import { MessageRecipients } from './message-recipients.service.js';
import { RuleChecks } from './rule-checks.service.js';

const CONCURRENCY = 2;
/** Customers of a slice. Then another store is served. */
const BATCH_SIZE = 500;
/** Between looks whether the last message was sent, while some are. */
const WAIT_MS = 1_000;
const MAINTENANCE_WAIT_MS = 5_000;
/** After a fault in the check of one rule, such as a query that takes too long. */
const CHECK_AGAIN_MS = 5 * 60_000;

/** Addresses campaigns to customers, in slices: announcements to an audience, and rules to those who have an occasion. */
@Injectable()
export class CampaignAddressing {
  constructor(
    private readonly queue: CampaignQueue,
    private readonly audiences: Audiences,
    private readonly recipients: MessageRecipients,
    private readonly rules: RuleChecks,
    private readonly maintenance: Maintenance,
  ) {}

  createHandler(kind: CampaignKind): JobHandler<QueuedCampaign> {
    return {
      queue: this.queue,
      concurrency: CONCURRENCY,
      claim: (limit) => this.queue.claim(limit, kind),
      describeFailure: ({ id }) => `${kind} ${id} came to a halt`,
      attempt: (job) => this.workSlice(job),
    };
  }

  private async workSlice(job: Job<QueuedCampaign>): Promise<JobOutcome | void> {
    if (await this.maintenance.find()) return this.queue.endSlice(job, MAINTENANCE_WAIT_MS);
    if (job.kind === 'rule') return this.check(job);
    return job.isAddressed ? this.endIfSent(job) : this.address(job);
  }

  private async address(job: Job<Queued<'announcement'>>): Promise<void> {
    const { id, accountId, trigger, lastCustomerId } = job;
    const people = await this.audiences.findNext(accountId, trigger, lastCustomerId, BATCH_SIZE);
    const dueAt = new Date(getNowMs());
    const message = { source: { announcementId: id }, customerCardId: null, content: null, dueAt };
    const messages = people.map((person) => this.audiences.createMessage(job, person, message));
    await this.queue.address(job, messages, people.at(-1)?.customerId ?? null);
  }

  private async endIfSent(job: Job<QueuedCampaign>): Promise<void> {
    const waitEnd = await this.queue.findWaitEnd(job);
    if (waitEnd !== undefined) return this.queue.endSlice(job, WAIT_MS, waitEnd);
    const counts = await this.recipients.count('announcement', [job.id]);
    await this.queue.end(job, counts.get(job.id) ?? NO_MESSAGES);
  }

  private async check(job: Job<Queued<'rule'>>): Promise<JobOutcome | void> {
    try {
      await this.rules.check(job);
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      return { kind: 'failed', error: getErrorMessage(error), retryInMs: CHECK_AGAIN_MS };
    }
  }
}
