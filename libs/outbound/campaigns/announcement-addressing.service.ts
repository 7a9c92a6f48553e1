import { Injectable } from '@nestjs/common';
import { getNowMs } from '#platform/kernel/clock.js';
import type { Job } from '#platform/database/job-queue.js';
import type { JobHandler } from '#platform/database/job-runner.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import { NO_MESSAGES } from './message-recipient.js';
import { AnnouncementQueue, type QueuedAnnouncement } from './announcement-queue.service.js';
import { Audiences } from './audiences.service.js';
import { chooseChannel } from './message-channel.js';
import { MessageRecipients } from './message-recipients.service.js';

const CONCURRENCY = 2;
/** Customers of a turn. Then it is another store's turn. */
const BATCH_SIZE = 500;
/** Between looks whether the last message was sent. */
const WAIT_MS = 1_000;
const MAINTENANCE_WAIT_MS = 5_000;

/** Addresses announcements to customers, in turns, and ends them once every message has its outcome. */
@Injectable()
export class AnnouncementAddressing {
  constructor(
    private readonly queue: AnnouncementQueue,
    private readonly audiences: Audiences,
    private readonly recipients: MessageRecipients,
    private readonly maintenance: Maintenance,
  ) {}

  createHandler(): JobHandler<QueuedAnnouncement> {
    return {
      queue: this.queue,
      concurrency: CONCURRENCY,
      claim: (limit) => this.queue.claim(limit),
      describeFailure: ({ id }) => `announcement ${id} came to a halt`,
      attempt: (job) => this.takeTurn(job),
    };
  }

  private async takeTurn(job: Job<QueuedAnnouncement>): Promise<void> {
    if (await this.maintenance.find()) return this.queue.endTurn(job, MAINTENANCE_WAIT_MS);
    if (job.isAddressed) return this.endIfSent(job);
    const { id, accountId, audience, channels, lastCustomerId } = job;
    const people = await this.audiences.findNext(accountId, audience, lastCustomerId, BATCH_SIZE);
    const dueAt = new Date(getNowMs());
    const messages = people.map(({ customerId, person }) => {
      const { channel, reasons } = chooseChannel(person, channels, this.audiences.setUp);
      return {
        accountId,
        customerId,
        customerCardId: null,
        source: { announcementId: id },
        content: null,
        channel,
        reason: reasons[0]?.reason ?? null,
        dueAt,
      };
    });
    await this.queue.address(job, messages, people.at(-1)?.customerId ?? null);
  }

  private async endIfSent(job: Job<QueuedAnnouncement>): Promise<void> {
    if (await this.queue.hasQueued(job)) return this.queue.endTurn(job, WAIT_MS);
    const counts = await this.recipients.countOfAnnouncements([job.id]);
    await this.queue.end(job, counts.get(job.id) ?? NO_MESSAGES);
  }
}
