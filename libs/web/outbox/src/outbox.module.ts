import { Module } from '@nestjs/common';
import { MessagesModule } from '#messages/messages.module.js';
import { OutboxController } from './outbox.controller.js';

/** Serves the messages of a store in the console. */
@Module({ imports: [MessagesModule], controllers: [OutboxController] })
export class OutboxPageModule {}
