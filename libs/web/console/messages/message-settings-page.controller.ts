import { Body, Controller, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { readFields } from '#platform/http/dtos.js';
import type { Form } from '#platform/http/body-kinds.js';
import { UpdateMessageSettings } from '#outbound/campaigns/message-settings.commands.js';
import { UpdateMessageSettingsDto } from '#outbound/campaigns/message-settings.dto.js';
import { MessageSettingsService } from '#outbound/campaigns/message-settings.service.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import { buildMessagesPath, createMessageTabs, type Tabs } from '../outbox/message-tabs.js';

type SettingsForm = Record<'quiet_from' | 'quiet_to' | 'max_per_week', string>;

type SettingsData = {
  tabs: Tabs;
  action: string;
  values: SettingsForm;
  flash: string;
};

const view = loadView<SettingsData>(import.meta.url, './views/message-settings.eta');

/** Serves the quiet hours of a store. */
@Controller('app/stores/:account_id/messages/settings')
export class MessageSettingsPageController {
  constructor(
    private readonly settings: MessageSettingsService,
    private readonly commands: FormCommands,
  ) {}

  @GetPage('getMessageSettings')
  async show(
    @CurrentStore() store: EnteredStore,
    @Query('done') done: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { quiet, maxPerWeek } = await this.settings.get(store.id);
    const values = {
      quiet_from: quiet?.from ?? '',
      quiet_to: quiet?.to ?? '',
      max_per_week: String(maxPerWeek),
    };
    const { saved } = localization.t.messagePages.settings;
    return this.render(localization, store, { values, flash: findFlashMessage(done, { saved }) });
  }

  @PostForm('updateMessageSettings', '', 30)
  async save(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Body() { quiet_from = '', quiet_to = '', max_per_week = '' }: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const values = { quiet_from, quiet_to, max_per_week };
    try {
      const input = readFields(UpdateMessageSettingsDto, values);
      const changes = {
        quietFrom: input.quiet_from ?? null,
        quietTo: input.quiet_to ?? null,
        ...(input.max_per_week !== undefined && { maxPerWeek: input.max_per_week }),
      };
      await this.commands.execute(new UpdateMessageSettings(context, changes));
      return redirectTo(`${buildMessagesPath(store)}/settings?done=saved`);
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.render(localization, store, { values, errors });
    }
  }

  private async render(
    localization: Localization,
    store: EnteredStore,
    { errors, ...state }: Pick<SettingsData, 'values'> & Partial<SettingsData> & Rejectable,
  ): Promise<PageResult> {
    const { t } = localization;
    return showPage({
      view,
      title: t.messagePages.settings.title,
      errors,
      width: 'form',
      data: {
        tabs: createMessageTabs(store, 'settings', t),
        action: `${buildMessagesPath(store)}/settings`,
        flash: '',
        ...state,
      },
    });
  }
}
