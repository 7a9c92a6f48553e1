import { Body, Controller, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { Form } from '#platform/http/body-kinds.js';
import { readFields } from '#platform/http/dtos.js';
import { parseLocale, UNNAMED_STORE } from '#loyalty/accounts/account.js';
import { UpdateAccount } from '#loyalty/accounts/account.commands.js';
import { toAccountSettings, UpdateAccountDto } from '#loyalty/accounts/account.dto.js';
import { AccountsService } from '#loyalty/accounts/accounts.service.js';
import { findCountryOfLocale } from '#loyalty/accounts/country.js';
import type { Asset } from '#web/pages/assets.js';
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
import { defineForm, type ValuesOf } from '#web/pages/forms.js';
import { toFormErrors, type Rejectable } from '#web/pages/form-errors.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import { loadView } from '#web/pages/view.js';
import type { Localization } from '#translations/translations.js';
import { BROWSER_REGION_SCRIPT } from './browser-region.js';
import {
  listCountryChoices,
  listLanguages,
  listTimeZones,
  type Option,
  type OptionGroup,
} from './store-choices.js';

type StoreNameView = { languages: Option[]; timeZones: OptionGroup[]; countries: Option[] };

const nameForm = defineForm(UpdateAccountDto, ['name', 'locale', 'country', 'time_zone']);

const view = loadView<StoreNameView>(import.meta.url, './views/store-name.eta');

/** Asks for the name of a store that nobody has named yet. The first poster leads here too (`next=poster`). */
@Controller('app/stores/:account_id/settings/name')
export class StoreNameController {
  constructor(
    private readonly commands: FormCommands,
    private readonly accounts: AccountsService,
  ) {}

  @GetPage('store.settings')
  async show(
    @Req() request: FastifyRequest,
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    if (store.name !== UNNAMED_STORE) return redirectTo(`/app/stores/${store.id}/settings`);
    const { time_zone, country } = await this.accounts.get(userId, store.id);
    const values = nameForm.toValues({
      name: '',
      locale: localization.locale,
      country: country ?? findPreferredCountry(request),
      time_zone,
    });
    return this.render(localization, values, { scripts: [BROWSER_REGION_SCRIPT] });
  }

  @PostForm('store.settings', '', 30)
  async save(
    @Body() form: Form,
    @Query('next') next: unknown,
    @ConsoleContext() context: CommandContext,
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const values = nameForm.read(form);
    try {
      const changes = toAccountSettings(readFields(UpdateAccountDto, values));
      await this.commands.execute(new UpdateAccount(context, userId, changes));
    } catch (error) {
      return this.render(localization, values, { errors: toFormErrors(error, localization) });
    }
    return redirectTo(
      `/app/stores/${store.id}${next === 'poster' ? '/posters/new' : '?done=saved'}`,
    );
  }

  private render(
    { t, locale }: Localization,
    values: ValuesOf<typeof nameForm>,
    extras: Rejectable & { scripts?: readonly Asset[] },
  ): PageResult {
    const { form } = t.console;
    return showPage({
      view,
      title: t.overview.steps.name.title,
      ...extras,
      inputs: nameForm.toInputs(values),
      data: {
        languages: listLanguages(values.locale, locale),
        timeZones: listTimeZones(values.time_zone, form.otherTimeZones, locale),
        countries: listCountryChoices(form.noCountry, locale),
      },
      width: 'form',
    });
  }
}

/** Finds the country of the language that the browser prefers, such as AT of de-AT. */
function findPreferredCountry(request: FastifyRequest): string | null {
  const locale = parseLocale(new Negotiator(request).languages()[0] ?? '');
  return locale === undefined ? null : findCountryOfLocale(locale);
}
