import { Body, Controller, Get, Patch } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { UpdateMessageSettings } from './message-settings.commands.js';
import {
  MessageSettingsJson,
  toMessageSettingsJson,
  toSettingsChanges,
  UpdateMessageSettingsDto,
} from './message-settings.dto.js';
import { MessageSettingsService } from './message-settings.service.js';

@Controller('/api/v1/accounts/:account_id/message_settings')
export class MessageSettingsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly settings: MessageSettingsService,
  ) {}

  @Get()
  @Endpoint({
    id: 'getMessageSettings',
    tag: 'Messages to customers',
    summary: 'Show the settings of messages',
    description: 'The quiet hours of the store, and how many messages a customer gets in a week.',
    path: ['account_id'],
    status: 200,
    response: MessageSettingsJson,
    errors: [404],
  })
  async show(@Context() { accountId }: CommandContext): Promise<MessageSettingsJson> {
    return toMessageSettingsJson(await this.settings.get(accountId));
  }

  @Patch()
  @Endpoint({
    id: 'updateMessageSettings',
    tag: 'Messages to customers',
    summary: 'Update the settings of messages',
    description: 'Only the given fields change. They apply to what is queued already.',
    path: ['account_id'],
    status: 200,
    response: MessageSettingsJson,
    errors: [404, 422],
  })
  update(
    @Context() context: CommandContext,
    @Body() body: UpdateMessageSettingsDto,
  ): Promise<MessageSettingsJson> {
    return this.commands.execute(new UpdateMessageSettings(context, toSettingsChanges(body)));
  }
}
