import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import { TakesForm, type Form } from '#http/form-bodies.js';
import { Throttle } from '#http/throttle.js';
import { UpdateAccount } from '#accounts/account.commands.js';
import { AccountsService } from '#accounts/accounts.service.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  Operation,
  type EnteredStore,
  type SignedIn,
} from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { viewOf } from '#pages/view.js';
import { textIn } from '#sign-in/form-text.js';
import { faultOf, NO_FAULT, type Fault } from './fault.js';
import {
  createConsentForm,
  consentTextsIn,
  describeSmsCountries,
  enteredIn,
  languagesWith,
  listCountryChoices,
  settingsOf,
  smsCountriesIn,
  createSmsForm,
  timeZonesWith,
  type ConsentForm,
  type SmsForm,
  type StoreForm,
} from './store-form.js';

type SettingsView = {
  values: StoreForm & ConsentForm & SmsForm;
  languages: { value: string; text: string }[];
  timeZones: { value: string; text: string }[];
  countries: { value: string; text: string }[];
  smsHint: string;
  fault: Fault;
  done: string;
};

const view = viewOf<SettingsView>(import.meta.url, './views/settings.eta');

const PER_MINUTE = { default: { limit: 30, ttl: 60_000 } };

@Controller('app/stores/:account_id/settings')
export class StoreSettingsController {
  constructor(
    private readonly bus: CommandBus,
    private readonly accounts: AccountsService,
    private readonly pages: Pages,
  ) {}

  @Get()
  @Operation('store.settings')
  async show(
    @Query('done') done: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() { userId }: SignedIn,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    const account = await this.accounts.find(userId, store.id);
    const { name, store_name, time_zone, locale, country } = account;
    const { consentTexts, smsCountries } = await this.accounts.findConsoleSettings(store.id);
    const values = {
      name,
      store_name: store_name ?? '',
      time_zone,
      locale,
      country: country ?? '',
      ...createConsentForm(consentTexts),
      ...createSmsForm(smsCountries),
    };
    const said = { values, fault: NO_FAULT, done: done === 'saved' ? 'Saved.' : '' };
    await this.send(request, reply, store, said);
  }

  @Post()
  @Operation('store.settings')
  @TakesForm()
  @Throttle(PER_MINUTE)
  async save(
    @Body() form: Form,
    @ConsoleContext() context: CommandContext,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() { userId }: SignedIn,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    const consentTexts = consentTextsIn(form);
    const values = {
      ...enteredIn(form),
      ...createConsentForm(consentTexts),
      sms_countries: textIn(form, 'sms_countries'),
    };
    try {
      const smsCountries = smsCountriesIn(values);
      const settings = { ...settingsOf(values), consentTexts, smsCountries };
      await this.bus.execute(new UpdateAccount(context, userId, settings));
    } catch (error) {
      return this.send(request, reply, store, { values, fault: faultOf(error), done: '' });
    }
    await this.pages.redirect(reply, `/app/stores/${store.id}/settings?done=saved`);
  }

  private async send(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    said: Pick<SettingsView, 'values' | 'fault' | 'done'>,
  ): Promise<void> {
    const { country } = await this.accounts.findConsoleSettings(store.id);
    await this.pages.send(request, reply, {
      view,
      title: `Settings · ${store.name}`,
      data: {
        ...said,
        languages: languagesWith(said.values.locale),
        timeZones: timeZonesWith(said.values.time_zone),
        countries: listCountryChoices(),
        smsHint: describeSmsCountries(country),
      },
      status: said.fault === NO_FAULT ? 200 : 422,
      width: 'form',
    });
  }
}
