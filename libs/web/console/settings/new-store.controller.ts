import { Body, Controller, Get, Post } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { readFields } from '#platform/http/dtos.js';
import { Throttle } from '#platform/http/throttle.js';
import { CreateAccount } from '#loyalty/accounts/account.commands.js';
import { NewStoreDto, toNewAccount } from '#web/admin-api/admin-store.dto.js';
import { Quotas } from '#loyalty/accounts/quotas.service.js';
import { Members } from '#identity/members.service.js';
import type { StoreProfile } from '#identity/store-profiles.service.js';
import type { Asset } from '#web/pages/assets.js';
import {
  ConsoleWriter,
  CurrentUser,
  RunsOnce,
  type SignedInUser,
  Localized,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { PageError } from '#web/pages/page-error.js';
import { loadView } from '#web/pages/view.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';
import { toFormErrors, type Rejectable } from '#web/pages/form-errors.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { BROWSER_REGION_SCRIPT } from './browser-region.js';
import {
  listLanguages,
  listCountryChoices,
  listTimeZones,
  type Option,
  type OptionGroup,
} from './store-choices.js';

type NewStoreView = {
  languages: Option[];
  timeZones: OptionGroup[];
  countries: Option[];
};

const storeForm = defineForm(NewStoreDto, ['name', 'store_name', 'time_zone', 'locale', 'country']);

const view = loadView<NewStoreView>(import.meta.url, './views/new-store.eta');

/** Lets owners of a store create another one. */
@Controller('app/new-store')
export class NewStoreController {
  constructor(
    private readonly commands: FormCommands,
    private readonly members: Members,
    private readonly quotas: Quotas,
    private readonly config: Config,
  ) {}

  @Get()
  async show(
    @Localized() localization: Localization,
    @CurrentUser() user: SignedInUser,
  ): Promise<PageResult> {
    const { timeZone, country } = await this.getNewestStore(user, localization);
    const values = storeForm.toValues({ timeZone, country, locale: localization.locale });
    return this.send(localization, values, { scripts: [BROWSER_REGION_SCRIPT] });
  }

  @Post()
  @TakesForm()
  @RunsOnce()
  @Throttle(10)
  async create(
    @Body() form: Form,
    @ConsoleWriter() by: AuditedWriter,
    @Localized() localization: Localization,
    @CurrentUser() user: SignedInUser,
  ): Promise<PageResult> {
    const values = storeForm.read(form);
    let accountId: number;
    try {
      const input = readFields(NewStoreDto, { ...values, owner_id: user.userId });
      const command = new CreateAccount(by, toNewAccount(input), user.userId, true);
      const assertRoom = async () => void (await this.getNewestStore(user, localization));
      accountId = (await this.commands.execute(command, '', assertRoom)).id;
      await this.commands.executeStep(by, 'quotas', (keyedWriter) =>
        this.quotas.inherit(keyedWriter, accountId, user.userId),
      );
    } catch (error) {
      if (error instanceof PageError) throw error;
      return this.send(localization, values, { errors: toFormErrors(error, localization) });
    }
    return redirectTo(`/app/stores/${accountId}`);
  }

  /** Gets the newest store that the user owns. @throws PageError if there is none, or there are as many as there may be */
  private async getNewestStore(
    { userId }: SignedInUser,
    localization: Localization,
  ): Promise<StoreProfile> {
    const stores = await this.members.findOwnedStores(userId);
    const newest = stores.at(-1);
    if (newest && stores.length < this.config.maxStoresPerOwner) return newest;
    const { errors, newStore } = localization.t.console;
    const reason = newest ? newStore.onlyOperators : newStore.onlyOwners;
    throw new PageError(403, errors.forbidden, reason);
  }

  private async send(
    localization: Localization,
    values: ValuesOf<typeof storeForm>,
    extras: Rejectable & { scripts?: readonly Asset[] },
  ): Promise<PageResult> {
    const { t, locale } = localization;
    const { form, newStore } = t.console;
    return showPage({
      view,
      title: newStore.title,
      ...extras,
      inputs: storeForm.toInputs(values),
      data: {
        languages: listLanguages(values.locale, locale),
        timeZones: listTimeZones(values.time_zone, form.otherTimeZones, locale),
        countries: listCountryChoices(form.noCountry, locale),
      },
      width: 'form',
    });
  }
}
