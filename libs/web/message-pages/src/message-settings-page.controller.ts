import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import type { FieldErrors } from '#kernel/errors.js';
import { readFields } from '#http/dtos.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { Throttle } from '#http/throttle.js';
import { UpdateMessageSettings } from '#announcements/message-settings.commands.js';
import { UpdateMessageSettingsDto } from '#announcements/message-settings.dto.js';
import { MessageSettingsService } from '#announcements/message-settings.service.js';
import { buildMessagesPath, createMessageTabs, type MessageTabs } from '#outbox/message-tabs.js';
import {
  ConsoleContext,
  CurrentStore,
  RequiresOperation,
  type EnteredStore,
} from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { describeRejection } from './message-views.js';

type SettingsForm = Record<'quiet_from' | 'quiet_to' | 'max_per_week', string>;

type SettingsData = {
  tabs: MessageTabs;
  action: string;
  values: SettingsForm;
  errors: FieldErrors;
  errorText: string;
  done: string;
};

const view = loadView<SettingsData>(import.meta.url, './views/message-settings.eta');

/** Serves the quiet hours of a store. */
@Controller('app/stores/:account_id/messages/settings')
export class MessageSettingsPageController {
  constructor(
    private readonly pages: Pages,
    private readonly settings: MessageSettingsService,
    private readonly commands: CommandBus,
  ) {}

  @Get()
  @RequiresOperation('getMessageSettings')
  async show(
    @CurrentStore() store: EnteredStore,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { quiet, maxPerWeek } = await this.settings.get(store.id);
    const values = {
      quiet_from: quiet?.from ?? '',
      quiet_to: quiet?.to ?? '',
      max_per_week: String(maxPerWeek),
    };
    const { saved } = this.pages.localize(request).t.words;
    await this.send(request, reply, store, { values, done: done === 'saved' ? saved : '' });
  }

  @Post()
  @TakesForm()
  @RequiresOperation('updateMessageSettings')
  @Throttle(30)
  async save(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Body() { quiet_from = '', quiet_to = '', max_per_week = '' }: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const values = { quiet_from, quiet_to, max_per_week };
    try {
      const input = readFields(UpdateMessageSettingsDto, values);
      const changes = {
        quietFrom: input.quiet_from ?? null,
        quietTo: input.quiet_to ?? null,
        ...(input.max_per_week !== undefined && { maxPerWeek: input.max_per_week }),
      };
      await this.commands.execute(new UpdateMessageSettings(context, changes));
      await this.pages.redirect(reply, `${buildMessagesPath(store)}/settings?done=saved`);
    } catch (error) {
      const rejection = describeRejection(error, this.pages.localize(request));
      await this.send(request, reply, store, { values, ...rejection });
    }
  }

  private async send(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    state: Pick<SettingsData, 'values'> & Partial<SettingsData>,
  ): Promise<void> {
    const { t } = this.pages.localize(request);
    await this.pages.send(request, reply, {
      view,
      title: t.messagePages.settings.title,
      status: state.errors === undefined ? 200 : 422,
      width: 'form',
      data: {
        tabs: createMessageTabs(store, 'settings', t),
        action: `${buildMessagesPath(store)}/settings`,
        errors: {},
        errorText: '',
        done: '',
        ...state,
      },
    });
  }
}
