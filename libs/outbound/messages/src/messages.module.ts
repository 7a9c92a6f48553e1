import { Module } from '@nestjs/common';
import { MailDispatch } from './mail-dispatch.service.js';
import { MailOutbox } from './mail-outbox.service.js';
import { SmtpClient } from './smtp.client.js';

@Module({
  providers: [MailDispatch, MailOutbox, SmtpClient],
  exports: [MailDispatch, MailOutbox],
})
export class MessagesModule {}
