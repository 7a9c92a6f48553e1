import { Injectable } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { DataSource } from 'typeorm';
import { Config } from '#configuration/config.js';
import { RejectedError } from '#platform/kernel/errors.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import {
  ConfirmAddress,
  RequestAddressChange,
  findRequestedAddress,
} from '#identity/address.commands.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import { toSentence } from '#web/pages/error-sentences.js';
import type { Localization } from '#translations/translations.js';
import type { SignedInUser } from '#web/pages/current-user.js';
import { createAddressChangedMail, createAddressMail } from './address-mails.js';
import { findUserTranslations } from './user-translations.service.js';
import { ISSUES } from '#translations/issues.js';

/** Changes the user's e-mail address by a link to the new one. It works once, for a day, in the user's own session. */
@Injectable()
export class Addresses {
  constructor(
    private readonly source: DataSource,
    private readonly bus: CommandBus,
    private readonly outbox: MailOutbox,
    private readonly config: Config,
  ) {}

  get canBeChanged(): boolean {
    return this.config.mail !== null;
  }

  /** Asserts that links can be sent. @throws RejectedError without a mail server */
  assertMailIsConfigured(): void {
    if (!this.canBeChanged) throw new RejectedError({ email: [this.createIssue()] });
  }

  /** Says how an address is changed, or that it cannot be. */
  describeChange({ t }: Localization): string {
    return this.canBeChanged ? t.signIn.account.emailHint : toSentence(this.createIssue(), t);
  }

  private createIssue() {
    const contact = this.config.supportContact;
    return contact === null
      ? ISSUES.email_not_changeable
      : ISSUES.email_not_changeable_ask({ contact: contact.text });
  }

  /** Sends a link to the new address. @throws RejectedError */
  async requestChange(by: AuditedWriter, { userId }: SignedInUser, email: string): Promise<void> {
    await this.bus.execute(
      new RequestAddressChange(by, userId, email, async (manager, change) => {
        const localization = await findUserTranslations(manager, userId);
        const mail = createAddressMail(change, this.config.publicUrl, localization);
        if ((await this.outbox.addForStranger(manager, mail)) === null) return;
        throw new RejectedError({
          email: [ISSUES.too_many_emails],
        });
      }),
    );
  }

  /** Finds the new address. @returns undefined if the link has expired or is another user's */
  find({ userId }: SignedInUser, token: string): Promise<string | undefined> {
    return findRequestedAddress(this.source.manager, userId, token);
  }

  /** Changes the address to that of the link. @throws NotFoundError, RejectedError */
  async confirm(by: AuditedWriter, { userId }: SignedInUser, token: string): Promise<void> {
    await this.bus.execute(
      new ConfirmAddress(by, userId, token, async (manager, changed) => {
        const localization = await findUserTranslations(manager, userId);
        await this.outbox.add(manager, [createAddressChangedMail(changed, localization)]);
      }),
    );
  }
}
