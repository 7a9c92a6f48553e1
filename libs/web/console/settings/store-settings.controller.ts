import { Body, Controller, Query } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { Form } from '#platform/http/body-kinds.js';
import { UpdateAccount } from '#loyalty/accounts/account.commands.js';
import { AccountsService } from '#loyalty/accounts/accounts.service.js';
import { Quotas, type Quota } from '#loyalty/accounts/quotas.service.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  type EnteredStore,
  type SignedInUser,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import { toFormErrors, type Rejectable } from '#web/pages/form-errors.js';
import type { Localization } from '#translations/translations.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import {
  canSuggestTexts,
  parseStoreSettings,
  storeSettingsForm,
  suggestConsentTexts,
  toStoreSettingsForm,
  type StoreSettingsForm,
} from './store-settings-form.dto.js';
import {
  describeSmsCountries,
  listAddressForms,
  listCountryChoices,
  listLanguages,
  listTimeZones,
  type Option,
  type OptionGroup,
} from './store-choices.js';

type SettingsView = {
  languages: Option[];
  addressForms: Option[];
  timeZones: OptionGroup[];
  countries: Option[];
  smsHint: string;
  /** Whether a text is blank that can be suggested. */
  canSuggest: boolean;
  isSmsOpen: boolean;
  /** Empty for others than owners. */
  quotas: { label: string; used: string; max: string; isUsedUp: boolean; isShared: boolean }[];
  flash: string;
};

const view = loadView<SettingsView>(import.meta.url, './views/settings.eta');

@Controller('app/stores/:account_id/settings')
export class StoreSettingsController {
  constructor(
    private readonly commands: FormCommands,
    private readonly accounts: AccountsService,
    private readonly quotas: Quotas,
    private readonly config: Config,
  ) {}

  @GetPage('store.settings')
  async show(
    @Query('done') done: string | undefined,
    @Query('suggest') suggest: unknown,
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const account = await this.accounts.get(userId, store.id);
    const values = toStoreSettingsForm(account, await this.accounts.getConsoleSettings(store.id));
    const { saved, textsSuggested } = localization.t.console.settings;
    if (suggest === 'yes' && canSuggestTexts(values, this.hasSms())) {
      const suggested = suggestConsentTexts(values, account.address_form, this.hasSms());
      return this.render(localization, store, { values: suggested, flash: textsSuggested });
    }
    return this.render(localization, store, { values, flash: findFlashMessage(done, { saved }) });
  }

  @PostForm('store.settings', '', 30)
  async save(
    @Body() form: Form,
    @ConsoleContext() context: CommandContext,
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const values = storeSettingsForm.read(form);
    try {
      await this.commands.execute(new UpdateAccount(context, userId, parseStoreSettings(values)));
    } catch (error) {
      return this.render(localization, store, {
        values,
        errors: toFormErrors(error, localization),
        flash: '',
      });
    }
    return redirectTo(`/app/stores/${store.id}/settings?done=saved`);
  }

  private hasSms(): boolean {
    return this.config.sms !== null;
  }

  private async listQuotas(
    { id, role }: EnteredStore,
    localization: Localization,
  ): Promise<SettingsView['quotas']> {
    if (role !== 'owner') return [];
    return (await this.quotas.list(id)).map((quota) => toQuotaView(quota, localization));
  }

  private async render(
    localization: Localization,
    store: EnteredStore,
    { errors, values, flash }: Rejectable & { values: StoreSettingsForm; flash: string },
  ): Promise<PageResult> {
    const { country } = await this.accounts.getConsoleSettings(store.id);
    const { t, locale } = localization;
    const { form, pageOf, settings } = t.console;
    return showPage({
      view,
      title: pageOf({ page: settings.title, store: store.name }),
      inputs: storeSettingsForm.toInputs(values),
      data: {
        flash,
        languages: listLanguages(values.locale, locale),
        addressForms: listAddressForms(localization),
        timeZones: listTimeZones(values.time_zone, form.otherTimeZones, locale),
        countries: listCountryChoices(form.noCountry, locale),
        smsHint: [
          !this.hasSms() && localization.t.messagePages.form.notSetUp,
          describeSmsCountries(country, localization),
        ]
          .filter(Boolean)
          .join(' '),
        canSuggest: canSuggestTexts(values, this.hasSms()),
        isSmsOpen: this.hasSms() || values.sms_countries !== '',
        quotas: await this.listQuotas(store, localization),
      },
      errors,
      width: 'form',
    });
  }
}

function toQuotaView(
  { name, used, max, isShared }: Quota,
  { t: { console: texts }, locale }: Localization,
): SettingsView['quotas'][number] {
  const numbers = new Intl.NumberFormat(locale);
  return {
    label: texts.settings.quotaNames[name],
    isShared,
    used: numbers.format(used),
    max: max === null ? texts.settings.unlimited : numbers.format(max),
    isUsedUp: max !== null && used >= max,
  };
}
