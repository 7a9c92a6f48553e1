import { Body, Controller, Param, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Readable } from 'node:stream';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { getNow } from '#platform/kernel/clock.js';
import { readFields } from '#platform/http/dtos.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import { Throttle } from '#platform/http/throttle.js';
import { RequestCardLinks } from '#loyalty/customers/card-links.commands.js';
import { UpdateCustomer } from '#loyalty/customers/customer.commands.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { CustomerExport } from '#loyalty/customers/customer-export.service.js';
import { toCustomerChanges, UpdateCustomerDto } from '#loyalty/customers/customer-input.dto.js';
import { CustomersService } from '#loyalty/customers/customers.service.js';
import { RetryEmail } from '#loyalty/customers/email-bounces.commands.js';
import { EraseCustomer } from '#loyalty/customers/erasing.commands.js';
import { ExplanationService } from '#loyalty/history/explanation.service.js';
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
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { describeRejection, type FormErrors } from '#web/pages/form-errors.js';
import type { CardPath } from '#loyalty/stamping/card-holder.js';
import {
  EnrolCustomer,
  RedeemReward,
  StampCustomerCard,
} from '#loyalty/stamping/customer-card.commands.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { toDateLocale, type Localization } from '#translations/translations.js';
import { parsePositiveInteger } from '#web/pages/page-query.js';
import { type PageResult, showPage, askToConfirm, redirectTo } from '#web/pages/page-results.js';
import { parseCardParameters, type CardParameters } from './correction-pages.controller.js';
import {
  customerForm,
  findChangedFields,
  readCustomerFields,
  toCustomerFields,
  type CustomerFields,
} from './customer-form.dto.js';
import { formView, linkToCustomer, listMonths, renderName } from './customer-list.controller.js';
import { buildCustomerPath } from './customer-list-page.js';
import {
  buildCardFlashPath,
  CustomerView,
  isOpen,
  type CustomerFlashName,
} from './customer-view.service.js';

type ExplainView = {
  name: string;
  card: string;
  balance: string;
  rewards: { name: string; costs: string; state: string; since: string }[];
  /** All but the last steps, oldest first; folded, as a regular's card has hundreds. */
  earlier: ExplainedStep[];
  steps: ExplainedStep[];
};

type ExplainedStep = { text: string; change: string; balance: string };

/** Says that staff did it on a page, without a receipt number: the form lets it happen once. */
const BY_STAFF = {
  locationId: null,
  staffRef: null,
  externalRef: null,
  silent: false,
  personal: null,
  source: 'app_scan',
  occurredAt: undefined,
} as const;

const UNFOLDED_STEPS = 20;

const explainView = loadView<ExplainView>(import.meta.url, './views/explain.eta');

/** Serves the page of a customer, with what can be done for them. */
@Controller('app/stores/:account_id/customers/:id')
export class CustomerPageController {
  constructor(
    private readonly commands: FormCommands,
    private readonly customers: CustomersService,
    private readonly customerCards: CustomerCardsService,
    private readonly view: CustomerView,
    private readonly exports: CustomerExport,
    private readonly explanations: ExplanationService,
    private readonly times: StoreTimes,
  ) {}

  @GetPage('getCustomer')
  async show(
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param('id') path: string,
    @Query() query: Record<string, unknown>,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const customer = await this.customers.get(store.id, parsePathId(path));
    return this.view.show(localization, {
      store,
      user,
      customer,
      done: query['done'],
      cardId: parsePositiveInteger(query['card']),
    });
  }

  @GetPage('updateCustomer', 'edit')
  async showForm(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const customer = await this.customers.get(store.id, parsePathId(path));
    return this.renderForm(localization, store, customer, toCustomerFields(customer));
  }

  @PostForm('updateCustomer', 'edit')
  async update(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const customer = await this.customers.get(store.id, parsePathId(path));
    const values = readCustomerFields(form);
    try {
      const changes = findChangedFields(toCustomerFields(customer), values);
      const body = readFields(UpdateCustomerDto, changes);
      await this.commands.execute(
        new UpdateCustomer(context, customer.id, toCustomerChanges(body)),
      );
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.renderForm(localization, store, customer, values, errors);
    }
    return this.redirect(store, customer.id, 'saved');
  }

  @PostForm('enrolCustomer', 'cards')
  async enrol(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param('id') path: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const customerId = parsePathId(path);
    let enrolled: { id: number };
    try {
      const cardId = parsePathId(form['card_id'] ?? '');
      enrolled = await this.commands.execute(new EnrolCustomer(context, customerId, cardId));
    } catch (error) {
      return this.showRejection(localization, { store, user, id: customerId, error });
    }
    return redirectTo(buildCardFlashPath(store, { customerId, id: enrolled.id }, 'enrolled'));
  }

  @PostForm('stampCustomerCard', 'cards/:customer_card_id/stamp')
  async stamp(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param() path: CardParameters,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const ids = await this.findCard(store, path);
    try {
      const action = { ...BY_STAFF, stamps: 1 };
      await this.commands.execute(new StampCustomerCard(context, ids, action));
    } catch (error) {
      return this.showRejection(localization, { store, user, id: ids.customerId, error });
    }
    return redirectTo(buildCardFlashPath(store, ids, 'stamped'));
  }

  @PostForm('redeemReward', 'cards/:customer_card_id/redeem')
  async redeem(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param() path: CardParameters,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const ids = await this.findCard(store, path);
    try {
      const action = { ...BY_STAFF, rewardId: parsePathId(form['reward_id'] ?? '') };
      await this.commands.execute(new RedeemReward(context, ids, action));
    } catch (error) {
      return this.showRejection(localization, { store, user, id: ids.customerId, error });
    }
    return redirectTo(buildCardFlashPath(store, ids, 'redeemed'));
  }

  @PostForm('customers.send_link', 'cards/:customer_card_id/send_link')
  async sendLink(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param() path: CardParameters,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const ids = await this.findCard(store, path);
    let isSent: boolean;
    try {
      isSent = await this.commands.execute(new RequestCardLinks(context, ids));
    } catch (error) {
      return this.showRejection(localization, { store, user, id: ids.customerId, error });
    }
    return this.redirect(store, ids.customerId, isSent ? 'sent' : 'notSent');
  }

  @PostForm('updateCustomer', 'retry_email')
  async retryEmail(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    try {
      await this.commands.execute(new RetryEmail(context, id));
    } catch (error) {
      return this.showRejection(localization, { store, user, id, error });
    }
    return this.redirect(store, id, 'retried');
  }

  @GetPage('explainCustomerCard', 'cards/:customer_card_id/explain')
  async explain(
    @CurrentStore() store: EnteredStore,
    @Param() path: CardParameters,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const card = await this.customerCards.get(store.id, parseCardParameters(path));
    const customer = await this.customers.get(store.id, card.customer_id);
    const { t: translations, locale } = localization;
    const t = translations.customerPages.explain;
    const explanation = await this.explanations.explain(store.id, card.id, toDateLocale(locale));
    const { minute } = await this.times.createFormats(store.id, locale);
    const numbers = new Intl.NumberFormat(locale);
    const changes = new Intl.NumberFormat(locale, { signDisplay: 'exceptZero' });
    const steps = explanation.steps.map(({ text, stamps, balance }) => ({
      text,
      change: stamps === null ? '' : changes.format(stamps).replace('-', '−'),
      balance: numbers.format(balance),
    }));
    return showPage({
      view: explainView,
      title: t.title,
      breadcrumb: linkToCustomer(store, customer, translations),
      data: {
        name: renderName(customer, translations.customerPages.person.erased),
        card: card.card_name,
        balance: t.balance({ count: explanation.balance }),
        rewards: explanation.rewards.map(({ name, stamps_required, state, since }) => ({
          name,
          costs: translations.stamps.count({ count: stamps_required }),
          state:
            state === 'unlocked' && explanation.balance < stamps_required
              ? t.states.reached
              : state === 'locked' && since !== null
                ? t.states.lost
                : t.states[state],
          since: since === null ? '' : minute(new Date(since)),
        })),
        earlier: steps.slice(0, -UNFOLDED_STEPS),
        steps: steps.slice(-UNFOLDED_STEPS),
      },
    });
  }

  @GetPage('exportCustomer', 'export')
  @Throttle(60)
  async export(
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = parsePathId(path);
    const parts = await this.exports.createExport(context, id, getNow());
    await reply
      .type('application/json; charset=utf-8')
      .header('cache-control', 'no-store')
      .header('content-disposition', `attachment; filename="customer-${id}.json"`)
      .send(Readable.from(parts, { objectMode: false }));
  }

  @GetPage('eraseCustomer', 'erase')
  async askToErase(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const customer = await this.customers.get(store.id, parsePathId(path));
    if (customer.erased_at !== null) return redirectTo(buildCustomerPath(store, customer.id));
    const { t } = localization;
    const { title, text, yes, no } = t.customerPages.erase;
    const contact = [customer.email, customer.phone].filter((value) => value !== null);
    const name = renderName(customer, t.customerPages.person.erased);
    return askToConfirm({
      question: title,
      about: [name, ...contact].join(', '),
      text,
      yes,
      no,
      back: buildCustomerPath(store, customer.id),
    });
  }

  @PostForm('eraseCustomer', 'erase')
  async erase(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
  ): Promise<PageResult> {
    await this.commands.execute(new EraseCustomer(context, parsePathId(path)));
    return redirectTo(`/app/stores/${store.id}/customers?done=erased`);
  }

  /** Finds who holds the card: that of the path may have been merged into another. @throws NotFoundError */
  private async findCard(store: EnteredStore, path: CardParameters): Promise<CardPath> {
    const card = await this.customerCards.get(store.id, parseCardParameters(path));
    return { customerId: card.customer_id, id: card.id };
  }

  private redirect(store: EnteredStore, id: number, done: CustomerFlashName): PageResult {
    return redirectTo(`${buildCustomerPath(store, id)}?done=${done}`);
  }

  private async showRejection(
    localization: Localization,
    {
      store,
      user,
      id,
      error,
    }: { store: EnteredStore; user: SignedInUser; id: number; error: unknown },
  ): Promise<PageResult> {
    const errors = describeRejection(error, localization);
    const customer = await this.customers.get(store.id, id);
    return this.view.show(localization, { store, user, customer, errors });
  }

  private async renderForm(
    localization: Localization,
    store: EnteredStore,
    customer: CustomerJson,
    values: CustomerFields,
    errors?: FormErrors,
  ): Promise<PageResult> {
    const base = buildCustomerPath(store, customer.id);
    if (!isOpen(customer)) return redirectTo(base);
    const { t: translations, locale } = localization;
    const t = translations.customerPages.form;
    const heading = t.editTitle({
      name: renderName(customer, translations.customerPages.person.erased),
    });
    return showPage({
      view: formView,
      title: heading,
      width: 'form',
      breadcrumb: linkToCustomer(store, customer, translations),
      errors,
      inputs: customerForm.toInputs(values),
      data: {
        heading,
        action: `${base}/edit`,
        back: base,
        submit: translations.words.save,
        values,
        months: listMonths(locale),
        creation: null,
      },
    });
  }
}
