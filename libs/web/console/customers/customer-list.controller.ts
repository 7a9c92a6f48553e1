import { Body, Controller, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { getNowMs } from '#platform/kernel/clock.js';
import { TakenError } from '#platform/kernel/errors.js';
import { readFields } from '#platform/http/dtos.js';
import type { Form } from '#platform/http/body-kinds.js';
import { Config } from '#configuration/config.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import { CreateCustomer } from '#loyalty/customers/customer.commands.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerFilter } from '#loyalty/customers/customer-list.dto.js';
import { CustomerCreationDto, toCustomerInput } from '#loyalty/customers/customer-input.dto.js';
import { CustomersService } from '#loyalty/customers/customers.service.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { linkToEntry, type Breadcrumb } from '#web/pages/navigation.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import type { FilterChip } from '#web/pages/filter-chips.js';
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import { RewardsService } from '#loyalty/rewards/rewards.service.js';
import type { Localization, Translations } from '#translations/translations.js';
import { type PageResult, showPage, redirectTo } from '#web/pages/page-results.js';
import {
  customerForm,
  NO_FIELDS,
  readCustomerFields,
  toCustomerBody,
  type CustomerFields,
} from './customer-form.dto.js';
import {
  buildCustomerPath,
  describeBalance,
  findLastChange,
  findNearStamps,
  INACTIVE_DAYS,
  listWiderFilters,
  PAGE_SIZE,
  parseListFilter,
  parsePageNumber,
  renderListQuery,
  SORTS,
  type ListFilter,
} from './customer-list-page.js';

type CustomerLine = {
  path: string;
  name: string;
  contact: string;
  cards: { name: string; balance: string; count: number; full: number }[];
  active: string;
};
type Choices = { value: string; text: string }[];

type ListView = {
  base: string;
  filter: ListFilter;
  /** What the list is narrowed by, each with the path of the list without it. */
  chips: FilterChip[];
  sorts: { path: string; text: string; isCurrent: boolean }[];
  lines: CustomerLine[];
  countText: string;
  cards: Choices;
  inactive: Choices;
  months: Choices;
  /** Which page of how many. */
  pageOf: string;
  previous: string;
  next: string;
  flash: string;
};

/** The form to add or edit a customer. Paths are from the root of the service. */
export type FormView = {
  heading: string;
  action: string;
  back: string;
  submit: string;
  values: CustomerFields;
  months: Choices;
  /** Of a new customer only. */
  /** @property codeWhy what becomes of the QR code or link; blank: what the box says */
  creation: {
    cards: Choices;
    cardId: string;
    sendsLink: boolean;
    canSend: boolean;
    codeWhy: string;
  } | null;
};

const listView = loadView<ListView>(import.meta.url, './views/customers.eta');
export const formView = loadView<FormView>(import.meta.url, './views/customer-form.eta');

const DAY_MS = 24 * 60 * 60_000;
/** As many as a store has at most, and few enough for a select. */
const MAX_CARDS = 500;

/** Serves the list of customers and the form to add one. */
@Controller('app/stores/:account_id/customers')
export class CustomerListController {
  constructor(
    private readonly commands: FormCommands,
    private readonly customers: CustomersService,
    private readonly cards: CardsService,
    private readonly rewards: RewardsService,
    private readonly times: StoreTimes,
    private readonly config: Config,
  ) {}

  /** Says how many of all customers were erased, because quotas and messages do not count those. */
  private async describeCount(
    accountId: number,
    count: number,
    isAll: boolean,
    t: Translations['customerPages']['list'],
  ): Promise<string> {
    const erased = isAll ? await this.customers.countErased(accountId, count) : 0;
    return erased === 0 ? t.found({ count }) : t.foundErased({ count, erased });
  }

  @GetPage('listCustomers')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query() query: Record<string, unknown>,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { t: translations, locale } = localization;
    const { list: t, person } = translations.customerPages;
    const cards = await listCards(this.cards, store.id, 'all');
    const filter = parseListFilter(query);
    const page = parsePageNumber(query['page']);
    const { customers, pagination } = await this.customers.list(
      store.id,
      {
        search: filter.search === '' ? null : filter.search,
        reference: null,
        email: null,
        phone: null,
        code: null,
        updatedSince: null,
        birthdayMonth: filter.birthdayMonth,
        inactiveSince:
          filter.inactiveDays === null ? null : new Date(getNowMs() - filter.inactiveDays * DAY_MS),
        cardId: filter.cardId,
        minStamps: null,
        ...(await this.findNear(store.id, filter)),
      },
      { page, items: PAGE_SIZE, sort: filter.sort },
    );
    const base = `/app/stores/${store.id}/customers`;
    const { day } = await this.times.createFormats(store.id, locale);
    const pages = pagination.pages ?? 1;
    const chips = listWiderFilters(filter);
    const isAll = chips.length === 0 && filter.search === '';
    const linkTo = (number: number) => base + renderListQuery(filter, number);
    return showPage({
      view: listView,
      title: translations.words.customers,
      data: {
        base,
        filter,
        chips: chips.map(({ name, filter: wider }) => ({
          text: describeNarrowing(name, filter, cards, localization),
          path: base + renderListQuery(wider, 1),
        })),
        sorts: listSorts(base, filter, translations),
        lines: customers.map((customer) => toLine(customer, base, localization, day)),
        countText: await this.describeCount(store.id, pagination.count, isAll, t),
        cards: cards.map(({ id, name }) => ({ value: String(id), text: name })),
        inactive: INACTIVE_DAYS.map((days) => ({
          value: String(days),
          text: t.inactive({ days }),
        })),
        months: listMonths(locale),
        pageOf: pages > 1 ? t.page({ page, pages }) : '',
        previous: page > 1 ? linkTo(Math.min(page - 1, pages)) : '',
        next: page < pages ? linkTo(page + 1) : '',
        flash: findFlashMessage(query['done'], { erased: person.done.erased }),
      },
    });
  }

  @GetPage('createCustomer', 'new')
  async showForm(
    @CurrentStore() store: EnteredStore,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const cards = await listCards(this.cards, store.id, 'active');
    return this.renderForm(localization, store, cards, {
      values: NO_FIELDS,
      cardId: String(cards[0]?.id ?? ''),
      sendsLink: cards.length > 0,
    });
  }

  @PostForm('createCustomer')
  async create(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const values = readCustomerFields(form);
    const cardId = form['card_id'] ?? '';
    const sendsLink = form['send_link'] === 'yes';
    const base = `/app/stores/${store.id}/customers`;
    try {
      const body = readFields(CustomerCreationDto, {
        ...toCustomerBody(values),
        card_id: cardId === '' ? null : cardId,
        send_card_links: sendsLink && cardId !== '',
      });
      const { id } = await this.commands.execute(
        new CreateCustomer(context, toCustomerInput(body), body.card_id, body.send_card_links),
      );
      return redirectTo(`${base}/${id}?done=created`);
    } catch (error) {
      if (error instanceof TakenError && error.existing?.type === 'customer') {
        return redirectTo(`${base}/${error.existing.id}?done=known`);
      }
      const errors = describeRejection(error, localization);
      const cards = await listCards(this.cards, store.id, 'active');
      return this.renderForm(localization, store, cards, { values, cardId, sendsLink, errors });
    }
  }

  /** Finds the stamps that are near to a reward, by card: of the one that is chosen, or of all. */
  private async findNear(
    accountId: number,
    { isNear, cardId }: ListFilter,
  ): Promise<Pick<CustomerFilter, 'minStampsByCard'>> {
    if (!isNear) return {};
    const costs = await this.rewards.listLowestCosts(accountId, cardId);
    return { minStampsByCard: new Map(costs.map(({ id, cost }) => [id, findNearStamps(cost)])) };
  }

  private async renderForm(
    localization: Localization,
    store: EnteredStore,
    cards: CardJson[],
    {
      cardId,
      sendsLink,
      errors,
      ...state
    }: Pick<FormView, 'values'> & Rejectable & { cardId: string; sendsLink: boolean },
  ): Promise<PageResult> {
    const { t: translations, locale } = localization;
    const t = translations.customerPages.form;
    const base = `/app/stores/${store.id}/customers`;
    const canSend = this.config.mail !== null || this.config.sms !== null;
    return showPage({
      view: formView,
      title: t.addTitle,
      breadcrumb: linkToEntry(store, 'customers', translations),
      width: 'form',
      errors,
      inputs: customerForm.toInputs(state.values),
      data: {
        heading: t.addTitle,
        action: base,
        back: base,
        submit: t.add,
        months: listMonths(locale),
        creation: {
          cards: [
            ...cards.map(({ id, name }) => ({ value: String(id), text: name })),
            { value: '', text: t.noCard },
          ],
          cardId,
          sendsLink,
          canSend,
          codeWhy: this.config.isOnlyLocal
            ? translations.words.localOnly
            : canSend
              ? ''
              : t.codeAfterwards,
        },
        ...state,
      },
    });
  }
}

/** Lists the designs of cards. */
export function listCards(
  cards: CardsService,
  accountId: number,
  scope: 'active' | 'all',
): Promise<CardJson[]> {
  return cards.list(accountId, { scope, updatedSince: null }, { after: null, limit: MAX_CARDS });
}

/** Lists what the list can be sorted by, each with its first page. */
function listSorts(
  base: string,
  filter: ListFilter,
  { customerPages: { list: t }, words }: Translations,
): ListView['sorts'] {
  const texts = { newest: t.newest, name: words.name, active: t.active, stamps: words.stamps };
  return SORTS.map((sort) => ({
    path: base + renderListQuery({ ...filter, sort }, 1),
    text: texts[sort],
    isCurrent: sort === filter.sort,
  }));
}

/** Lists the months as options of a select. */
export function listMonths(locale: string): Choices {
  const format = new Intl.DateTimeFormat(locale, { month: 'long', timeZone: 'UTC' });
  return Array.from({ length: 12 }, (_, month) => ({
    value: String(month + 1),
    text: format.format(Date.UTC(2000, month, 15)),
  }));
}

/** Creates the breadcrumb of a page below that of a customer. */
export function linkToCustomer(
  store: EnteredStore,
  customer: CustomerJson,
  { customerPages: { person } }: Translations,
): Breadcrumb {
  return {
    path: buildCustomerPath(store, customer.id),
    text: renderName(customer, person.erased),
  };
}

/** Renders the name of a customer. @param erased the text in place of the name of one who was erased */
export function renderName(
  {
    first_name,
    last_name,
    erased_at,
  }: Pick<CustomerJson, 'first_name' | 'last_name' | 'erased_at'>,
  erased: string,
): string {
  return erased_at === null ? [first_name, last_name ?? ''].join(' ').trim() : erased;
}

/** Describes one of the filters, as the form calls it. */
function describeNarrowing(
  name: ReturnType<typeof listWiderFilters>[number]['name'],
  filter: ListFilter,
  cards: CardJson[],
  { t: { customerPages, words }, locale }: Localization,
): string {
  const t = customerPages.list;
  switch (name) {
    case 'cardId':
      return cards.find(({ id }) => id === filter.cardId)?.name ?? words.card;
    case 'isNear':
      return t.near;
    case 'inactiveDays':
      return `${t.active}: ${t.inactive({ days: filter.inactiveDays ?? 0 })}`;
    case 'birthdayMonth':
      return `${t.birthday} ${listMonths(locale)[(filter.birthdayMonth ?? 1) - 1]?.text ?? ''}`;
  }
}

function toLine(
  customer: CustomerJson,
  base: string,
  { t: { customerPages: t, counter } }: Localization,
  day: (time: Date) => string,
): CustomerLine {
  const { id, email, phone, customer_cards: cards } = customer;
  const changedAt = findLastChange(cards);
  // Without the unit, which the heading of the column has.
  const texts: Parameters<typeof describeBalance>[1] = {
    stampsOf: ({ have, need }) => counter.outcome.of({ have, goal: need }),
    stamps: t.person.stamps,
  };
  return {
    path: `${base}/${id}`,
    name: renderName(customer, t.person.erased),
    contact: email ?? phone ?? '',
    cards: cards.map((card) => ({
      name: card.card_name,
      balance: describeBalance(card, texts),
      count: card.stamps_count,
      full: card.stamps_count + card.stamps_remaining,
    })),
    active: changedAt === null ? '' : day(changedAt),
  };
}
