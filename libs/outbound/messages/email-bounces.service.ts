import { Injectable, Logger } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { DamagedHistoryError, NotFoundError } from '#platform/kernel/errors.js';
import { RecordBounce } from '#loyalty/customers/email-bounces.commands.js';
import { isBounceStatus, type ReturnedEmail } from '#loyalty/customers/email-bounces.js';

/** An e-mail that a server returned or refused, and whom it was for. */
export type RefusedEmail = Omit<ReturnedEmail, 'status'> & {
  accountId: number;
  customerId: number;
  status: string | undefined;
};

/** Records which addresses of customers take no mail for good. */
@Injectable()
export class EmailBounces {
  private readonly log = new Logger('bounces');

  constructor(private readonly commands: CommandBus) {}

  /** Stops e-mails to an address, if the server's code says that it takes none for good. */
  async record({ accountId, customerId, status, ...email }: RefusedEmail): Promise<void> {
    if (!isBounceStatus(status)) return;
    const by = {
      accountId,
      actor: { type: 'system', id: 0 },
      channel: 'system',
      requestId: `bounce-${email.messageId}`,
    };
    try {
      await this.commands.execute(new RecordBounce(by, customerId, { ...email, status }));
    } catch (error) {
      // What is lost is not to hold up the messages of others.
      if (!(error instanceof NotFoundError || error instanceof DamagedHistoryError)) throw error;
    }
    this.log.log(`message ${email.messageId} came back (${status})`);
  }
}
