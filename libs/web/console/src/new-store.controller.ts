import { Body, Controller, Get, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import type { AuditedWriter } from '#event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { Throttle } from '#http/throttle.js';
import { CreateAccount } from '#accounts/account.commands.js';
import { Quotas } from '#accounts/quotas.service.js';
import { Members } from '#identity/members.service.js';
import type { StoreProfile } from '#identity/store-profiles.service.js';
import { loadAsset, type Asset } from '#pages/assets.js';
import { ConsoleWriter, CurrentUser, type SignedInUser } from '#pages/current-user.js';
import { PageError } from '#pages/page-error.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { NO_FORM_ERRORS, toFormErrors, type FormErrors } from '#pages/form-errors.js';
import {
  readStoreForm,
  listLanguages,
  listCountryChoices,
  parseStoreSettings,
  listTimeZones,
  type Option,
  type OptionGroup,
  type StoreForm,
} from './store-form.js';

type NewStoreView = {
  values: StoreForm;
  languages: Option[];
  timeZones: OptionGroup[];
  countries: Option[];
  formErrors: FormErrors;
};

/** Chooses the time zone of the browser. */
const SCRIPT = loadAsset(import.meta.url, './assets/new-store.js');

const view = loadView<NewStoreView>(import.meta.url, './views/new-store.eta');

/** Lets owners of a store create another one. */
@Controller('app/new-store')
export class NewStoreController {
  constructor(
    private readonly bus: CommandBus,
    private readonly members: Members,
    private readonly pages: Pages,
    private readonly quotas: Quotas,
    private readonly config: Config,
  ) {}

  @Get()
  async show(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedInUser,
  ): Promise<void> {
    const { timeZone, country } = await this.getNewestStore(user, request);
    const settings = {
      time_zone: timeZone,
      locale: this.pages.localize(request).locale,
      country: country ?? '',
    };
    const values = { name: '', store_name: '', ...settings };
    await this.send(request, reply, { values, formErrors: NO_FORM_ERRORS }, [SCRIPT]);
  }

  @Post()
  @TakesForm()
  @Throttle(10)
  async create(
    @Body() form: Form,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedInUser,
  ): Promise<void> {
    const values = readStoreForm(form);
    let accountId: number;
    try {
      await this.getNewestStore(user, request);
      const attributes = { ...parseStoreSettings(values), personal: false };
      accountId = (await this.bus.execute(new CreateAccount(by, attributes, user.userId, true))).id;
      await this.quotas.inherit(by, accountId, user.userId);
    } catch (error) {
      if (error instanceof PageError) throw error;
      const formErrors = toFormErrors(error, this.pages.localize(request));
      return this.send(request, reply, { values, formErrors });
    }
    await this.pages.redirect(reply, `/app/stores/${accountId}`);
  }

  /** Gets the newest store that the user owns. @throws PageError if there is none, or there are as many as there may be */
  private async getNewestStore(
    { userId }: SignedInUser,
    request: FastifyRequest,
  ): Promise<StoreProfile> {
    const stores = await this.members.findOwnedStores(userId);
    const newest = stores.at(-1);
    if (newest && stores.length < this.config.maxStoresPerOwner) return newest;
    const { errors, newStore } = this.pages.localize(request).t.console;
    const reason = newest ? newStore.onlyOperators : newStore.onlyOwners;
    throw new PageError(403, errors.forbidden, reason);
  }

  private async send(
    request: FastifyRequest,
    reply: FastifyReply,
    { values, formErrors }: Pick<NewStoreView, 'values' | 'formErrors'>,
    scripts: readonly Asset[] = [],
  ): Promise<void> {
    const { t, locale } = this.pages.localize(request);
    const { form, newStore } = t.console;
    await this.pages.send(request, reply, {
      view,
      title: newStore.title,
      scripts,
      data: {
        values,
        formErrors,
        languages: listLanguages(values.locale, locale),
        timeZones: listTimeZones(values.time_zone, form.otherTimeZones, locale),
        countries: listCountryChoices(form.noCountry, locale),
      },
      status: formErrors === NO_FORM_ERRORS ? 200 : 422,
      width: 'form',
    });
  }
}
