import { Body, Controller, Query, Req } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyRequest } from 'fastify';
import { getNow } from '#platform/kernel/clock.js';
import { InvalidFieldsError, RejectedError, TakenError } from '#platform/kernel/errors.js';
import type { Form } from '#platform/http/body-kinds.js';
import { readBody, readQuery } from '#platform/http/dtos.js';
import { Throttle } from '#platform/http/throttle.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { CreateCustomer } from '#loyalty/customers/customer.commands.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { CustomerCreationDto, toCustomerInput } from '#loyalty/customers/customer-input.dto.js';
import { CustomerListQuery, toCustomerFilter } from '#loyalty/customers/customer-list.dto.js';
import { CustomersService } from '#loyalty/customers/customers.service.js';
import { FindOrCreateCustomer } from '#loyalty/customers/find-or-create.commands.js';
import { listErrors, describeRejection } from '#web/pages/form-errors.js';
import {
  assertNotKept,
  GetPage,
  PostRepeatableForm,
  ShowsKeptForm,
} from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { EnrolCustomer } from '#loyalty/stamping/customer-card.commands.js';
import type { Localization } from '#translations/translations.js';
import { type PageResult, redirectTo } from '#web/pages/page-results.js';
import {
  isContact,
  MAX_CUSTOMERS,
  MAX_SORTED,
  readNewCustomer,
  sortByMatch,
} from './counter-customer.js';
import { readId } from './counter-operation.js';
import { describeBalance } from './counter-outcome.js';
import type { CounterVisit } from './counter-visit.js';
import { AtCounter, CounterPages } from './counter-pages.service.js';
import { ISSUES } from '#translations/issues.js';

type Choice = { id: number; text: string };

type FindView = {
  path: string;
  q: string;
  error: string;
  customers: { id: number; name: string; contact: string; cards: Choice[]; others: Choice[] }[];
  /** Whether more customers were found than are shown. */
  hasMore: boolean;
  /** The form for somebody new. */
  name: string;
  contact: string;
  newCards: Choice[];
};

/** What somebody has typed, in one of the two forms. */
type Typed = { q: string; name: string; contact: string };

const findView = loadView<FindView>(import.meta.url, './views/find.eta');

/** More than a shop gives out at the same time. */
const MAX_CARDS = 20;

/** Finds customers at the counter, and adds those who are not there yet. */
@Controller('counter/:account_id')
export class CounterCustomersController {
  constructor(
    private readonly customers: CustomersService,
    private readonly cards: CardsService,
    private readonly commands: CommandBus,
    private readonly counterPages: CounterPages,
  ) {}

  @GetPage('listCustomers', 'find')
  @Throttle(300)
  async find(
    @AtCounter() visit: CounterVisit,
    @Query('q') q: unknown,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const input = typeof q === 'string' ? q : '';
    const isName = !isContact(input);
    const typed = { q: input, name: isName ? input : '', contact: isName ? '' : input };
    return this.showResults(visit, request, typed, '');
  }

  /** Gives a card to a customer on file, or to one who is found or made by their number or address. */
  @PostRepeatableForm('createCustomer', 'enrol', 300)
  @ShowsKeptForm()
  async enrol(
    @AtCounter() visit: CounterVisit,
    @Body() form: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const cardId = readId(form['card_id']);
    const { q = '', name = '', contact = '' } = form;
    try {
      assertNotKept(request);
      const id =
        form['customer_id'] === undefined
          ? await this.createCustomer(visit, form, cardId)
          : await this.enrolCustomer(visit, readId(form['customer_id']), cardId);
      return redirectTo(`${visit.path}/cards/${id}?done=new`);
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      const { find } = visit.localization.t.counter;
      const isContact = 'email' in error.errors || 'phone' in error.errors;
      const text =
        error.code === 'ambiguous'
          ? find.ambiguous
          : isContact
            ? find.badContact
            : listErrors(describeRejection(error, visit.localization));
      return this.showResults(visit, request, { q, name, contact }, text);
    }
  }

  private async createCustomer(
    { context, localization: { t } }: CounterVisit,
    form: Form,
    cardId: number,
  ): Promise<number> {
    const { name = '', contact = '' } = form;
    if (contact.trim() === '') throw new RejectedError({ phone: [ISSUES.not_phone_number] });
    const customer = readNewCustomer(name, contact, t.counter.find.guest);
    const input = readBody(CustomerCreationDto, { customer, card_id: cardId });
    const creation = new CreateCustomer(context, toCustomerInput(input), cardId, false);
    const result = await this.commands.execute(new FindOrCreateCustomer(creation));
    const { customer_card: card } = result.customer;
    if (!card) throw new Error('whoever is added gets a card');
    return card.id;
  }

  /** Enrols a customer; one who has been enrolled meanwhile keeps their card. */
  private async enrolCustomer(
    { context }: CounterVisit,
    customerId: number,
    cardId: number,
  ): Promise<number> {
    try {
      return (await this.commands.execute(new EnrolCustomer(context, customerId, cardId))).id;
    } catch (error) {
      if (error instanceof TakenError && error.existing) return error.existing.id;
      throw error;
    }
  }

  private async showResults(
    { context: { accountId }, path, localization }: CounterVisit,
    request: FastifyRequest,
    typed: Typed,
    error: string,
  ): Promise<PageResult> {
    const q = typed.q.trim().slice(0, 100);
    const [customers, cards] = await Promise.all([
      q === '' ? [] : this.search(accountId, q),
      this.listCards(accountId),
    ]);
    const { find } = localization.t.counter;
    return this.counterPages.show(request, {
      title: find.title,
      status: error === '' ? 200 : 422,
      view: findView,
      data: {
        path,
        q,
        error,
        customers: customers
          .slice(0, MAX_CUSTOMERS)
          .map((customer) => toResult(customer, cards, localization)),
        hasMore: customers.length > MAX_CUSTOMERS,
        name: typed.name.trim(),
        contact: typed.contact.trim(),
        newCards: cards.map(({ id, name }) => ({ id, text: name })),
      },
      back: path,
    });
  }

  /** Searches as the list of customers does, in another order. Text that it refuses is found nowhere. */
  private async search(accountId: number, q: string): Promise<CustomerJson[]> {
    try {
      const query = readQuery(CustomerListQuery, { search: q });
      const filter = toCustomerFilter(query);
      const page = { page: 1, items: MAX_SORTED };
      const { customers } = await this.customers.list(accountId, filter, page);
      return sortByMatch(customers, q);
    } catch (error) {
      if (error instanceof InvalidFieldsError) return [];
      throw error;
    }
  }

  /** Lists the cards that are given out. */
  private async listCards(accountId: number): Promise<CardJson[]> {
    const filter = { scope: 'active', updatedSince: null } as const;
    const cards = await this.cards.list(accountId, filter, { after: null, limit: MAX_CARDS });
    const now = getNow();
    return cards.filter(({ expires_at: at }) => at === null || new Date(at) > now);
  }
}

function toResult(
  customer: CustomerJson,
  cards: CardJson[],
  { t }: Localization,
): FindView['customers'][number] {
  const { id, first_name, last_name, email, phone, customer_cards: own } = customer;
  const { find } = t.counter;
  return {
    id,
    name: [first_name, last_name].filter(Boolean).join(' ') || t.counter.outcome.customer,
    contact: [email, phone].filter(Boolean).join(' · '),
    cards: own.map((card) => {
      const goal =
        cards.find(({ id: cardId }) => cardId === card.card_id)?.stamps_required ??
        card.stamps_count + card.stamps_remaining;
      const { full, countText } = describeBalance(card.stamps_count, goal, t.counter);
      // Kept in one line.
      const balance = [full, countText].filter(Boolean).join(' + ').replaceAll(' ', '\u00A0');
      return { id: card.id, text: find.open({ card: card.card_name, balance }) };
    }),
    others: cards
      .filter((card) => !own.some(({ card_id }) => card_id === card.id))
      .map((card) => ({ id: card.id, text: card.name })),
  };
}
